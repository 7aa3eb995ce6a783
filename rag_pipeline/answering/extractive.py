"""Answers without a model: the sentences of the sources that say most about the question, verbatim.

Every character of such an answer but the numbers stands in a source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import AnswerSentence
from rag_pipeline.answering.passages import (
    ends_with_block,
    is_block,
    split_units,
    unindent,
)
from rag_pipeline.core.terms import count_words, extract_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.answering.models import Source
    from rag_pipeline.core.protocols.embedding import Embedder

_MAX_SENTENCES: Final = 5
_MAX_BLOCK_CHARS: Final = 2_000  # a longer listing is left to the source's page
_MIN_WORDS: Final = 4  # shorter units are labels and headings
_RANK_STEP: Final = 0.12  # what a source loses against the one before it
_OPENING_BONUS: Final = 0.05  # a passage's first sentence says what it is about
_REPEAT_SHARE: Final = 0.7  # of a sentence's terms already quoted: it adds too little
_NEW_SHARE: Final = 0.25  # of the question that no sentence before speaks of
_LIST_ENTRY: Final = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit of a source with what it is worth as an answer."""

    source: int
    start: int
    text: str
    terms: frozenset[str]
    value: float


def extract_answer(
    question: str,
    sources: Sequence[Source],
    *,
    weights: Mapping[str, float] | None = None,
    embedder: Embedder | None = None,
) -> tuple[AnswerSentence, ...]:
    """Choose at most five sentences or code blocks.

    A unit is worth the share of the question's terms that it holds, by weight, and its likeness in
    meaning where an embedder is given; later sources count less. Units that repeat others are left
    out. Where no unit shares a term with the question, the first ones stand for the passage.

    Args:
        question: As asked.
        sources: Best first.
        weights: Of the question's terms; None weighs all alike.
        embedder: Compares meanings; None compares words alone.

    Returns:
        Verbatim units, each citing its own source: sources by rank, units in the source's order.
    """
    units = _read_units(sources)
    if not units:
        return ()
    worth = _weigh(question, weights)
    values = [_sum_shares(worth, unit.terms) for unit in units]
    if embedder is None and not any(values):
        opening = dict.fromkeys(unit.text for unit in units if unit.source == 0)
        first = list(opening)[:_MAX_SENTENCES]
        return tuple(AnswerSentence(text, (sources[0].number,)) for text in first)
    if embedder is not None:
        values = _add_likeness(question, units, values, embedder)
    scored = [
        _Unit(
            unit.source,
            unit.start,
            unit.text,
            unit.terms,
            value - _RANK_STEP * unit.source + (_OPENING_BONUS if unit.start == 0 else 0.0),
        )
        for unit, value in zip(units, values, strict=True)
    ]
    chosen = _choose(scored, worth)
    chosen.sort(key=lambda unit: (unit.source, unit.start))
    return tuple(AnswerSentence(unit.text, (sources[unit.source].number,)) for unit in chosen)


def format_extract(sentences: Sequence[AnswerSentence]) -> str:
    """Join verbatim sentences into a text: a paragraph for each source, blocks on their own.

    Indentation and the marks of block quotes are left out: without the list or quote around it,
    indented code would be shown with its fences.
    """
    shown = ""
    last: AnswerSentence | None = None
    for sentence in sentences:
        text = unindent(sentence.text)
        if last is not None:
            shown += _separate(last, sentence)
        marks = "".join(f"[{number}]" for number in sentence.cited)
        shown += f"{text}\n\n{marks}" if ends_with_block(text) else f"{text} {marks}"
        last = sentence
    return shown


def _separate(last: AnswerSentence, following: AnswerSentence) -> str:
    before, text = unindent(last.text), unindent(following.text)
    entries = {bool(_LIST_ENTRY.match(before)), bool(_LIST_ENTRY.match(text))}
    # Prose right behind an entry would become a part of it.
    apart = last.cited != following.cited or len(entries) == 2
    if apart or ends_with_block(before) or is_block(text):
        return "\n\n"
    return "\n" if entries == {True} else " "


def _read_units(sources: Sequence[Source]) -> list[_Unit]:
    units: list[_Unit] = []
    for at, source in enumerate(sources):
        found = [
            _Unit(at, start, text, frozenset(extract_terms(text)), 0.0)
            for start, end in split_units(source.text)
            if (text := source.text[start:end]) and _is_quotable(text)
        ]
        if not found and source.text.strip():
            text = source.text.strip()
            found = [_Unit(at, 0, text, frozenset(extract_terms(text)), 0.0)]
        units.extend(found)
    return units


def _is_quotable(text: str) -> bool:
    if is_block(text):
        return len(text) <= _MAX_BLOCK_CHARS
    return not text.startswith("#") and count_words(text) >= _MIN_WORDS


def _weigh(question: str, weights: Mapping[str, float] | None) -> dict[str, float]:
    """Share of each of the question's terms; together 1."""
    worth = {term: (weights or {}).get(term, 1.0) for term in extract_terms(question)}
    total = sum(worth.values()) or 1.0
    return {term: weight / total for term, weight in worth.items()}


def _sum_shares(worth: Mapping[str, float], terms: Iterable[str]) -> float:
    return sum(worth.get(term, 0.0) for term in terms)


def _add_likeness(
    question: str, units: Sequence[_Unit], values: Sequence[float], embedder: Embedder
) -> list[float]:
    rows, _ = embedder.embed_passages([unit.text for unit in units])
    cosines = rows @ embedder.embed_query(question.strip())
    return [
        (value + max(0.0, float(cosine))) / 2 for value, cosine in zip(values, cosines, strict=True)
    ]


def _choose(units: Sequence[_Unit], worth: Mapping[str, float]) -> list[_Unit]:
    """The best units that say something new: near the best one, or on what others leave out."""
    ordered = sorted(units, key=lambda unit: (-unit.value, unit.source, unit.start))
    chosen: list[_Unit] = []
    covered: set[str] = set()
    for unit in ordered:
        if len(chosen) == _MAX_SENTENCES:
            break
        # A long block holds some word of almost any question: it must be near the best itself.
        adds = 0.0 if is_block(unit.text) else _sum_shares(worth, unit.terms - covered)
        if chosen and unit.value < ordered[0].value / 2 and adds < _NEW_SHARE:
            continue
        if not any(_repeats(unit, kept) for kept in chosen):
            chosen.append(unit)
            covered |= unit.terms
    return chosen


def _repeats(unit: _Unit, kept: _Unit) -> bool:
    if not unit.terms:
        return unit.text == kept.text
    return len(unit.terms & kept.terms) >= _REPEAT_SHARE * len(unit.terms)
