"""How a report looks: a self-contained HTML page, lines for a terminal, a table in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.matching import SECTION, hits_section
from rag_pipeline.evaluation.metrics import SUCCESS
from rag_pipeline.evaluation.plots import draw_history, draw_ranks, draw_scores, to_inline_svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.records import (
        EvaluationReport,
        ExpectedPlace,
        Interval,
        QuestionResult,
        RetrievedChunk,
        Summary,
    )

_SHOWN_CHUNKS: Final = 5
_SHOWN_FAILURES: Final = 3  # most failures have one cause
_TEMPLATES: Final = Path(__file__).with_name("templates")
_MARKS: Final = {"passed": "pass", "failed": "FAIL", "not measured": "----"}


def render_html(
    report: EvaluationReport,
    history: Sequence[EvaluationReport],
    gates: Sequence[GateResult] = (),
) -> str:
    """Draw a report as one HTML page for wide and narrow, light and dark screens.

    Args:
        report: The evaluation to show.
        history: Earlier evaluations and this one, oldest first. Those of another golden set are
            left out of the plot.
        gates: Verdicts to show on top.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # an extra

    golden = report.fingerprint.golden_version
    runs = [run for run in history if run.fingerprint.golden_version == golden] or [report]
    figures = {
        "history": draw_history(runs),
        "ranks": draw_ranks(report),
        "scores": draw_scores(report),
    }
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja").render(
        report=report,
        gates=gates,
        notes=describe_rest(report),
        plots=[to_inline_svg(figure, name) for name, figure in figures.items()],
        folds=_fold_questions(report.questions),
        judge=_judge,
        shown_chunks=_SHOWN_CHUNKS,
    )


def _fold_questions(questions: Sequence[QuestionResult]) -> dict[str, list[QuestionResult]]:
    """Sort questions into three folds by title, the worst first."""
    folds: dict[str, list[QuestionResult]] = {
        "Flagged: recall@5 below 0.5, or failed": [],
        "Right page, wrong section; or wrongly judged": [],
        "Right": [],
    }
    bad, poor, right = folds.values()
    for question in questions:
        misjudged = question.refused is not None and question.refused is question.answerable
        missed = question.scores.get(SECTION, {}).get(SUCCESS, 1.0) < 1
        if question.flagged or question.error is not None:
            bad.append(question)
        else:
            (poor if misjudged or missed else right).append(question)
    return folds


def _judge(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> str:
    """Return the style of a retrieved chunk: the right section, only the right page, or neither."""
    if any(hits_section(chunk, place) for place in expected):
        return "good"
    return "near" if any(place.doc_path == chunk.doc_path for place in expected) else ""


def render_text(report: EvaluationReport, gates: Sequence[GateResult] = ()) -> str:
    """Describe a report in lines: measures of both halves with intervals, refusals, gates."""
    lines = []
    for half, summary in (("all", report.overall), *report.halves.items()):
        lines.append(f"{half}:")
        for level, values in summary.items():
            lines += [
                f"  {level:<9}{measure:<16}{_short(interval)}"
                for measure, interval in values.items()
            ]
    lines += [*describe_rest(report), *_name_failures(report)]
    lines += [f"{_MARKS[gate.verdict]} {gate.name}: {gate.sentence}" for gate in gates]
    return "\n".join(lines) + "\n"


def describe_rest(report: EvaluationReport) -> list[str]:
    """Describe refusals, selected text, latency and failures, a line each."""
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
    """Write means and intervals as a Markdown table: a row for each measure, a column per half."""
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


def _name_failures(report: EvaluationReport) -> list[str]:
    errors = [(one.query_id, one.error) for one in report.questions]
    errors += [(one.case_id, one.error) for one in report.selected_text_runs]
    failed = [f"  {name}: {error.splitlines()[0]}" for name, error in errors if error]
    return failed[:_SHOWN_FAILURES]
