"""Formatting of an evaluation of answers: text for a terminal, and parts of the HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.evaluation.answers.gates import AnswerBounds
from rag_pipeline.evaluation.gates import REPORT_HALF
from rag_pipeline.evaluation.significance import show_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.evaluation.answers.records import (
        AnswerResult,
        AnswerScores,
        AnswersReport,
        Spread,
    )
    from rag_pipeline.evaluation.records import Latency

_Result = TypeVar("_Result")
_SHOWN_FAILURES: Final = 3  # failures usually share one cause, so a few examples are enough


@dataclass(frozen=True, slots=True)
class GoalRow:
    """A measured value of the answers beside the project's goal. A missed goal is not a failure."""

    measure: str
    value: str
    goal: str


def list_goals(report: AnswersReport, retrieval: Latency) -> list[GoalRow]:
    """Return the measures of an evaluation of answers for which the project has a goal.

    The last rows compare times and memory with the budgets of the validation plan and of SC-006.

    Args:
        report: The evaluation of answers.
        retrieval: The times of retrieval, without answering.
    """
    half = report.halves.get(REPORT_HALF)
    selected, overall, terms = report.selected_text, report.overall, report.definitions
    without, bounds = " (without a model)", AnswerBounds()
    rows = [
        GoalRow(
            "facts contained, report half",
            show_interval(half.facts if half else None),
            f"at least {bounds.facts:.2f}{without}",
        ),
        GoalRow(
            "answerable questions refused", show_interval(overall.wrongly_refused), "at most 0.05"
        ),
        GoalRow("quoted passages that are whole", show_interval(report.whole), "all"),
        GoalRow("words per answer", _show_spread(overall.words), f"at most 250{without}"),
        GoalRow(
            "glossary terms defined by the main passage",
            show_interval(terms.defined),
            f"at least {bounds.terms_defined:.2f}{without}",
        ),
        GoalRow("main passages that are a heading, code or a quiz", f"{terms.flawed}", "none"),
        GoalRow(
            "selections whose answer leaked",
            f"{selected.leak_count} of {selected.case_count}, {selected.failure_count} failed",
            "none",
        ),
        GoalRow(
            "related selections answered",
            show_interval(selected.related_answered),
            f"at least {bounds.selections_answered:.2f}",
        ),
        GoalRow(
            "unrelated selections refused",
            show_interval(selected.unrelated_refused),
            f"at least {bounds.selections_refused:.2f}",
        ),
        GoalRow(
            "time of retrieval",
            f"median {_show_ms(retrieval.p50_ms)}, p95 {_show_ms(retrieval.p95_ms)}",
            "p95 at most 500 ms",
        ),
    ]
    goals = {"extracted": "p95 at most 500 ms", "generated": "p95 at most 5000 ms"}
    rows += [
        GoalRow(f"time of {kind} answers", _show_spread(spread, " ms"), goals[kind])
        for kind, spread in report.latency_ms.items()
        if kind in goals
    ]
    growth = report.memory.growth_mb
    shown = "not measured" if growth is None else f"{growth:.0f} MB"
    memory = f"{shown} (the whole process, with ingestion: at most {report.memory.peak_mb:.0f} MB)"
    return [*rows, GoalRow("growth of memory while answering", memory, "at most 256 MB")]


def name_answers(report: AnswersReport) -> str:
    """Return the heading of the answers, which names the model that wrote them."""
    return f"answers by {report.model}" if report.model else "answers without a model"


def group_answers(report: AnswersReport) -> dict[str, AnswerScores]:
    """Return the scores of all questions, of each half and of each category, by name of group."""
    return {"all": report.overall, **report.halves, **report.categories}


def describe_spreads(report: AnswersReport) -> list[str]:
    """Return lines with the words, cited sections and times of the answers, and the failures."""
    lines = [
        f"words per answer: {_show_spread(report.overall.words)}",
        f"sections cited per answer: {_show_spread(report.overall.sections, digits=1)}",
    ]
    lines += [
        f"answering time ({kind}): {_show_spread(spread, ' ms')}"
        for kind, spread in report.latency_ms.items()
    ]
    return [*lines, f"failed answers: {report.failure_count}"]


def render_answers(report: AnswersReport, retrieval: Latency) -> str:
    """Return an evaluation of answers as a text of several lines for a terminal.

    The text lists the shares with their 95% intervals over all questions, each half and each
    category, then words, sections and times, the goals, and the first failures.

    Args:
        report: The evaluation of answers.
        retrieval: The times of retrieval, without answering.
    """
    lines = [f"{name_answers(report)}:"]
    for name, scores in group_answers(report).items():
        shares = {
            "facts contained": scores.facts,
            "refused although answerable": scores.wrongly_refused,
            "refused, no answer in the book": scores.rightly_refused,
            "dangling start": scores.dangling,
            "sentences with support": scores.supported,
        }
        lines += [f"  {name}:"]
        lines += [
            f"    {measure:<32}{show_interval(share)}" for measure, share in shares.items() if share
        ]
    lines += [f"  {line}" for line in describe_spreads(report)]
    lines += [
        f"  goal: {row.measure}: {row.value}; {row.goal}" for row in list_goals(report, retrieval)
    ]
    errors = [(one.query_id, one.error) for one in report.questions]
    errors += [(one.case_id, one.error) for one in report.selections]
    errors += [(one.term, one.error) for one in report.terms]
    failed = [f"    {name}: {error.splitlines()[0]}" for name, error in errors if error]
    return "\n".join([*lines, *failed[:_SHOWN_FAILURES]]) + "\n"


def fold_answers(results: Sequence[AnswerResult]) -> dict[str, list[AnswerResult]]:
    """Return the answers in four lists by title, the worst first."""

    def grade(result: AnswerResult) -> int:
        misjudged = result.refused is result.answerable
        if result.accepted is not None and result.accepted.lost:
            return 0
        if result.error is not None or result.facts_missed or misjudged:
            return 1
        return 3 if result.has_facts or result.refused else 2

    titles = (
        "Facts of the accepted answer lost",
        "Facts missed, failed, wrongly refused or wrongly answered",
        "No facts to check",
        "All facts found, or rightly refused",
    )
    return fold(results, titles, grade)


def fold(
    results: Iterable[_Result], titles: Sequence[str], grade: Callable[[_Result], int]
) -> dict[str, list[_Result]]:
    """Return the results in lists by title. Each list becomes a foldable part of the HTML page.

    Args:
        results: The results in the order in which each list shows them.
        titles: The title of each list.
        grade: Function that returns the index of a result's title.
    """
    folds: list[list[_Result]] = [[] for _ in titles]
    for result in results:
        folds[grade(result)].append(result)
    return dict(zip(titles, folds, strict=True))


def _show_ms(value: float | None) -> str:
    return "has no value (failures)" if value is None else f"{value:.0f} ms"


def _show_spread(spread: Spread | None, unit: str = "", digits: int = 0) -> str:
    if spread is None:
        return "not measured"
    values = {"mean": spread.mean, "median": spread.p50, "p95": spread.p95}
    shown = [
        f"{name} has no value (failures)" if value is None else f"{name} {value:.{digits}f}{unit}"
        for name, value in values.items()
    ]
    return f"{', '.join(shown)}, n={spread.count}"
