"""The words, names and numbers of a source, in the forms in which a sentence may repeat them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.units import find_blocks
from rag_pipeline.answering.writing.numbers import KnownNumbers, unify_characters
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import (
    STOP_WORDS,
    UNSPACED,
    extract_terms,
    extract_words,
    find_distinct_terms,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.models import Source

_NO_LETTER: Final = re.compile(r"[\W_]+")
_SHORTEST_RUN: Final = 4  # letters; a shorter name occurs in a text without spaces by chance
_STEM: Final = 5  # letters by which word forms are compared; stemming misses some forms
_SAME_WORDS: Final = 0.8  # share of the words of a sentence that its opposite has too
_NEGATIONS: Final = frozenset({"not", "no", "never", "cannot", "nicht", "kein", "nie", "jamais"})
_NEGATED: Final = re.compile(
    r"\b(?:not|no|never|cannot|nor|neither|without|nicht|kein\w*|nie|jamais|nunca)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_LONGEST_ENDING: Final = 3  # letters by which two forms of a name may differ: Bayes, Bayesian


class KnownText:
    """The text of a source with its title and section, prepared for look-ups.

    Args:
        source: The source.

    Attributes:
        text: Title, section, address and text of the source, with unified characters.
        words: All words in lower case.
        lower_words: The words that are written in lower case.
    """

    def __init__(self, source: Source) -> None:
        citation = source.citation
        place = dict.fromkeys((citation.title, citation.section, citation.url))
        self._source = source
        self.text = unify_characters("\n".join((*place, source.text)))
        self._written = extract_words(self.text)
        spaced = extract_words(UNSPACED.sub(" ", self.text))
        self.words = frozenset(word.casefold() for word in [*self._written, *spaced])
        self.lower_words = frozenset(word for word in self._written if word.islower())

    @cached_property
    def numbers(self) -> KnownNumbers:
        """The numbers that a sentence may take from the text.

        These are the numbers in the text and the number of entries of each of its lists.
        """
        blocks = self._source.blocks or find_blocks(self._source.text)
        lists = [block for block in blocks if block.kind is TextBlockKind.LIST]
        entries = [block for block in blocks if block.kind is TextBlockKind.LIST_ITEM]
        owners = Counter(
            max((kept.start for kept in lists if kept.start <= entry.start < kept.end), default=-1)
            for entry in entries
        )
        return KnownNumbers(self.text, frozenset(owners.values()))

    def quotes(self, text: str) -> bool:
        """Return True if the words of `text` stand in this text one after the other."""
        return f" {' '.join(extract_words(text))} " in self._sequence

    def has_code(self, code: str) -> bool:
        """Return True if this text contains the code, whatever the white space."""
        return "".join(code.split()) in self._without_blanks

    def has_identifier(self, word: str) -> bool:
        """Return True if this text contains an identifier, possibly written as several words."""
        joined = _join(word)
        long_enough = len(joined) >= _SHORTEST_RUN
        return word.casefold() in self.words or (long_enough and joined in self._joined)

    def has_name(self, name: str) -> bool:
        """Return True if this text contains a name, another form of it, or what it abbreviates."""
        lower = name.casefold().removesuffix("s")
        if self.has_identifier(name) or lower in self.words:
            return True
        if not self._terms.isdisjoint(extract_terms(name)[:1]):
            return True
        if sum(char.isupper() for char in name) > 1 and any(lower in run for run in self._initials):
            return True
        start = lower[: max(_SHORTEST_RUN, len(lower) - _LONGEST_ENDING)]
        return lower.isalpha() and any(term.startswith(start) for term in self._terms)

    def has_words(self, words: Sequence[str]) -> bool:
        """Return True if any of the words is in this text, possibly in another form."""
        terms = {term for word in words for term in extract_terms(word)}
        starts = {term[:_STEM] for term in terms if len(term) >= _STEM}
        return not terms.isdisjoint(self._terms) or not starts.isdisjoint(self._starts)

    def contradicts(self, text: str) -> bool:
        """Return True if the sentence that is nearest to `text` says the opposite.

        Two sentences with almost the same words are opposites if only one of them has a negation.
        """
        terms = find_distinct_terms(text) - _NEGATIONS
        if not terms or self.quotes(text):
            return False
        nearest = max(
            self._sentences, key=lambda one: (len(terms & one[0]), -len(one[0])), default=None
        )
        if nearest is None or len(terms & nearest[0]) < _SAME_WORDS * len(terms):
            return False
        return nearest[1] != _is_negated(text)

    @cached_property
    def _sentences(self) -> list[tuple[frozenset[str], bool]]:
        """The terms of each sentence, and whether the sentence has a negation."""
        parts = [self.text[start:end] for start, end in split_sentences(self.text)]
        return [(find_distinct_terms(part) - _NEGATIONS, _is_negated(part)) for part in parts]

    @cached_property
    def _sequence(self) -> str:
        return f" {' '.join(self._written)} "

    @cached_property
    def _without_blanks(self) -> str:
        return "".join(self.text.split())

    @cached_property
    def _joined(self) -> str:
        return _join(self.text)

    @cached_property
    def _terms(self) -> frozenset[str]:
        return find_distinct_terms(self.text)

    @cached_property
    def _starts(self) -> frozenset[str]:
        return frozenset(term[:_STEM] for term in self._terms if len(term) >= _STEM)

    @cached_property
    def _initials(self) -> tuple[str, str]:
        """First letters of all words, and of all words that are not stop words."""
        lower = [word.casefold() for word in self._written]
        return (
            "".join(word[0] for word in lower),
            "".join(word[0] for word in lower if word not in STOP_WORDS),
        )


def _is_negated(text: str) -> bool:
    return _NEGATED.search(text) is not None


def _join(text: str) -> str:
    return _NO_LETTER.sub("", text).casefold()
