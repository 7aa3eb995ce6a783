"""A report as lines for a terminal and as Markdown for a metadata field."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.records import EvaluationReport, Interval, Summary

_SHOWN_FAILURES = 3  # most failures have one cause


def render_text(report: EvaluationReport, gates: Sequence[GateResult] = ()) -> str:
    """Tell a report in a few lines: measures of both halves with intervals, refusals, gates."""
    lines = []
    for half, summary in (("all", report.overall), *report.halves.items()):
        lines.append(f"{half}:")
        for level, values in summary.items():
            lines += [
                f"  {level:<9}{measure:<16}{_short(interval)}"
                for measure, interval in values.items()
            ]
    lines += [*describe_rest(report), *_tell_failures(report), *map(_tell, gates)]
    return "\n".join(lines) + "\n"


def describe_rest(report: EvaluationReport) -> list[str]:
    """Refusals, selected text, latency and failures, a line each."""
    lines = []
    for name, scores in report.refusal.items():
        precision = "not measured" if scores.precision is None else f"{scores.precision:.3f}"
        lines.append(
            f"refusals ({name}): precision {precision}, recall {_short(scores.recall)}, "
            f"answerable questions answered {_short(scores.answered)}"
        )
    selected, latency = report.selected_text, report.latency
    lines.append(
        f"selected text: {selected.leak_count} of {selected.case_count} leak, "
        f"{selected.failure_count} failed, judged right {_short(selected.judged_right)}"
    )
    p50, p95 = (
        "none, too many failed" if value is None else f"{value:.1f} ms"
        for value in (latency.p50_ms, latency.p95_ms)
    )
    lines.append(f"latency: p50 {p50}, p95 {p95}, first {latency.cold_ms:.0f} ms")
    flagged = sum(question.flagged for question in report.questions)
    lines.append(f"flagged (recall@5 below 0.5): {flagged}; failures: {report.failure_count}")
    return lines


def render_markdown(report: EvaluationReport) -> str:
    """Means and intervals as a Markdown table, a row for each measure, a column for each half."""
    columns: dict[str, Summary] = {"all": report.overall, **report.halves}
    rows = [f"| level | measure | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for level, values in report.overall.items():
        for measure in values:
            cells = (_short(columns[name].get(level, {}).get(measure)) for name in columns)
            rows.append(f"| {level} | {measure} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _short(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] n={interval.count}"


def _tell_failures(report: EvaluationReport) -> list[str]:
    errors = [(one.query_id, one.error) for one in report.questions]
    errors += [(one.case_id, one.error) for one in report.selected_text_runs]
    failed = [f"  {name}: {error.splitlines()[0]}" for name, error in errors if error]
    return failed[:_SHOWN_FAILURES]


def _tell(gate: GateResult) -> str:
    mark = {"passed": "pass", "failed": "FAIL", "not measured": "----"}[gate.verdict]
    return f"{mark} {gate.name}: {gate.sentence}"
