"""Find the sentences of cleaned text, and the lines of the source that a text stands in."""

from __future__ import annotations

import bisect
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence


Run: TypeAlias = "tuple[int, int, int]"
"""Characters that cleaning keeps: start and end (exclusive) in the source, start in the text."""
Hold: TypeAlias = "tuple[int, int]"
"""Start and end (exclusive) of characters that must not be cut apart, such as a link."""


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Consecutive lines of a file.

    Attributes:
        path: Path of the file below the site's folder.
        start_line: First line, from 1.
        end_line: Last line, inclusive.
    """

    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """The origin of consecutive lines of a page's text, which come from one file.

    Attributes:
        start: First of these lines in the text, from 1. The last one is before the next origin.
        path: Path of the file below the site's folder; empty for a text that no file contains.
        file_line: Line of the file that is the line `start` of the text.
        page_line: Line of the page that shows the file; None for lines of the page itself.
    """

    start: int
    path: str
    file_line: int
    page_line: int | None = None


@dataclass(frozen=True, slots=True)
class PageNotes:
    """The parts of a page that the parser could not read.

    Attributes:
        warnings: Files that are missing or cannot be shown, and directives of the site's plugins.
        left_out: Number of expressions without a known value, which the text leaves out.
        components: Names of the components with a text that cannot be read, without repeats.
    """

    warnings: tuple[str, ...] = ()
    left_out: int = 0
    components: tuple[str, ...] = ()


NO_NOTES: Final = PageNotes()


def find_page_line(origins: Sequence[LineOrigin], line: int) -> int:
    """Return the line of the page's own file for a line of its text.

    All lines of another file stand at the line of the page that shows the file. Without origins,
    the text is the file, and the line is returned unchanged.
    """
    if not origins:
        return line
    origin = origins[_find(origins, line)]
    if origin.page_line is not None:
        return origin.page_line
    return origin.file_line + line - origin.start


def find_sources(origins: Sequence[LineOrigin], first: int, last: int) -> tuple[SourceLines, ...]:
    """Return the files and lines from which some lines of a page's text come, in order.

    The result is empty if all of the lines are in the page's own file.

    Args:
        origins: The origins of the text, in order. Empty if the text is the file.
        first: First line of the text, from 1.
        last: Last line, inclusive.
    """
    if not origins:
        return ()
    begin, end = _find(origins, first), _find(origins, last)
    if begin == end and origins[begin].page_line is None:
        return ()
    found = []
    has_other_file = False
    for at in range(begin, end + 1):
        origin = origins[at]
        if not origin.path:
            continue
        has_other_file |= origin.page_line is not None
        until = last if at == end else origins[at + 1].start - 1
        shift = origin.file_line - origin.start
        start = max(max(first, origin.start) + shift, 1)
        found.append(SourceLines(origin.path, start, until + shift))
    return tuple(found) if has_other_file else ()


def _find(origins: Sequence[LineOrigin], line: int) -> int:
    return max(bisect.bisect_right(origins, line, key=lambda origin: origin.start) - 1, 0)


# The last three are of Hindi, Urdu and Arabic. Chinese and Japanese marks have no space after them.
_SPACED_MARKS: Final = ".!?\u0964\u06d4\u061f"
_WIDE_MARKS: Final = "\u3002\uff01\uff1f"
SENTENCE_MARKS: Final = _SPACED_MARKS + _WIDE_MARKS
"""All punctuation marks that end a sentence, as one string."""

_BOUNDARY: Final = re.compile(
    rf"(?<![{_SPACED_MARKS}])(?P<end>[{_SPACED_MARKS}]++[\"')\]*_]*+)[ \t]++"
    r"(?=[\"'(\[*_`$]|[^\W_])"
    rf"|(?<![{_WIDE_MARKS}])(?P<wide>[{_WIDE_MARKS}]++[\"')\]*_\u2019\u201d\u300b\u300d\u300f\uff09]*+)"
    r"[ \t]*+(?=\S)"
    r"|(?<![ \t\r])(?P<line>[ \t\r]*+\n\s*)"
)
"""Possible ends of sentences.

The look-behinds and possessive quantifiers make the search visit each run of marks or blanks only
once. Without them the time grew with the square of the length of a run.
"""

_ABBREVIATIONS: Final = frozenset(
    (  # noqa: SIM905  # shorter than a list
        "approx cf ch dr e.g ed eds eq eqs etc fig figs i.e incl inc jr mr mrs ms no nos p pp "
        "prof resp sec st vol vs"
    ).split()
)
_LAST_WORD: Final = re.compile(r"([^\W\d_](?:[^\W\d_]|\.)*)\.$")
_MEASURE: Final = re.compile(r"[\d$]\s?(?:ms|sec)\.$")  # a unit, not "Ms." or "section"
_LIST_NUMBER: Final = re.compile(r"(?:^|\n)[ \t]*\d{1,3}\.$")
_CLOSING_MARKS: Final = frozenset(SENTENCE_MARKS + ":\uff1a")
_WORD: Final = re.compile(r"\S*")
_BLOCK_START: Final = re.compile(r"[-*+] |\d{1,3}[.)] |[#>|]|`{3}|~{3}|:::|\$\$")
_NEVER_WRAPPED: Final = ("#", "|")
_HARD_BREAK: Final = ("\\", "  ", "\t")
_MAX_LOOK_BACK: Final = 24  # characters; longer than any abbreviation
_WRAP_WIDTHS: Final = range(60, 131)  # columns at which authors usually wrap prose


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return start and end (exclusive) of each sentence of a text, in order.

    A sentence ends at a punctuation mark, unless a lower-case letter follows or the mark belongs to
    an abbreviation, an initial or a list number. A sentence also ends at a line break, so each list
    entry, table row and code line counts as one sentence. A line break does not end a sentence if
    the next line starts in lower case, or if the text is a paragraph wrapped at a fixed width.

    The spans contain every character of the text except white space between sentences. A text of
    only white space gives an empty list.
    """
    spans: list[tuple[int, int]] = []
    lines = _Lines(text)
    start = len(text) - len(text.lstrip())
    for match in _BOUNDARY.finditer(text):
        if match.start() < start:
            continue
        if match.group("line") is not None:
            end, following = match.start(), match.end()
            one_break = "\n" not in match.group().strip(" \t\r")[1:]
            open_line = one_break and text[end - 1 : end] not in _CLOSING_MARKS
            first = text[following : following + 1]
            goes_on = first.islower() or first in {",", ";", "("}
            if open_line and (goes_on or lines.is_wrapped_before(following)):
                continue
        elif match.group("wide") is not None:
            end, following = match.end("wide"), match.end()
        else:
            end, following = match.end("end"), match.end()
            if text[following].islower():
                continue
            if match.group("end").startswith(".") and _is_abbreviation(text, match.start() + 1):
                continue
        if end > start:
            spans.append((start, end))
        start = following
    end = len(text.rstrip())
    if end > start:
        spans.append((start, end))
    return spans


class _Lines:
    """The lines of a text, each with the width of the longest line of its paragraph."""

    def __init__(self, text: str) -> None:
        self._text = text
        lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self._lines = [line.removesuffix("\r") for line in lines]
        self._widths: list[int] = []
        for blank, paragraph in groupby(self._lines, key=lambda line: not line.strip()):
            widths = [len(line.rstrip()) for line in paragraph]
            self._widths += [0 if blank else max(widths)] * len(widths)

    def is_wrapped_before(self, position: int) -> bool:
        """Return True if the line at an offset continues a paragraph wrapped at a fixed width.

        That is the case if the line's first word was too long to fit on the line before.
        """
        at = bisect_right(self._starts, position) - 1
        before, width = self._lines[at - 1], self._widths[at]
        if width not in _WRAP_WIDTHS or before.endswith(_HARD_BREAK):
            return False
        if before.lstrip().startswith(_NEVER_WRAPPED) or _BLOCK_START.match(self._text, position):
            return False
        word = _WORD.match(self._text, position)
        return word is not None and len(before.rstrip()) + 1 + len(word.group()) > width


def _is_abbreviation(text: str, end: int) -> bool:
    looked_at = max(0, end - _MAX_LOOK_BACK)
    if _LIST_NUMBER.search(text, looked_at, end):
        return True
    last = _LAST_WORD.search(text, looked_at, end)
    if last is None or _MEASURE.search(text, looked_at, end):
        return False
    word = last.group(1)
    return word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")
