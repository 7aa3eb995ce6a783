"""Find the abbreviations that a text spells out, such as "Non-Maximum Suppression (NMS)".

The sparse vector of a chunk that spells out an abbreviation has a mark for each of its two forms. A
search for the marks of a question finds these chunks, and their texts name the other form.
Increase FORMAT_VERSION with every change in this module, because sparse vectors contain marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.terms import extract_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SHORT: Final = r"(?=(?:[a-z]*[A-Z]){2})[A-Za-z]{2,8}"
_BEFORE: Final = re.compile(rf"\(\s?[*_`]{{0,3}}({_SHORT}?)s?[*_`]{{0,3}}\s?[,;)]")
"""The short form in brackets after the long form."""

_AFTER: Final = re.compile(
    rf"(?<![\w-])({_SHORT}?)s?[*_`]{{0,3}}\s?(?:\(|\||:|\u2013|\u2014|,?\s(?:stands?|short)\sfor\s)"
    r"[ \t]?([^()|\n.;:]{3,80})"
)
"""The short form, and the text after it that may be the long form."""

_MAX_WORDS: Final = 8  # words of a long form
_MAX_TERMS: Final = 48  # terms of a question in which abbreviations are looked for
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_SKIPPED: Final = frozenset(
    {"a", "an", "and", "by", "for", "in", "of", "on", "or", "over", "the", "to", "with"}
)
_BREAK: Final = re.compile(r"[.;:!?|()]")


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """An abbreviation as a text spells it out.

    Attributes:
        short: The short form, such as `NMS`.
        long: The long form, such as `Non-Maximum Suppression`.
        short_term: The search term of the short form.
        long_terms: The search terms of the long form, in order.
    """

    short: str
    long: str
    short_term: str
    long_terms: tuple[str, ...]


def find_abbreviations(text: str) -> list[Abbreviation]:
    """Return the abbreviations that a text spells out, in order of the text.

    The long form stands before the short form in brackets, or after it. Its words must begin with
    the letters of the short form; words such as `of` may be missing from it.
    """
    found: list[Abbreviation | None] = []
    for match in _BEFORE.finditer(text):
        before = text[max(0, match.start() - 100) : match.start()]
        before = before[max((stop.end() for stop in _BREAK.finditer(before)), default=0) :]
        words = [*_LETTERS.finditer(before)][-_MAX_WORDS:]
        ends = [words[first:] for first in range(len(words) - 2, -1, -1)]
        found.append(_choose(before, ends, match[1]))
    for match in _AFTER.finditer(text):
        words = [*_LETTERS.finditer(match[2])][:_MAX_WORDS]
        if words and not match[2][: words[0].start()].strip('*_`" '):
            starts = [words[:last] for last in range(2, len(words) + 1)]
            found.append(_choose(match[2], starts, match[1]))
    return list(dict.fromkeys(filter(None, found)))


def mark_abbreviations(text: str) -> list[str]:
    """Return the marks of the abbreviations that a text spells out, two for each."""
    return [
        mark
        for one in find_abbreviations(text)
        for mark in (_mark([one.short_term]), _mark(one.long_terms))
    ]


def mark_question(question: str) -> list[str]:
    """Return the marks of all abbreviations and long forms that a question may contain."""
    terms = extract_terms(question)[:_MAX_TERMS]
    ends = range(1, _MAX_WORDS + 1)
    runs = [terms[at : at + size] for size in ends for at in range(len(terms) - size + 1)]
    return list(dict.fromkeys(map(_mark, runs)))


def find_unspelled(question: str, abbreviations: Iterable[Abbreviation]) -> list[Abbreviation]:
    """Return the abbreviations of which a question has only the short form."""
    terms = extract_terms(question)
    return [
        one
        for one in abbreviations
        if one.short_term in terms and not _contains(terms, one.long_terms)
    ]


def find_unshortened(question: str, abbreviations: Iterable[Abbreviation]) -> list[Abbreviation]:
    """Return the abbreviations of which a question has only the long form."""
    terms = extract_terms(question)
    return [
        one
        for one in abbreviations
        if one.short_term not in terms and _contains(terms, one.long_terms)
    ]


def add_other_forms(terms: frozenset[str], abbreviations: Iterable[Abbreviation]) -> frozenset[str]:
    """Return the terms of a text with those of both forms of each abbreviation that it contains."""
    for one in abbreviations:
        if one.short_term in terms or terms.issuperset(one.long_terms):
            terms |= {one.short_term, *one.long_terms}
    return terms


def _contains(terms: Sequence[str], run: Sequence[str]) -> bool:
    return f" {' '.join(run)} " in f" {' '.join(terms)} "


def _mark(terms: Sequence[str]) -> str:
    return "=" + "+".join(terms)


def _choose(text: str, runs: Sequence[Sequence[re.Match[str]]], short: str) -> Abbreviation | None:
    """Return the abbreviation that the first run of words spells, first by initial letters only.

    It is None if no run spells the short form, or if the run has fewer than two search terms.
    """
    for only_initials in (True, False):
        for words in runs:
            spoken = [word[0].lower() for word in words]
            if _spells(spoken, short.lower(), only_initials=only_initials):
                long = text[words[0].start() : words[-1].end()]
                terms = tuple(extract_terms(long))
                return Abbreviation(short, long, short.lower(), terms) if len(terms) > 1 else None
    return None


def _spells(words: Sequence[str], short: str, *, only_initials: bool) -> bool:
    """Return True if the letters of a short form begin the words, and all letters are used.

    Each word gives its first letter. Unless only these count, it may give further letters in order:
    `hypertext` gives two of HTTP. At least half of the letters are first letters.
    """
    if 2 * len(words) < len(short):
        return False
    open_ends = {0}  # numbers of letters that the words so far can give
    for at, word in enumerate(words):
        ends = set(open_ends) if at and word in _SKIPPED else set()
        for before in open_ends:
            used, letter = before, 0 if short[before : before + 1] == word[0] else -1
            while letter >= 0:
                used += 1
                ends.add(used)
                is_done = only_initials or used == len(short)
                letter = -1 if is_done else word.find(short[used], letter + 1)
        open_ends = ends
    return len(short) in open_ends
