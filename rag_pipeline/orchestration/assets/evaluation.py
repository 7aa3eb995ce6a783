"""The evaluation asset and its checks, which gate a release."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from rag_pipeline.core.models import Stage
from rag_pipeline.evaluation.book import BookEvaluation
from rag_pipeline.evaluation.gates import GATES, REPORT_HALF, GateResult
from rag_pipeline.evaluation.metrics import NDCG, SUCCESS
from rag_pipeline.evaluation.plots import draw_scores, to_png
from rag_pipeline.evaluation.records import EvaluationReport
from rag_pipeline.evaluation.rendering import render_markdown

ASSET_NAME = "retrieval_evaluation"


@dg.asset(
    name=ASSET_NAME,
    deps=[Stage.POINTS.value],
    group_name="evaluation",
    kinds={"python"},
    check_specs=[
        dg.AssetCheckSpec(name, asset=ASSET_NAME, description=text, blocking=True)
        for name, text in GATES.items()
    ],
    description=(
        "How well questions of the golden set find their sections. Its checks gate a release; the "
        "numbers are charted over time, the page with all questions is named in the metadata."
    ),
)
def retrieval_evaluation(
    context: dg.AssetExecutionContext,
    evaluate_collection: dg.ResourceParam[Callable[[], BookEvaluation]],
) -> Iterator[dg.MaterializeResult[None]]:
    """Evaluate the collection in use."""
    evaluation = evaluate_collection()
    for gate in evaluation.gates:
        context.log.info(gate.sentence)
    yield dg.MaterializeResult(
        metadata=_metadata(evaluation),
        check_results=[_check(gate) for gate in evaluation.gates],
    )


def _check(gate: GateResult) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = {
        "verdict": f"{gate.verdict}: {gate.sentence}",
        "bound": gate.bound,
    }
    if gate.value is not None:
        metadata["value"] = gate.value
    return dg.AssetCheckResult(passed=gate.passed, check_name=gate.name, metadata=metadata)


def _metadata(evaluation: BookEvaluation) -> dict[str, Any]:
    report = evaluation.report
    picture = base64.b64encode(to_png(draw_scores(report))).decode()
    return {
        "measures": dg.MetadataValue.md(render_markdown(report)),
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
    }


def _numbers(report: EvaluationReport) -> dict[str, float]:
    """Return means by level and measure, as Dagster charts them, and then the other numbers.

    Names are like `section_Success_5` over all questions, and `report_half_section_Success_5` over
    the half that was not used for tuning.
    """
    halves = {"": report.overall, "report_half_": report.halves.get(REPORT_HALF, {})}
    numbers: dict[str, float] = {
        f"{half}{level}_{measure}".replace("@", "_"): interval.mean
        for half, summary in halves.items()
        for level, measures in summary.items()
        for measure, interval in measures.items()
        if not half or measure in {SUCCESS, NDCG}
    }
    refusal, selected = report.refusal["all"], report.selected_text
    others = {
        "refusal_recall": refusal.recall.mean if refusal.recall else None,
        "refusal_precision": refusal.precision,
        "answered": refusal.answered.mean if refusal.answered else None,
        "selected_text_leak_count": selected.leak_count if selected.case_count else None,
        "latency_p50_ms": report.latency.p50_ms,
        "latency_p95_ms": report.latency.p95_ms,
        "failure_count": report.failure_count,
    }
    return numbers | {name: value for name, value in others.items() if value is not None}
