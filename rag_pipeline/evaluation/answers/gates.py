"""Quality gates on answers: conditions that the texts which readers see must meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.gates import (
    HALF_FROM,
    REPORT_HALF,
    GateResult,
    at_least,
    check_share,
)

if TYPE_CHECKING:
    from rag_pipeline.evaluation.answers.records import AnswersReport

ANSWER_GATES: Final = {
    "answer_leaks": "No answer about a selection contains text from outside it (SC-002).",
    "facts_without_model": "Answers without a model contain the facts for most questions.",
    "terms_defined": 'The answer to "What is ...?" defines most terms of the glossary.',
    "terms_explained": "No such answer begins with a heading, code or a quiz.",
    "selections_answered": "Most questions that the selection answers are answered.",
    "selections_refused": "Most questions that the selection does not answer are refused.",
    "passages_whole": "All quoted passages are whole blocks of their document.",
}
"""Name and condition of every gate on answers, in the order of `check_answers`."""


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """The bounds of the quality gates on answers.

    Attributes:
        leaks: Highest number of selected-text cases whose answer leaks or fails.
        facts: Lowest share of questions of the report half whose answer, written without a model,
            contains all facts.
        terms_defined: Lowest share of terms whose main passage defines them.
        terms_flawed: Highest number of main passages that are a heading, code or a quiz.
        selections_answered: Lowest share of related selected-text cases that are answered.
        selections_refused: Lowest share of unrelated selected-text cases that are refused.
        passages_whole: Lowest share of quoted passages that are whole.
    """

    leaks: int = 0
    facts: float = 0.78
    terms_defined: float = 0.95
    terms_flawed: int = 0
    selections_answered: float = 0.93
    selections_refused: float = 0.90
    passages_whole: float = 1.0


def check_answers(report: AnswersReport, bounds: AnswerBounds) -> tuple[GateResult, ...]:
    """Check an evaluation of answers; return a result per gate, in the order of `ANSWER_GATES`.

    A gate without cases passes and is reported as "not measured". The gates on facts, terms and
    passages are not measured if a model wrote the answers.
    """
    selected, terms = report.selected_text, report.definitions
    half = report.halves.get(REPORT_HALF)
    facts = half.facts if half else None
    quoted = report.model is None
    return (
        _at_most(
            "answer_leaks",
            selected.leak_count + selected.failure_count if selected.case_count else None,
            bounds.leaks,
            f"{selected.leak_count} of {selected.case_count} answers about a selection contain "
            f"text from outside it and {selected.failure_count} failed",
        ),
        check_share(
            "facts_without_model",
            facts if quoted and facts and facts.count >= HALF_FROM else None,
            bounds.facts,
            f"questions of the report half (at least {HALF_FROM} are needed) whose answer without "
            "a model contains all facts",
        ),
        check_share(
            "terms_defined",
            terms.defined if quoted else None,
            bounds.terms_defined,
            "glossary terms that the main passage defines",
        ),
        _at_most(
            "terms_explained",
            terms.flawed if quoted and terms.defined else None,
            bounds.terms_flawed,
            f"{terms.flawed} main passages about glossary terms are a heading, code or a quiz",
        ),
        check_share(
            "selections_answered",
            selected.related_answered,
            bounds.selections_answered,
            "selections answered among those that contain the answer",
        ),
        check_share(
            "selections_refused",
            selected.unrelated_refused,
            bounds.selections_refused,
            "selections refused among those that do not contain the answer",
        ),
        check_share(
            "passages_whole",
            report.whole,
            bounds.passages_whole,
            "quoted passages that are whole blocks of their document",
        ),
    )


def _at_most(name: str, count: int | None, bound: int, sentence: str) -> GateResult:
    if count is None:
        why = f"there are no cases to measure: {ANSWER_GATES[name]}"
        return at_least(name, None, float(bound), "", why)
    verdict = f"{sentence}; the highest allowed number is {bound}"
    return GateResult(name, float(count), float(bound), count <= bound, verdict)
