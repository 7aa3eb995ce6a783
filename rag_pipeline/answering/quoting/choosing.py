"""Choose the passages of the sources that answer a question without a chat model.

One main passage answers the question. At most two further passages are added, if they contain
something that the question asks for and the main passage lacks, or if they are almost as good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.quoting.passages import find_parts
from rag_pipeline.answering.quoting.valuing import (
    RANK_STEP,
    SUB_RANK_STEP,
    ValuedPart,
    find_share,
    share_out,
    value_parts,
)
from rag_pipeline.core.text.terms import find_distinct_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.answering.models import Source
    from rag_pipeline.answering.quoting.passages import Part

MAX_WORDS: Final = 300
"""Limit for all passages of an answer together. One part, such as a long table, may exceed it."""

MAX_PASSAGES: Final = 3

_MAIN_WORDS: Final = 120  # size up to which the main passage takes in text around its best part
_FURTHER_WORDS: Final = 60  # the same for a further passage
_ALMOST: Final = 0.5  # value, relative to the main passage, of one that is almost as good
_NEW_SHARE: Final = 0.1  # least share of the question's terms that another further passage adds
_USEFUL: Final = 0.5  # least value of such a passage, relative to the main passage
_REPEATED: Final = 0.8  # a passage with this share of its terms shown before is a repetition


@dataclass(frozen=True, slots=True)
class PassageChoice:
    """A run of parts of one source that was chosen for an answer, with the reasons.

    Attributes:
        parts: The parts in the order of the source, next to each other; at least one.
        value: How well the best part answers the question; comparable within one answer only.
        reasons: Reasons for the choice, as short texts for a reader.
    """

    parts: tuple[Part, ...]
    value: float
    reasons: tuple[str, ...]

    @property
    def source(self) -> Source:
        """The source that the passage comes from."""
        return self.parts[0].source

    @property
    def text(self) -> str:
        """The Markdown text of the passage, exactly as in the source."""
        return self.source.text[self.parts[0].start : self.parts[-1].end]

    @property
    def terms(self) -> frozenset[str]:
        """The distinct search terms of the passage."""
        return frozenset().union(*(part.terms for part in self.parts))

    @property
    def words(self) -> int:
        """The number of words of the passage."""
        return sum(part.words for part in self.parts)


def choose_passages(
    question: str, sources: Sequence[Source], weights: Mapping[str, float], seen: str = ""
) -> tuple[PassageChoice, ...]:
    """Choose up to three passages that answer a question, the main passage first.

    Further passages come from the parts that answer one sub-question of a compound question best,
    and then from the parts with the highest values.

    Args:
        question: The question of the user.
        sources: Sources to quote from, best first.
        weights: Weight of each term of the question.
        seen: Text that the reader knows already. It is quoted only if nothing else is there.

    Returns:
        The passages. Empty only if the sources contain no text apart from headings.
    """
    from rag_pipeline.retrieval.search import split_question  # noqa: PLC0415  # loads numpy

    parts = {source.number: find_parts(source) for source in sources}
    ranked = value_parts(question, sources, parts, weights, RANK_STEP, seen)
    if not ranked:
        return ()
    weak = {_place(one.part) for one in ranked if one.is_weak}
    worth = share_out(question, weights)
    best = ranked[0].plain_value
    of_parts = [
        value_parts(text, sources, parts, weights, SUB_RANK_STEP, seen)[0]
        for text in split_question(question)
    ]
    asked = {_place(one.part) for one in of_parts}
    chosen = [_widen(ranked[0], parts, MAX_WORDS, weak, _MAIN_WORDS)]
    taken = {_place(part) for part in chosen[0].parts}
    shown, words = set(chosen[0].terms), chosen[0].words
    above = set(find_distinct_terms(" ".join(chosen[0].source.headings)))
    for one in [*of_parts, *ranked[1:]]:
        if len(chosen) == MAX_PASSAGES:
            break
        left = MAX_WORDS - words
        if one.part.words > left or one.is_weak or _place(one.part) in taken:
            continue
        if len(one.part.terms & shown) >= _REPEATED * len(one.part.terms):
            continue
        adds = find_share(worth, one.part.terms - shown - above)
        is_new_section = all(choice.source is not one.part.source for choice in chosen)
        closeness = one.plain_value / best if best > 0 else 0.0
        is_close = _place(one.part) in asked or closeness >= _ALMOST
        is_useful = closeness >= _USEFUL and adds >= _NEW_SHARE
        if is_useful or (is_new_section and is_close):
            choice = _widen(one, parts, left, weak | taken, _FURTHER_WORDS)
            chosen.append(choice)
            taken.update(_place(part) for part in choice.parts)
            shown |= choice.terms
            words += choice.words
            above |= find_distinct_terms(" ".join(choice.source.headings))
    return tuple(chosen)


def _place(part: Part) -> tuple[int, int]:
    """Return the number of a part's source and the part's start, which identify the part."""
    return part.source.number, part.start


def _widen(
    core: ValuedPart,
    parts: Mapping[int, Sequence[Part]],
    left: int,
    barred: AbstractSet[tuple[int, int]],
    size: int,
) -> PassageChoice:
    """Return a passage with the parts around its best part that fit.

    The part before is added if the passage would begin with a word that refers to it. Other parts
    are added while the passage stays short. An entry of a glossary is complete on its own.

    Args:
        core: The best part of the passage.
        parts: All parts, by the number of their source.
        left: Number of words that the passage may have.
        barred: Places of the parts that are not added.
        size: Number of words up to which the passage grows; a smaller limit than `left` applies.
    """
    number = core.part.source.number
    run = [part for part in parts[number] if part.run == core.part.run]
    first = last = run.index(core.part)
    words = core.part.words

    def fits(at: int, limit: int) -> bool:
        is_free = 0 <= at < len(run) and _place(run[at]) not in barred
        return is_free and words + run[at].words <= limit

    grown = True
    while grown:
        grown = run[first].refers_back and fits(first - 1, left)
        if grown:
            first -= 1
            words += run[first].words
            continue
        for at in () if core.is_entry else (last + 1, first - 1):
            if fits(at, min(left, size)):
                first, last = min(first, at), max(last, at)
                words += run[at].words
                grown = True
    return PassageChoice(tuple(run[first : last + 1]), core.value, core.reasons)
