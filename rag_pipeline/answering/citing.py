"""Citations of an answer: which sentence cites what, and that nothing is cited that was not given.

A model's text comes in pieces, so the filter cannot wait for blocks: a fence or formula may still
be open, and what was shown cannot be taken back. It therefore keeps one regular expression of its
own for code and formulas, whose brackets are not citations. The complete answer is split by blocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import AnswerSentence
from rag_pipeline.answering.passages import (
    CODE_SPAN,
    DISPLAYED,
    INLINE_FORMULA,
    NO_MARK,
    find_blocks,
    split_units,
)
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.sentences import SENTENCE_MARKS

if TYPE_CHECKING:
    from collections.abc import Collection

_NUMBER: Final = r"(?:(?i:sources?)\s*)?\d{1,9}(?:\s*[-\u2013\u2014]\s*\d{1,9})?"
_LIST: Final = rf"\s*{_NUMBER}(?:(?:\s*[,;](?:\s*and\b)?|\s+and\b)\s*{_NUMBER})*\s*"
_CITATION: Final = rf"(?:\[{_LIST}\]|\[\[{_LIST}\]\])(?!\()"
_DONE: Final = (
    r"(?P<fence>`{3,}+|~{3,}+)(?:(?!(?P=fence)).)*+(?:(?P=fence)[`~]*+)?"
    rf"|{CODE_SPAN}|{DISPLAYED}|{INLINE_FORMULA}"
    rf"|(?P<gap>[ \t]*+)(?P<citation>{_CITATION})"
)
_OPEN: Final = (
    r"`{1,2}(?!`)[^\n]*\Z"
    r"|\$\$(?:(?!\$\$|\n[ \t\r]*\n).)*+\Z"
    r"|\$(?![\s$])(?:\\[^\n]|[^\\$\n])*+\\?\Z"
    r"|[ \t]*+\[{1,2}(?i:[sourceand\d\s,;\u2013\u2014-])*+\]?\Z"
)
"""Beginnings of code spans, formulas and citations that the next piece may close."""
_PLAIN: Final = rf"{NO_MARK}|~++|[ \t]++"
_PARTS: Final = re.compile(rf"{_DONE}|{_PLAIN}", re.DOTALL)
_PARTS_SO_FAR: Final = re.compile(rf"{_DONE}|{_OPEN}|{_PLAIN}", re.DOTALL)
"""Of a text that may go on: a part that reaches its end may become another one."""

_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_ONLY_CITATIONS: Final = re.compile(rf"(?:\s*{_CITATION}\s*[.!?]?)+")
_CITED_END: Final = re.compile(rf"(?<=[{SENTENCE_MARKS}])(?:{_CITATION})+")
_END_OF_LINE: Final = re.compile(rf"(?<=\S)[ \t]*+(?:{_CITATION}[ \t]*)+$", re.MULTILINE)
_AS_SHOWN: Final = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)*\]")
_LONGEST_RANGE: Final = 100


@dataclass(slots=True)
class CitationFilter:
    """Passes on a text that comes in pieces, with checked citations.

    Unknown numbers are dropped; `[1-3]`, `[1 and 3]` or `[Source 1]` become `[1][2][3]`, `[1][3]`
    or `[1]`; white space at both ends of the text is left out. A bracket that is still open is held
    back until it closes, and nothing in code or formulas is touched.

    Attributes:
        known: Numbers that have a source.
        dropped: Unknown numbers seen so far.
        text: Everything that was passed on.
    """

    known: Collection[int]
    dropped: set[int] = field(default_factory=set)
    text: str = ""
    _held: str = ""
    _blank: str = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return what can be shown."""
        text = self._held + piece
        shown, position = "", 0
        for part in _PARTS_SO_FAR.finditer(text):
            if part.end() == len(text):
                self._held = part.group()
                return self._pass(shown + text[position : part.start()])
            shown += text[position : part.start()] + self._replace(part)
            position = part.end()
        self._held = ""
        return self._pass(shown + text[position:])

    def finish(self) -> str:
        """Return what was still held back."""
        held, self._held = self._held, ""
        return self._pass(_PARTS.sub(self._replace, held))

    def _pass(self, piece: str) -> str:
        """Hold white space back until something else follows it; leave it out at the start."""
        waiting = self._blank + piece
        if not self.text:
            waiting = waiting.lstrip()
        shown = waiting.rstrip()
        self._blank = waiting[len(shown) :]
        self.text += shown
        return shown

    def _replace(self, part: re.Match[str]) -> str:
        written = part.group("citation")
        if written is None:
            return part.group()
        numbers = _read_numbers(written)
        kept = [number for number in numbers if number in self.known]
        self.dropped.update(number for number in numbers if number not in self.known)
        if kept == numbers and _AS_SHOWN.fullmatch(written):
            return part.group()
        return part.group("gap") + "".join(f"[{number}]" for number in kept) if kept else ""


def split_answer(text: str) -> tuple[AnswerSentence, ...]:
    """Split an answer into sentences with the numbers they cite.

    Citations after the full stop belong to the sentence before them; a code block is one sentence.
    Headings, and units with neither word nor code, are sentences only if they cite.
    """
    # "``` [1]" closes no fence, so citations at the end of a line are hidden from the parser.
    blocks = find_blocks(_END_OF_LINE.sub(lambda match: " " * len(match.group()), text))
    # A citation after a full stop is one more closing bracket to the rules of sentences.
    marked = _CITED_END.sub(lambda match: "]" * len(match.group()), text)
    sentences: list[AnswerSentence] = []
    with_content: list[bool] = []
    for part in split_units(marked, blocks):
        unit = text[part.start : part.end]
        cited = _cited_in(unit)
        if part.first is TextBlockKind.HEADING and not cited:
            continue
        lead = _ONLY_CITATIONS.match(unit)
        if lead and sentences:
            last = sentences[-1]
            both = tuple(sorted({*last.cited, *_cited_in(lead.group())}))
            sentences[-1] = AnswerSentence(f"{last.text} {lead.group().strip()}", both)
            unit = unit[lead.end() :].strip()
            cited = _cited_in(unit)
        if unit:
            sentences.append(AnswerSentence(unit, cited))
            with_content.append(part.is_block or "`" in unit or bool(_WORDS.search(unit)))
    kept = zip(sentences, with_content, strict=True)
    return tuple(sentence for sentence, content in kept if content or sentence.cited)


def _cited_in(text: str) -> tuple[int, ...]:
    written = (part.group("citation") for part in _PARTS.finditer(text))
    found = {number for entry in written if entry for number in _read_numbers(entry)}
    return tuple(sorted(found))


def _read_numbers(citation: str) -> list[int]:
    """Return the numbers as listed: all of a range, only the ends of a very long range."""
    numbers: list[int] = []
    for entry in re.split(r"[,;]|and", citation):
        ends = sorted(map(int, re.findall(r"\d+", entry)))
        if ends:
            is_short = ends[-1] - ends[0] <= _LONGEST_RANGE
            numbers.extend(range(ends[0], ends[-1] + 1) if is_short else ends)
    return numbers
