"""Citations of an answer: which sentence cites what, and that nothing is cited that was not given.

Square brackets in code are code: fences and code spans are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import AnswerSentence
from rag_pipeline.answering.passages import split_units

if TYPE_CHECKING:
    from collections.abc import Collection

_FENCE_OR_TICKS: Final = re.compile(r"`+|~{3,}|~+\Z")
_NUMBER: Final = r"\d{1,9}(?:\s*[-\u2013\u2014]\s*\d{1,9})?"
_CITATION: Final = rf"\[(?P<word>(?i:sources?)\s*)?(?P<numbers>{_NUMBER}(?:\s*[,;]\s*{_NUMBER})*)\]"
_CODE_OR_CITATION: Final = re.compile(
    r"(?P<code>(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)[`~]*+|\Z)"
    r"|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`))"
    rf"|(?P<gap>(?<![ \t])[ \t]*+|){_CITATION}(?!\()",
    re.DOTALL,
)
_UNFINISHED: Final = re.compile(
    r"(?:(?<![ \t])[ \t]*+|)\[(?i:s?o?u?r?c?e?s?)[\d\s,;\u2013\u2014-]*\]?\Z"
    r"|(?<![ \t])[ \t]++\Z"
)
_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_ONLY_CITATIONS: Final = re.compile(rf"(?:\s*\[{_NUMBER}(?:\s*[,;]\s*{_NUMBER})*\]\s*[.!?]?)+")
_RANGE: Final = re.compile(r"[-\u2013\u2014]")
_LONGEST_RANGE: Final = 100


@dataclass(slots=True)
class CitationFilter:
    """Drops unknown numbers from text that comes in pieces, and writes `[1-3]` or `[Source 1]` as
    `[1][2][3]` or `[1]`.

    A bracket that is still open is held back until it closes, and nothing in a code fence or span
    is touched.

    Attributes:
        known: Numbers that have a source.
        dropped: Unknown numbers seen so far.
    """

    known: Collection[int]
    dropped: set[int] = field(default_factory=set)
    _held: str = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return what can be shown."""
        text = self._held + piece
        cut = _safe_end(text)
        self._held = text[cut:]
        return self._clean(text[:cut])

    def finish(self) -> str:
        """Return what was still held back."""
        held, self._held = self._held, ""
        return self._clean(held)

    def _clean(self, text: str) -> str:
        return _CODE_OR_CITATION.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match.group("code") is not None:
            return match.group()
        written = match.group("numbers")
        numbers = _read_numbers(written)
        kept = [number for number in numbers if number in self.known]
        self.dropped.update(number for number in numbers if number not in self.known)
        if kept == numbers and not match.group("word") and not _RANGE.search(written):
            return match.group()
        return match.group("gap") + "".join(f"[{number}]" for number in kept) if kept else ""


def split_answer(text: str) -> tuple[AnswerSentence, ...]:
    """Split an answer into sentences with the numbers they cite.

    Citations behind the full stop belong to the sentence before them; code blocks are one sentence
    and headings none.
    """
    sentences: list[AnswerSentence] = []
    for start, end in split_units(text):
        unit = text[start:end]
        if unit.startswith("#") and "\n" not in unit:
            continue
        lead = _ONLY_CITATIONS.match(unit)
        if lead and sentences:
            last = sentences[-1]
            cited = tuple(sorted({*last.cited, *_cited_in(lead.group())}))
            sentences[-1] = AnswerSentence(f"{last.text} {lead.group().strip()}", cited)
            unit = unit[lead.end() :].strip()
        if unit and (_WORDS.search(unit) or "`" in unit):
            sentences.append(AnswerSentence(unit, _cited_in(unit)))
    return tuple(sentences)


def _cited_in(text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for match in _CODE_OR_CITATION.finditer(text):
        if match.group("numbers") is not None:
            found.update(_read_numbers(match.group("numbers")))
    return tuple(sorted(found))


def _read_numbers(text: str) -> list[int]:
    """Numbers as listed; of a range all, of a very long one its ends."""
    numbers: list[int] = []
    for entry in re.split(r"\s*[,;]\s*", text):
        ends = sorted(int(end) for end in _RANGE.split(entry))
        is_short = ends[-1] - ends[0] <= _LONGEST_RANGE
        numbers.extend(range(ends[0], ends[-1] + 1) if is_short else ends)
    return numbers


def _safe_end(text: str) -> int:
    """Up to where a text can be cleaned without knowing what follows."""
    open_code = _find_open_code(text)
    if open_code is not None:
        return open_code
    unfinished = _UNFINISHED.search(text)
    return unfinished.start() if unfinished else len(text)


def _find_open_code(text: str) -> int | None:
    """Where a code fence or span begins that has not ended; None where there is none."""
    position = 0
    while (opening := _FENCE_OR_TICKS.search(text, position)) is not None:
        marks, position = opening.group(), opening.end()
        if position == len(text):
            return opening.start()  # the run may go on
        is_span = len(marks) < 3
        pattern = rf"(?<!`){marks}(?!`)" if is_span else rf"{marks}[`~]*"
        end = text.find("\n", position) if is_span else -1
        closing = re.compile(pattern).search(text, position, len(text) if end == -1 else end)
        if closing is not None and closing.end() < len(text):
            position = closing.end()
        elif end == -1:
            return opening.start()
    return None
