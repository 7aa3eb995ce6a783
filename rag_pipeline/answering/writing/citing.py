"""Check the citations of an answer, and find out which sentence cites which source.

`CitationFilter` checks a model's text piece by piece. Pieces are shown to the reader at once and
cannot be taken back, so the filter cannot wait until a whole block has arrived and been parsed. It
therefore uses a regular expression to find code and formulas, whose brackets are not citations.
`split_answer` splits the complete answer by the blocks that the Markdown parser finds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import AnswerSentence
from rag_pipeline.answering.units import (
    CODE_SPAN,
    DISPLAYED,
    INLINE_FORMULA,
    NO_MARK,
    find_blocks,
    split_units,
)
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import SENTENCE_MARKS

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
"""Beginnings of code spans, formulas and citations that the next piece of text may complete."""
_PLAIN: Final = rf"{NO_MARK}|~++|[ \t]++"
_PARTS: Final = re.compile(rf"{_DONE}|{_PLAIN}", re.DOTALL)
_PARTS_SO_FAR: Final = re.compile(rf"{_DONE}|{_OPEN}|{_PLAIN}", re.DOTALL)
"""Like `_PARTS`, for a text that may go on. A part that reaches its end may still change."""

_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_ONLY_CITATIONS: Final = re.compile(rf"(?:\s*{_CITATION}\s*[.!?]?)+")
_CITED_END: Final = re.compile(rf"(?<=[{SENTENCE_MARKS}])(?:{_CITATION})+")
_END_OF_LINE: Final = re.compile(rf"(?<=\S)[ \t]*+(?:{_CITATION}[ \t]*)+$", re.MULTILINE)
_AS_SHOWN: Final = re.compile(r"\[\d+(?:\s*[,;]\s*\d+)*\]")
_LONGEST_RANGE: Final = 100


@dataclass(slots=True)
class CitationFilter:
    """A filter that checks the citations in a text which arrives in pieces.

    Source numbers in brackets that are not in `known` are removed. `[1-3]`, `[1 and 3]` and
    `[Source 1]` are rewritten as `[1][2][3]`, `[1][3]` and `[1]`. White space at both ends of the
    text is removed. A bracket that is still open is kept back until it closes. Code and formulas
    are not changed.

    Attributes:
        known: Numbers of the sources that the text may cite.
        dropped: Cited numbers that were removed so far because they are not in `known`.
        text: All text that the filter has returned so far.
    """

    known: Collection[int]
    dropped: set[int] = field(default_factory=set)
    text: str = ""
    _pending: str = ""
    _blank: str = ""

    def feed(self, piece: str) -> str:
        """Add the next piece of the text, and return the checked text that can be shown now."""
        text = self._pending + piece
        shown, position = "", 0
        for part in _PARTS_SO_FAR.finditer(text):
            if part.end() == len(text):
                self._pending = part.group()
                return self._pass(shown + text[position : part.start()])
            shown += text[position : part.start()] + self._replace(part)
            position = part.end()
        self._pending = ""
        return self._pass(shown + text[position:])

    def finish(self) -> str:
        """Return the text that is still kept back, checked; call this once after the last piece."""
        rest, self._pending = self._pending, ""
        return self._pass(_PARTS.sub(self._replace, rest))

    def _pass(self, piece: str) -> str:
        """Return a checked piece without the white space at its end.

        That white space is put before the next piece, or dropped if no text follows. White space at
        the beginning of the whole text is dropped.
        """
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


def split_answer(text: str, known: Collection[int]) -> tuple[AnswerSentence, ...]:
    """Split an answer into sentences, each with the numbers of the sources that it cites.

    A citation after a full stop belongs to the sentence before it. A code block counts as one
    sentence. Headings, and pieces without words or code, are left out if they cite nothing.

    Args:
        text: The text of the answer.
        known: Numbers of the sources that the answer may cite. Other numbers are ignored.
    """
    # The parser does not read "``` [1]" as the end of a fence, so citations at line ends are
    # replaced by blanks.
    blocks = find_blocks(_END_OF_LINE.sub(lambda match: " " * len(match.group()), text))
    # Closing brackets after a full stop stay in its sentence, so they replace citations there.
    marked = _CITED_END.sub(lambda match: "]" * len(match.group()), text)
    sentences: list[AnswerSentence] = []
    with_content: list[bool] = []
    for part in split_units(marked, blocks):
        unit = text[part.start : part.end]
        cited = _cited_in(unit, known)
        if part.first is TextBlockKind.HEADING and not cited:
            continue
        lead = _ONLY_CITATIONS.match(unit)
        if lead and sentences:
            last = sentences[-1]
            both = tuple(sorted({*last.cited, *_cited_in(lead.group(), known)}))
            sentences[-1] = AnswerSentence(f"{last.text} {lead.group().strip()}", both)
            unit = unit[lead.end() :].strip()
            cited = _cited_in(unit, known)
        if unit:
            sentences.append(AnswerSentence(unit, cited))
            with_content.append(part.is_block or "`" in unit or bool(_WORDS.search(unit)))
    kept = zip(sentences, with_content, strict=True)
    return tuple(sentence for sentence, content in kept if content or sentence.cited)


def remove_citations(text: str) -> str:
    """Return a text without its citations. Brackets in code and formulas are not changed."""
    return _PARTS.sub(lambda part: "" if part.group("citation") else part.group(), text)


def _cited_in(text: str, known: Collection[int]) -> tuple[int, ...]:
    written = (part.group("citation") for part in _PARTS.finditer(text))
    found = {number for entry in written if entry for number in _read_numbers(entry)}
    return tuple(sorted(found.intersection(known)))


def _read_numbers(citation: str) -> list[int]:
    """Return the source numbers in a citation such as `[1, 3-5]`, in the order of the citation.

    A range such as `3-5` gives all its numbers. A range with more than `_LONGEST_RANGE` numbers
    gives only its two ends.
    """
    numbers: list[int] = []
    for entry in re.split(r"[,;]|and", citation):
        ends = sorted(map(int, re.findall(r"\d+", entry)))
        if ends:
            is_short = ends[-1] - ends[0] <= _LONGEST_RANGE
            numbers.extend(range(ends[0], ends[-1] + 1) if is_short else ends)
    return numbers
