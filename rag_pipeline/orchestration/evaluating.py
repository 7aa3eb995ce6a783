"""The assets on quality: the evaluation with its quality gates, and the reports of feedback."""

# An ingestion loads this module too, and must not load what answers questions.
# ruff: noqa: PLC0415

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from rag_pipeline.evaluation.gates import GATES, GateResult
from rag_pipeline.evaluation.metrics import NDCG, SUCCESS
from rag_pipeline.evaluation.records import REPORT_HALF
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.partitions import BOOK_INDEX
from rag_pipeline.orchestration.resources import EvaluationResource, QuestionLogResource

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.book import BookEvaluation
    from rag_pipeline.evaluation.feedback import Figure, LogEntries


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
        dg.AssetCheckSpec(name, asset=ASSET_NAME, description=gate.condition, blocking=True)
        for name, gate in GATES.items()
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
    """Return the asset metadata of an evaluation: table, report paths, versions, numbers."""
    from rag_pipeline.evaluation.pages import to_markdown

    report, folder = evaluation.report, evaluation.folder
    answers = {"answers": dg.MetadataValue.path(str(folder / "answers.json"))}
    return {
        "measures": dg.MetadataValue.md(to_markdown(report.describe_measures())),
        "page": dg.MetadataValue.path(str(folder / "report.html")),
        "report": dg.MetadataValue.path(str(folder / "report.json")),
        "model": report.fingerprint.model,
        "format_version": report.fingerprint.format_version,
        "settings": dg.MetadataValue.json(report.fingerprint.settings),
        "corpus_version": report.fingerprint.corpus_version,
        "golden_version": report.fingerprint.golden_version,
        **_numbers(evaluation),
        **(answers if evaluation.answers else {}),
    }


def _numbers(evaluation: "BookEvaluation") -> dict[str, float]:
    """Return the numbers of an evaluation by metadata name, for Dagster's charts over time.

    A name such as `section_Success_5` consists of level and measure; its value is the mean over all
    questions. With the prefix `report_half_` it is the mean over the report half of the golden set,
    which was not used for tuning; only Success@5 and nDCG@10 are given for it. The other numbers
    are the values of the gates by name, and `failure_count`. Gates without a value are left out.
    """
    report = evaluation.report
    halves = {"": report.overall, "report_half_": report.halves.get(REPORT_HALF, {})}
    numbers: dict[str, float] = {
        f"{half}{level}_{measure}".replace("@", "_"): interval.mean
        for half, summary in halves.items()
        for level, measures in summary.items()
        for measure, interval in measures.items()
        if not half or measure in {SUCCESS, NDCG}
    }
    values = {gate.name: gate.value for gate in evaluation.gates if gate.value is not None}
    return numbers | values | {"failure_count": report.failure_count}


GROUP = "feedback"

_DAILY = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(hours=50), warn_window=timedelta(hours=26)
)
"""The reports are made each day. If they are not, Dagster's daemon does not run."""

_NO_LOG = "There is no question log, because QUESTION_LOG_DAYS is 0. Nothing was reported."
_EMPTY = "The question log is empty. `rag-pipeline serve` fills it."


@dg.asset(
    group_name=GROUP,
    kinds={"python"},
    freshness_policy=_DAILY,
    description=(
        "What readers think of the answers: the share of ratings that are 4 or 5 (SC-005) with its "
        "interval, the sections whose answers were rated worst, and what readers said."
    ),
)
def answer_feedback(
    context: dg.AssetExecutionContext,
    question_log: QuestionLogResource,
) -> dg.MaterializeResult[None]:
    """Report the ratings of the answers in the question log."""
    from rag_pipeline.evaluation.feedback import describe_feedback

    return _report(context, question_log, lambda _, entries: describe_feedback(entries))


@dg.asset(
    deps=[BOOK_INDEX],
    group_name=GROUP,
    kinds={"python"},
    freshness_policy=_DAILY,
    description=(
        "The questions that the book did not answer, or whose answers were rated 1 or 2. Similar "
        "questions are grouped, and each group names the sections that a search finds, with their "
        "similarity to the question (0 to 1). If one of them should answer the question, improve "
        "its words. If none does, the book may need a new section, or the question is outside the "
        "course. Questions about a selected text, questions that were not logged because "
        "LOG_QUESTIONS was off, and groups after the first 30 are only counted."
    ),
)
def unanswered_questions(
    context: dg.AssetExecutionContext,
    question_log: QuestionLogResource,
) -> dg.MaterializeResult[None]:
    """Report the unanswered questions in the question log."""
    from rag_pipeline.evaluation.feedback import describe_unanswered

    return _report(context, question_log, describe_unanswered)


def _report(
    context: dg.AssetExecutionContext,
    question_log: QuestionLogResource,
    describe: "Callable[[Settings, LogEntries], dict[str, Figure]]",
) -> dg.MaterializeResult[None]:
    """Return numbers and tables of the question log as metadata, or why there are none."""
    from rag_pipeline.evaluation.feedback import read_log

    begin_run(context.instance, context.run.run_id, None)
    settings = question_log.load_settings()
    entries = read_log(settings)
    if entries is None or not entries.answers:
        message = _NO_LOG if entries is None else _EMPTY
        context.log.info(message)
        return dg.MaterializeResult(metadata={"report": dg.MetadataValue.md(message)})
    metadata: dict[str, Any] = {}
    for name, figure in describe(settings, entries).items():
        if not isinstance(figure, list):
            metadata[name] = figure
        elif figure:  # Dagster refuses a table without rows
            metadata[name] = dg.MetadataValue.table([dg.TableRecord(row) for row in figure])
    return dg.MaterializeResult(metadata=metadata)
