"""Read the citations that a model wrote, in any of their forms, and write them as `[1]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.tables import CODE_SPAN, DISPLAYED, INLINE_FORMULA, NO_MARK
from rag_pipeline.core.text.sentences import SENTENCE_MARKS

if TYPE_CHECKING:
    from collections.abc import Collection

_WORD: Final = (
    r"(?i:sources?|src|refs?|references?|citations?|cit|cites?|excerpts?|passages?|documents?|docs?"
    r"|quellen?|fuentes?|fonti?|bronn?e?n?|s)"
)
_LABEL: Final = rf"(?:{_WORD}\s*(?:[:#_.\-]\s*)?(?:(?i:nr|no|n)\.?\s*)?)"
_DETAIL: Final = r"(?:\u2020[^\]\u3011]{0,60}|:\d{1,3}(?:\u2020[^\]\u3011]{0,60})?)?"
_NUMBER: Final = rf"[#^]?\d{{1,4}}{_DETAIL}(?:\s*[-\u2013\u2014]\s*\d{{1,4}})?"
_ITEM: Final = rf"{_LABEL}?{_NUMBER}"
_JOIN: Final = r"\s*(?:[,;&]|\band\b|\bund\b|\bet\b|\by\b|[,;]\s*and\b)\s*"
_LIST: Final = rf"\s*\^?{_ITEM}(?:{_JOIN}{_ITEM})*\s*"
_LABELED: Final = (
    r"\s*(?:(?i:see|cf\.?|from|siehe|vgl\.?|voir|seg\u00fan)\s+)?"
    rf"{_LABEL}{_NUMBER}(?:{_JOIN}{_ITEM})*\s*"
)
_SQUARE: Final = rf"\[{{1,2}}{_LIST}\]{{1,2}}(?:(?!\()|\([^()\s]{{0,200}}\))"
_NAMED: Final = r"\[(?i:sources?|quellen?|fuentes?|ref)\s*:\s*(?P<title>[^\]\n]{1,160})\]"
_OTHER: Final = (
    rf"\u3010{_LIST}\u3011|\uff3b{_LIST}\uff3d"
    rf"|[(\uff08]{_LABELED}[)\uff09]"
    rf"|<sup>\s*\[?{_LIST}\]?\s*</sup>|\\cite\{{{_LIST}\}}|\^\[?{_NUMBER}\]?\^"
    rf"|</?{_LABEL}{_NUMBER}/?>"
    r"|\d\ufe0f?\u20e3"
)
_AT_END: Final = rf"(?=\s*(?:[{SENTENCE_MARKS},;:)*_]|\Z|\n))"
_PLAIN: Final = rf"[(\uff08]\d{{1,2}}(?:\s*,\s*\d{{1,2}})*[)\uff09]{_AT_END}"
_RARE: Final = rf"(?:\{{\d{{1,2}}\}}|<\d{{1,2}}>|\|\d{{1,2}}\|){_AT_END}"
_RAISED: Final = r"[\u00b9\u00b2\u00b3\u2070-\u2079]+"
_CITATION: Final = (
    rf"{_SQUARE}|{_NAMED}|{_OTHER}|{_PLAIN}|{_RARE}"
    rf"|(?:(?<=[^\W\d_]{{3}})|(?<=[{SENTENCE_MARKS}])){_RAISED}{_AT_END}"
)
_PARTS: Final = re.compile(
    r"(?P<fence>`{3,}+|~{3,}+)(?:(?!(?P=fence)).)*+(?:(?P=fence)[`~]*+)?"
    rf"|{CODE_SPAN}|{DISPLAYED}|{INLINE_FORMULA}"
    rf"|(?P<gap>[ \t]*+)(?P<citation>{_CITATION})|{NO_MARK}|[ \t]++",
    re.DOTALL,
)
_MENTION: Final = re.compile(
    r"\b(?:(?i:according to|as(?: (?:stated|described|mentioned|noted|explained) (?:in|by))?"
    r"|based on|per|from|in|laut|gem\u00e4\u00df|selon|seg\u00fan)\s+)?(?i:the\s+)?"
    r"(?i:sources?|excerpts?|passages?|quellen?|fuentes?)\s+(?P<numbers>\[?\d{1,3}\]?"
    r"(?:\s*(?:,|and|&)\s*\[?\d{1,3}\]?)*)"
    r"(?:\s+(?i:says?|states?|explains?|describes?|mentions?|notes?|indicates?)"
    r"(?:\s+(?i:that))?)?"
    r"\s*,?[ ]*"
)
"""The name of a source in a sentence, such as "According to Source 1," and "Source 1 says that"."""

_MENTIONED: Final = "\0"
"""Stands for the name of a source at the beginning of a sentence."""

_BEFORE: Final = " \t>*_#-+.)0123456789"
"""Characters of a list's mark, which may precede the first word of a sentence."""

LEADING_CITATIONS: Final = re.compile(rf"(?:[ \t]*(?:{_SQUARE}|{_OTHER}|{_RAISED}))*")
"""Citations after a sentence, which belong to it."""

_RAISED_DIGITS: Final = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789"
)
_DETAILS: Final = re.compile(r"\u2020[^\],;\u3011]*|(?<=\d):\d+|\]\([^()]*\)")
_AS_SHOWN: Final = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)*\]")
_TAIL: Final = re.compile(rf"[{SENTENCE_MARKS}:;\u2026]+\Z")
_LONGEST_RANGE: Final = 100
_DEFINITION: Final = re.compile(r"\s*(?:[-*+]\s+)?\[\^?\w{1,20}\]:\s")


@dataclass(frozen=True, slots=True)
class ReadCitations:
    """A sentence without its citations, and what they say.

    Attributes:
        text: The sentence without citations.
        numbers: The cited numbers in their order, each once.
        as_shown: True if all citations have the form `[1]` already.
    """

    text: str
    numbers: tuple[int, ...]
    as_shown: bool


def read_citations(
    text: str, known: Collection[int], titles: Collection[tuple[str, int]] = ()
) -> ReadCitations:
    """Find the citations of a sentence in any form that models write.

    Brackets in code and formulas, and indexes such as `joints[0]`, are not citations.

    Args:
        text: A sentence or block that a model wrote.
        known: Numbers of the sources.
        titles: Titles of sources with their numbers, for citations such as `[Source: Balance]`.
    """
    numbers: list[int] = []
    as_shown = True

    def take(part: re.Match[str]) -> str:
        nonlocal as_shown
        written = part.group("citation")
        if written is None:
            return part.group()
        before = text[part.start() - 1 : part.start()]
        found = _read_numbers(written) if part.group("title") is None else []
        is_index = not part.group("gap") and before.isalnum() and written.startswith("[")
        is_plain = written.startswith(("(", "\uff08")) and not re.search(_WORD, written)
        is_entry = is_plain and (not text[: part.start()].strip() or not set(found) <= set(known))
        if is_entry or (is_index and not set(found) & set(known)):
            return part.group()
        if part.group("title") is not None:
            title = part.group("title").casefold()
            found = [number for name, number in titles if name and name.casefold() in title][:1]
        numbers.extend(found)
        is_first = not text[: part.start()].strip(_BEFORE)
        as_shown = as_shown and _AS_SHOWN.fullmatch(written) is not None and not is_first
        return ""

    def mention(found: re.Match[str]) -> str:
        nonlocal as_shown
        named = _read_numbers(found["numbers"])
        if not set(named) <= set(known):
            return found.group()
        numbers.extend(named)
        as_shown = False
        return "" if found.string[: found.start()].strip(_BEFORE) else _MENTIONED

    for title, number in titles:
        named = f"({title})"
        if title and named in text and not text.startswith(named):
            text, as_shown = text.replace(f" {named}", "").replace(named, ""), False
            numbers.append(number)
    stripped = _PARTS.sub(take, text).strip()
    told = stripped if "`" in stripped else _MENTION.sub(mention, stripped).strip()
    before, mark, after = told.partition(_MENTIONED)
    told = before + after[:1].upper() + after[1:] if mark else told
    return ReadCitations(told, tuple(dict.fromkeys(numbers)), as_shown)


def remove_citations(text: str) -> str:
    """Return a text without its citations. Brackets in code and formulas are not changed."""
    return _PARTS.sub(lambda part: "" if part.group("citation") else part.group(), text)


def is_definition(text: str) -> bool:
    """Return True for the definition of a footnote or of a link, such as `[1]: https://...`."""
    return _DEFINITION.match(text) is not None


def place_citations(text: str, numbers: Collection[int], *, is_block: bool) -> str:
    """Return a sentence with its citations before its last mark, or a block with them below it."""
    marks = "".join(f"[{number}]" for number in sorted(numbers))
    if not marks:
        return text
    if is_block:
        return f"{text}\n\n{marks}"
    tail = _TAIL.search(text)
    if tail is None:
        return f"{text} {marks}"
    return f"{text[: tail.start()].rstrip()} {marks}{tail.group()}"


def _read_numbers(citation: str) -> list[int]:
    """Return the source numbers in a citation such as `[1, 3-5]`, in the order of the citation.

    A range such as `3-5` gives all its numbers. A range with more than `_LONGEST_RANGE` numbers
    gives only its two ends.
    """
    plain = _DETAILS.sub("", citation.translate(_RAISED_DIGITS))
    numbers: list[int] = []
    for entry in re.split(r"[,;&]|\b(?:and|und|et|y)\b", plain):
        ends = sorted(map(int, re.findall(r"\d+", entry)))
        if ends:
            is_short = ends[-1] - ends[0] <= _LONGEST_RANGE
            numbers.extend(range(ends[0], ends[-1] + 1) if is_short else ends)
    return numbers
