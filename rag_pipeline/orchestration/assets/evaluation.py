"""The asset `retrieval_evaluation`, whose asset checks are the quality gates of a release."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import dagster as dg

from rag_pipeline.evaluation.gates import (
    ANSWER_GATES,
    CONVERSATION_GATES,
    GATES,
    REPORT_HALF,
    GateResult,
)
from rag_pipeline.evaluation.metrics import NDCG, SUCCESS
from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport
from rag_pipeline.orchestration.assets.ingestion import BOOK_INDEX
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.resources import EvaluationResource

if TYPE_CHECKING:  # an ingestion loads this module too, and must not load what answers questions
    from rag_pipeline.evaluation.book import BookEvaluation

ASSET_NAME = "retrieval_evaluation"


@dg.asset(
    name=ASSET_NAME,
    deps=[BOOK_INDEX],
    # Off until the automation sensor is switched on, because an evaluation can cost money.
    automation_condition=(
        dg.AutomationCondition.cron_tick_passed("0 4 * * *")
        & ~dg.AutomationCondition.any_deps_missing()
        & ~dg.AutomationCondition.newly_updated().since(dg.AutomationCondition.any_deps_updated())
    ),
    group_name="evaluation",
    kinds={"python"},
    check_specs=[
        dg.AssetCheckSpec(name, asset=ASSET_NAME, description=text, blocking=True)
        for name, text in (GATES | ANSWER_GATES | CONVERSATION_GATES).items()
    ],
    description=(
        "The quality of search and answers, measured with the golden set: do its questions find "
        "the sections that answer them, and do the answers contain the facts? The asset checks are "
        "the quality gates of a release. The metadata contains the measures and the path of the "
        "HTML report with all questions."
    ),
)
def retrieval_evaluation(
    context: dg.AssetExecutionContext,
    evaluation: EvaluationResource,
) -> Iterator[dg.MaterializeResult[None]]:
    """Measure the search quality of the current collection with the golden set of questions.

    Yields one result with the measures as metadata and one check result per quality gate.
    """
    begin_run(context.instance, context.run.run_id, None)
    found = evaluation.evaluate()
    for gate in found.gates:
        context.log.info(gate.sentence)
    yield dg.MaterializeResult(
        metadata=_metadata(found),
        check_results=[_check(gate) for gate in found.gates],
    )


def _check(gate: GateResult) -> dg.AssetCheckResult:
    """Return the result of a quality gate as a Dagster asset check result."""
    metadata: dict[str, Any] = {
        "verdict": f"{gate.verdict}: {gate.sentence}",
        "bound": gate.bound,
    }
    if gate.value is not None:
        metadata["value"] = gate.value
    return dg.AssetCheckResult(passed=gate.passed, check_name=gate.name, metadata=metadata)


def _metadata(evaluation: "BookEvaluation") -> dict[str, Any]:
    """Return the asset metadata of an evaluation: tables, plot, report paths, versions, numbers."""
    from rag_pipeline.evaluation.pages import to_markdown  # noqa: PLC0415  # see the top of the module
    from rag_pipeline.evaluation.rendering import (  # noqa: PLC0415  # see the top of the module
        describe_measures,
        draw_scores,
        to_png,
    )

    report, written = evaluation.report, evaluation.files.answers_path
    picture = base64.b64encode(to_png(draw_scores(report))).decode()
    return {
        "measures": dg.MetadataValue.md(to_markdown(describe_measures(report))),
        "scores": dg.MetadataValue.md(f"![score distributions](data:image/png;base64,{picture})"),
        "page": dg.MetadataValue.path(str(evaluation.files.html_path)),
        "report": dg.MetadataValue.path(str(evaluation.files.json_path)),
        "model": report.fingerprint.model,
        "format_version": report.fingerprint.format_version,
        "settings": dg.MetadataValue.json(report.fingerprint.settings),
        "corpus_version": report.fingerprint.corpus_version,
        "golden_version": report.fingerprint.golden_version,
        "commit": report.fingerprint.commit or "unknown",
        **_numbers(report),
        **(_list_answers(evaluation.answers) if evaluation.answers else {}),
        **({"answers": dg.MetadataValue.path(str(written))} if written else {}),
    }


def _numbers(report: EvaluationReport) -> dict[str, float]:
    """Return the numbers of an evaluation report by metadata name, for Dagster's charts over time.

    A name such as `section_Success_5` consists of level and measure; its value is the mean over all
    questions. With the prefix `report_half_` it is the mean over the report half of the golden set,
    which was not used for tuning; only Success@5 and nDCG@10 are given for it. Other names are, for
    example, `refusal_recall` and `latency_p95_ms`. Numbers that were not measured are left out.
    """
    halves = {"": report.overall, "report_half_": report.halves.get(REPORT_HALF, {})}
    numbers: dict[str, float] = {
        f"{half}{level}_{measure}".replace("@", "_"): interval.mean
        for half, summary in halves.items()
        for level, measures in summary.items()
        for measure, interval in measures.items()
        if not half or measure in {SUCCESS, NDCG}
    }
    refusal = report.refusal["all"]
    other_numbers = {
        "refusal_recall": refusal.recall.mean if refusal.recall else None,
        "refusal_precision": refusal.precision,
        "answered": refusal.answered.mean if refusal.answered else None,
        "latency_p50_ms": report.latency.p50_ms,
        "latency_p95_ms": report.latency.p95_ms,
        "failure_count": report.failure_count,
    }
    return numbers | {name: value for name, value in other_numbers.items() if value is not None}


def _list_answers(answers: AnswersReport) -> dict[str, float]:
    """Return the numbers of an evaluation of answers by metadata name, without unmeasured ones."""
    half, selected = answers.halves.get(REPORT_HALF), answers.selected_text
    shares = {
        "report_half_facts": half.facts if half else None,
        "terms_defined": answers.definitions.defined,
        "selections_answered": selected.related_answered,
        "selections_refused": selected.unrelated_refused,
        "passages_whole": answers.whole,
    }
    numbers = {name: share.mean for name, share in shares.items() if share is not None}
    return numbers | {"answer_leak_count": selected.leak_count}
