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

_TICKS: Final = re.compile(r"`+")
_CODE_OR_CITATION: Final = re.compile(
    r"(?P<code>(?P<fence>`{3,}).*?(?:(?P=fence)|\Z)|(?P<ticks>`{1,2})(?!`)[^\n]+?(?P=ticks))"
    r"|(?P<gap>[ \t]*)\[(?P<numbers>\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()",
    re.DOTALL,
)
_UNFINISHED: Final = re.compile(r"[ \t]*\[[\d\s,;]*\]?\Z|[ \t]+\Z")
_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_ONLY_CITATIONS: Final = re.compile(r"(?:\s*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\]\s*[.!?]?)+")


@dataclass(slots=True)
class CitationFilter:
    """Drops unknown numbers from text that comes in pieces.

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
        numbers = _read_numbers(match.group("numbers"))
        kept = [number for number in numbers if number in self.known]
        self.dropped.update(number for number in numbers if number not in self.known)
        if kept == numbers:
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
    return [int(number) for number in re.split(r"\s*[,;]\s*", text)]


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
    while (ticks := _TICKS.search(text, position)) is not None:
        if ticks.end() == len(text):
            return ticks.start()  # the run of backticks may go on
        end = text.find(ticks.group(), ticks.end())
        line_end = text.find("\n", ticks.end())
        if len(ticks.group()) < 3 and line_end != -1 and not -1 < end < line_end:
            position = ticks.end()  # a lone backtick on a finished line encloses nothing
        elif end == -1:
            return ticks.start()
        else:
            position = end + len(ticks.group())
    return None
