"""Value the parts of the sources: how well each part answers a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.quoting.comparing import compares_in_table
from rag_pipeline.answering.quoting.defining import ENTRY, measure_definition
from rag_pipeline.answering.reading.questions import QuestionKind, read_question
from rag_pipeline.core.models import ContentType, TextBlockKind
from rag_pipeline.core.text.terms import extract_terms, find_distinct_terms
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.answering.models import Source
    from rag_pipeline.answering.quoting.passages import Part

RANK_STEP: Final = 0.1
"""Value that the parts of a source lose for each better source."""

SUB_RANK_STEP: Final = 0.03
"""The same for a sub-question. It is smaller, because the rank is that of the whole question."""

# The value of a part is the score of its source relative to the best source, less the steps above,
# plus the following. They were chosen on one half of the golden set (ADR 28).
_COVER: Final = 0.3  # times the covered share of the question, without and with the headings
_DEFINITION: Final = 2.0  # times the degree to which the part defines the term
_CODE: Final = 0.5  # code, for a question that asks for code
_FORM: Final = 0.15  # steps for a how-to question, a table for a comparison
_COMPARISON: Final = 1.0  # a table with a column or row for each of the compared things
_UNFIT_CODE: Final = -0.3  # code for a question about a meaning, code without an introduction
_WEAK: Final = -1.0  # the part asks the reader a question, or the reader has it already
_PAGES: Final = -0.5  # the part lists pages
_FRAGMENTS: Final = -0.5  # the part lists fragments, for a question that asks for an explanation
_FAR: Final = -1.0  # a source after the first ones, without a definition or table that is asked for
_TYPES: Final = {ContentType.QUIZ.value: -0.3, ContentType.ASSESSMENT.value: -0.1}


@dataclass(frozen=True, slots=True)
class ValuedPart:
    """A part of a source with its value for a question.

    Attributes:
        part: The part.
        value: How well the part answers the question; comparable within one question only.
        plain_value: The value without the points for the form, such as code or a table. Two parts
            of different forms are compared by it.
        reasons: Reasons for the value, as short texts for a reader.
        is_weak: True if the part asks the reader a question, or if the reader knows it already.
            Such a part is quoted only if there is no other.
        is_entry: True if the part defines the subject of the question and is an item of a list.
    """

    part: Part
    value: float
    plain_value: float
    reasons: tuple[str, ...]
    is_weak: bool
    is_entry: bool


def value_parts(
    question: str,
    sources: Sequence[Source],
    parts: Mapping[int, Sequence[Part]],
    weights: Mapping[str, float],
    rank_step: float,
    seen: str = "",
) -> list[ValuedPart]:
    """Return all parts of the sources with their values for a question, the best part first.

    The rank and the score of a source count most, because they compare meanings. Then follow the
    share of the question's terms that a part contains, and the form that the question asks for. A
    definition counts more than all of these. The sources after the first five count only for a
    clear definition, or a table that compares what the question compares. Quiz questions, lists of
    pages and code without an introduction lose value, but are chosen if nothing else is there.

    Args:
        question: The question of the user, or a sub-question of it.
        sources: Sources, best first.
        parts: The parts of each source, by the number of the source.
        weights: Weight of each term of the question.
        rank_step: Value that the parts of a source lose for each better source.
        seen: Text that the reader knows already.
    """
    asked = read_question(question)
    worth = share_out(question, weights)
    valued: list[ValuedPart] = []
    for better, source in enumerate(sources):
        headings = find_distinct_terms(" ".join(source.headings))
        asking = _find_asking(source, parts[source.number])
        base = source.score / max(sources[0].score, 1e-9) - rank_step * better
        if not set(extract_terms(source.content_type)) & worth.keys():
            base += _TYPES.get(source.content_type, 0.0)
        for part in parts[source.number]:
            cover = find_share(worth, part.terms)
            value = base + _COVER * (cover + find_share(worth, part.terms | headings))
            reasons = [f"source {source.number}", f"{cover:.0%} of the question's words"]
            degree = 0.0
            if asked.kind is QuestionKind.DEFINITION and not part.lists_pages:
                degree = measure_definition(part, asked.subject)
            compares = asked.kind is QuestionKind.COMPARISON and compares_in_table(part, worth)
            if better >= EVIDENCE_DEPTH and degree < ENTRY and not compares:
                value += _FAR
                reasons.append("is far from the question")
            elif degree:
                value += _DEFINITION * degree
                reasons.append(f"defines {asked.subject!r} ({degree:.1f})")
            points, reason = _judge_form(part, asked.kind)
            if compares:
                points, reason = _COMPARISON, "compares in a table"
            is_weak = part.start in asking or part.text in seen
            loss, fault = _judge_content(part, asked.kind, is_weak=is_weak)
            value += loss
            is_entry = degree >= ENTRY and part.kinds == (TextBlockKind.LIST_ITEM,)
            reasons += [text for text in (fault or reason,) if text]
            valued.append(
                ValuedPart(part, value + points, value, tuple(reasons), is_weak, is_entry)
            )
    return sorted(valued, key=lambda one: -one.value)


def share_out(question: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return each term of the question with its share of the total weight; the shares sum to 1."""
    worth = {term: weights.get(term, 1.0) for term in extract_terms(question)}
    total = sum(worth.values()) or 1.0
    return {term: weight / total for term, weight in worth.items()}


def find_share(worth: Mapping[str, float], terms: AbstractSet[str]) -> float:
    """Return the share of a question, 0 to 1, that a set of terms covers."""
    return sum(share for term, share in worth.items() if term in terms)


def _judge_form(part: Part, kind: QuestionKind) -> tuple[float, str]:
    """Return what a part gains or loses by its form, with the reason; 0 and "" if nothing."""
    is_code = TextBlockKind.CODE in part.kinds
    if kind is QuestionKind.CODE:
        return (_CODE, "contains code") if part.has_code else (0.0, "")
    if kind is QuestionKind.DEFINITION and is_code:
        return _UNFIT_CODE, "is code"
    if kind is QuestionKind.HOW_TO and (part.has_code or TextBlockKind.LIST in part.kinds):
        return _FORM, "contains steps or code"
    if kind is QuestionKind.COMPARISON and TextBlockKind.TABLE in part.kinds:
        return _FORM, "contains a table"
    if set(part.kinds) == {TextBlockKind.CODE}:
        return _UNFIT_CODE, "is code without an introduction"
    return 0.0, ""


def _judge_content(part: Part, kind: QuestionKind, *, is_weak: bool) -> tuple[float, str]:
    """Return what a part loses because it answers nothing, with the reason; 0 and "" if nothing."""
    if is_weak:
        return _WEAK, "asks a question or was quoted before"
    if part.lists_pages:
        return _PAGES, "lists pages"
    if part.lists_fragments and kind is QuestionKind.EXPLANATION:
        return _FRAGMENTS, "lists fragments"
    return 0.0, ""


def _find_asking(source: Source, parts: Sequence[Part]) -> set[int]:
    """Return the starts of the parts that ask the reader a question, as in a quiz or an exercise.

    On a quiz page, that is all text of a section before a label such as `Answer`.
    """
    labelled: set[int] = set()  # runs with a label so far
    asking = set()
    for part in parts:
        if part.labelled:
            labelled.add(part.run)
        is_open = source.content_type == ContentType.QUIZ and part.run not in labelled
        if is_open or part.text.rstrip(" *_").endswith("?"):
            asking.add(part.start)
    return asking
