"""The accepted answers, with which later answers are shown side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.answers.records import AcceptedAnswer
from rag_pipeline.evaluation.answers.scoring import find_facts

if TYPE_CHECKING:
    from rag_pipeline.evaluation.answers.records import AnswerResult, AnswersReport

BASELINE_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class BaselineAnswer:
    """An accepted answer: the wording of the question, the kind of the answer, and its text."""

    question: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswersBaseline:
    """The accepted answers of a golden set.

    Attributes:
        report_version: Version of the format.
        accepted_at: Time of the accepted evaluation, ISO 8601 in UTC.
        model: Name of the chat model that wrote the answers; None if no model was used.
        answers: Accepted answer to each question, by question id.
    """

    report_version: int
    accepted_at: str
    model: str | None
    answers: dict[str, BaselineAnswer]


def make_baseline(report: AnswersReport) -> AnswersBaseline:
    """Return the answers of an evaluation in the form in which they are accepted."""
    return AnswersBaseline(
        BASELINE_VERSION,
        report.created_at,
        report.model,
        {
            one.query_id: BaselineAnswer(one.question, one.kind, one.text)
            for one in report.questions
            if one.kind is not None
        },
    )


def compare_answers(report: AnswersReport, baseline: AnswersBaseline | None) -> AnswersReport:
    """Return a copy of the report in which each answer has the accepted answer beside it.

    Questions that the baseline does not have, or has in another wording, stay without one.
    """
    accepted = baseline.answers if baseline else {}
    questions = (
        replace(one, accepted=_compare(one, accepted[one.query_id]))
        if one.query_id in accepted and accepted[one.query_id].question == one.question
        else one
        for one in report.questions
    )
    return replace(report, questions=tuple(questions))


def _compare(result: AnswerResult, accepted: BaselineAnswer) -> AcceptedAnswer:
    facts = (*result.facts_found, *result.facts_missed)
    found, _ = find_facts(facts, "" if accepted.kind == "refused" else accepted.text)
    return AcceptedAnswer(
        accepted.text,
        gained=tuple(fact for fact in result.facts_found if fact not in found),
        lost=tuple(fact for fact in result.facts_missed if fact in found),
    )
