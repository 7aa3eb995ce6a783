"""Formatting of an evaluation report as an HTML page, as terminal text and as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.answers.rendering import (
    describe_spreads,
    fold,
    fold_answers,
    group_answers,
    list_goals,
    name_answers,
)
from rag_pipeline.evaluation.golden_set import MACHINE_MADE
from rag_pipeline.evaluation.matching import SECTION, hits_section
from rag_pipeline.evaluation.metrics import SUCCESS
from rag_pipeline.evaluation.plots import draw_history, draw_ranks, draw_scores, to_inline_svg
from rag_pipeline.evaluation.significance import show_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.evaluation.answers.records import AnswersReport
    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.records import (
        EvaluationReport,
        ExpectedPlace,
        QuestionResult,
        RetrievedChunk,
        Summary,
    )

_SHOWN_CHUNKS: Final = 5
_SHOWN_FAILURES: Final = 3  # failures usually share one cause, so a few examples are enough
_TEMPLATES: Final = Path(__file__).with_name("templates")
_MARKS: Final = {"passed": "pass", "failed": "FAIL", "not measured": "----"}


def render_html(
    report: EvaluationReport,
    history: Sequence[EvaluationReport],
    gates: Sequence[GateResult] = (),
    answers: AnswersReport | None = None,
) -> str:
    """Return a report as one self-contained HTML page with plots, without scripts or requests.

    Args:
        report: The evaluation to show.
        history: Earlier evaluations and this one, oldest first. The plot over time leaves out
            evaluations with another golden set.
        gates: Gate results to show at the top of the page.
        answers: The evaluation of answers to show; None if the answers were not evaluated.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # only the `pipeline` extra has it

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
        answers=answers,
        answers_title=name_answers(answers) if answers else "",
        answer_goals=list_goals(answers, report.latency) if answers else [],
        answer_groups=group_answers(answers) if answers else {},
        answer_notes=describe_spreads(answers) if answers else [],
        answer_folds=fold_answers(answers.questions) if answers else {},
    )


def _fold_questions(questions: Sequence[QuestionResult]) -> dict[str, list[QuestionResult]]:
    """Return the questions in three lists by title, the worst first."""

    def grade(question: QuestionResult) -> int:
        misjudged = question.refused is not None and question.refused is question.answerable
        missed = question.scores.get(SECTION, {}).get(SUCCESS, 1.0) < 1
        if question.flagged or question.error is not None:
            return 0
        return 1 if misjudged or missed else 2

    titles = (
        "Flagged: recall@5 below 0.5, or failed",
        "Right page but wrong section, or wrong decision to answer or refuse",
        "Correct",
    )
    return fold(questions, titles, grade)


def _judge(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> str:
    """Return the CSS class of a retrieved chunk.

    The class is `good` for an expected section, `near` for another section of an expected page, and
    empty otherwise.
    """
    if any(hits_section(chunk, place) for place in expected):
        return "good"
    return "near" if any(place.doc_path == chunk.doc_path for place in expected) else ""


def render_verdict(report: EvaluationReport, gates: Sequence[GateResult]) -> str:
    """Return a text of several lines that says if the gates passed.

    The first line is the verdict. The failed gates follow, then the others and the first failures.
    """
    failed = [gate for gate in gates if not gate.passed]
    if not gates:
        verdict = "No gates were checked."
    elif failed:
        verdict = f"FAILED: {len(failed)} of {len(gates)} gates failed."
    else:
        verdict = f"PASSED: none of the {len(gates)} gates failed."
    ordered = sorted(gates, key=lambda gate: gate.passed)
    shown = [f"{_MARKS[gate.verdict]} {gate.name}: {gate.sentence}" for gate in ordered]
    if report.failure_count:
        shown += [f"Failed questions: {report.failure_count}", *_name_failures(report)]
    return "\n".join([verdict, *shown]) + "\n"


def render_text(report: EvaluationReport) -> str:
    """Return the measures of a report as a text of several lines for a terminal.

    The text lists every measure with its 95% interval over all questions and over each half, then
    refusals and latency.
    """
    lines = []
    for half, summary in (("all", report.overall), *report.halves.items()):
        lines.append(f"{half}:")
        for level, values in summary.items():
            lines += [
                f"  {level:<9}{measure:<16}{show_interval(interval)}"
                for measure, interval in values.items()
            ]
    lines += describe_rest(report)
    return "\n".join(lines) + "\n"


def describe_rest(report: EvaluationReport) -> list[str]:
    """Return lines that describe refusals, latency and failures."""
    lines = []
    made = sum(question.category == MACHINE_MADE for question in report.questions)
    if made:
        lines.append(
            f"{made} of {len(report.questions)} questions were made by a program and not reviewed. "
            "Readers ask harder questions, so these figures are too high. No gate was checked."
        )
    for name, scores in report.refusal.items():
        precision = "not measured" if scores.precision is None else f"{scores.precision:.3f}"
        lines.append(
            f"refusals ({name}): precision {precision}, recall {show_interval(scores.recall)}, "
            f"answerable questions not refused {show_interval(scores.answered)}"
        )
    latency = report.latency
    p50, p95 = (
        "has no value (too many questions failed)" if value is None else f"{value:.1f} ms"
        for value in (latency.p50_ms, latency.p95_ms)
    )
    lines.append(f"latency: p50 {p50}, p95 {p95}, first query {latency.cold_ms:.0f} ms")
    flagged = sum(question.flagged for question in report.questions)
    lines.append(f"flagged (recall@5 below 0.5): {flagged}; failures: {report.failure_count}")
    return lines


def render_markdown(report: EvaluationReport) -> str:
    """Return a Markdown table with one row per measure and columns for all questions and halves."""
    columns: dict[str, Summary] = {"all": report.overall, **report.halves}
    rows = [f"| level | measure | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for level, values in report.overall.items():
        for measure in values:
            cells = (show_interval(columns[name].get(level, {}).get(measure)) for name in columns)
            rows.append(f"| {level} | {measure} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _name_failures(report: EvaluationReport) -> list[str]:
    failed = [
        f"  {one.query_id}: {one.error.splitlines()[0]}" for one in report.questions if one.error
    ]
    return failed[:_SHOWN_FAILURES]
