"""Answers without a model: the sentences of the sources that say most about the question, verbatim.

Every character of such an answer except the numbers stands in a source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.passages import show_unit, split_units
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.terms import count_words, extract_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.answering.models import Source
    from rag_pipeline.answering.passages import Unit
    from rag_pipeline.core.protocols.embedding import Embedder

_MAX_QUOTES: Final = 5
_MAX_BLOCK_CHARS: Final = 2_000  # a longer listing is left to the source's page
_MIN_WORDS: Final = 4  # shorter units are labels and headings
_RANK_STEP: Final = 0.12  # what a source loses against the one before it
_OPENING_BONUS: Final = 0.05  # a passage's first sentence says what it is about
_REPEAT_SHARE: Final = 0.7  # of a sentence's terms already quoted: it adds too little
_NEW_SHARE: Final = 0.25  # of the question that no sentence before speaks of


@dataclass(frozen=True, slots=True)
class Quote:
    """A unit of a source.

    Attributes:
        source: The source that it stands in.
        unit: Where it stands in the source's text.
        terms: Of its text.
        value: What it is worth as an answer.
    """

    source: Source
    unit: Unit
    terms: frozenset[str]
    value: float = 0.0

    @property
    def text(self) -> str:
        """The unit as it stands in the source."""
        return self.source.text[self.unit.start : self.unit.end]


def choose_quotes(
    question: str,
    sources: Sequence[Source],
    *,
    weights: Mapping[str, float] | None = None,
    embedder: Embedder | None = None,
) -> tuple[Quote, ...]:
    """Choose at most five sentences or code blocks.

    A unit is worth the share of the question's terms that it contains, by weight, and with an
    embedder also its likeness in meaning; later sources count less. Units that repeat others are
    left out. If no unit shares a term with the question, the first units stand for the passage.

    Args:
        question: As asked.
        sources: Best first, numbered from 1.
        weights: Of the question's terms; None weighs all alike.
        embedder: Compares meanings; None compares only words.

    Returns:
        Sources by rank, quotes in the source's order.
    """
    quotes = [quote for source in sources for quote in _read_quotes(source)]
    if not quotes:
        return ()
    worth = _weigh(question, weights)
    values = [_sum_shares(worth, quote.terms) for quote in quotes]
    if embedder is None and not any(values):
        opening: dict[str, Quote] = {}
        for quote in quotes:
            if quote.source is sources[0]:
                opening.setdefault(quote.text, quote)
        return tuple(opening.values())[:_MAX_QUOTES]
    if embedder is not None:
        values = _add_likeness(question, quotes, values, embedder)
    valued = []
    for quote, value in zip(quotes, values, strict=True):
        bonus = _OPENING_BONUS if quote.unit.start == 0 else 0.0
        valued.append(replace(quote, value=value - _RANK_STEP * (quote.source.number - 1) + bonus))
    return tuple(sorted(_choose(valued, worth), key=_place))


def format_quotes(quotes: Sequence[Quote]) -> str:
    """Join quotes into a text: a paragraph for each source, blocks on their own."""
    shown = ""
    for at, quote in enumerate(quotes):
        if at:
            shown += _separate(quotes[at - 1], quote)
        text = show_unit(quote.source.text, quote.unit)
        gap = "\n\n" if quote.unit.ends_with_block else " "
        shown += f"{text}{gap}[{quote.source.number}]"
    return shown


def _separate(last: Quote, following: Quote) -> str:
    entries = {quote.unit.first is TextBlockKind.LIST_ITEM for quote in (last, following)}
    # Prose right after an entry would become a part of it.
    apart = last.source.number != following.source.number or len(entries) == 2
    if apart or last.unit.ends_with_block or following.unit.is_block:
        return "\n\n"
    return "\n" if entries == {True} else " "


def _read_quotes(source: Source) -> list[Quote]:
    units = split_units(source.text, source.blocks)
    quotable = [unit for unit in units if _is_quotable(source.text, unit)]
    if units and not quotable:
        quotable = [replace(units[0], end=units[-1].end, last=units[-1].last)]
    return [
        Quote(source, unit, frozenset(extract_terms(source.text[unit.start : unit.end])))
        for unit in quotable
    ]


def _is_quotable(text: str, unit: Unit) -> bool:
    if unit.is_block:
        return unit.end - unit.start <= _MAX_BLOCK_CHARS
    is_heading = unit.first is TextBlockKind.HEADING
    return not is_heading and count_words(text[unit.start : unit.end]) >= _MIN_WORDS


def _place(quote: Quote) -> tuple[int, int]:
    return quote.source.number, quote.unit.start


def _weigh(question: str, weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the share of each of the question's terms; together 1."""
    worth = {term: (weights or {}).get(term, 1.0) for term in extract_terms(question)}
    total = sum(worth.values()) or 1.0
    return {term: weight / total for term, weight in worth.items()}


def _sum_shares(worth: Mapping[str, float], terms: Iterable[str]) -> float:
    return sum(worth.get(term, 0.0) for term in terms)


def _add_likeness(
    question: str, quotes: Sequence[Quote], values: Sequence[float], embedder: Embedder
) -> list[float]:
    rows, _ = embedder.embed_passages([quote.text for quote in quotes])
    cosines = rows @ embedder.embed_query(question.strip())
    return [
        (value + max(0.0, float(cosine))) / 2 for value, cosine in zip(values, cosines, strict=True)
    ]


def _choose(quotes: Sequence[Quote], worth: Mapping[str, float]) -> list[Quote]:
    """Choose the best quotes that say something new: near the best, or on what others leave out."""
    ordered = sorted(quotes, key=lambda quote: (-quote.value, *_place(quote)))
    chosen: list[Quote] = []
    covered: set[str] = set()
    for quote in ordered:
        if len(chosen) == _MAX_QUOTES:
            break
        # A long block contains some word of almost any question: it must be near the best itself.
        adds = 0.0 if quote.unit.is_block else _sum_shares(worth, quote.terms - covered)
        if chosen and quote.value < ordered[0].value / 2 and adds < _NEW_SHARE:
            continue
        if not any(_repeats(quote, kept) for kept in chosen):
            chosen.append(quote)
            covered |= quote.terms
    return chosen


def _repeats(quote: Quote, kept: Quote) -> bool:
    if not quote.terms:
        return quote.text == kept.text
    return len(quote.terms & kept.terms) >= _REPEAT_SHARE * len(quote.terms)
