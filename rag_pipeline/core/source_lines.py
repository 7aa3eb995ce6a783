"""The origin of the lines of a page that shows the content of other files, such as partials."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of a file: path below the site's folder, first line from 1, and last line inclusive."""

    path: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive lines of a page's text that come from one file.

    Attributes:
        start: First line of the segment in the text, from 1. It ends before the next segment.
        path: Path of the file below the site's folder.
        file_line: Line of the file that is the first line of the segment.
        page_line: Line of the page that shows the file; None for lines of the page itself.
    """

    start: int
    path: str
    file_line: int
    page_line: int | None = None


@dataclass(frozen=True, slots=True)
class PageNotes:
    """What the parser could not read of a page.

    Attributes:
        warnings: Files that are missing or cannot be shown, and directives of the site's plugins.
        left_out: Number of expressions without a known value, which the text leaves out.
    """

    warnings: tuple[str, ...] = ()
    left_out: int = 0


NO_NOTES: Final = PageNotes()


def find_page_line(segments: Sequence[Segment], line: int) -> int:
    """Return the line of the page's own file for a line of its text.

    All lines of another file stand at the line of the page that shows the file. Without segments,
    the text is the file, and the line is returned unchanged.
    """
    if not segments:
        return line
    segment = segments[_find(segments, line)]
    if segment.page_line is not None:
        return segment.page_line
    return segment.file_line + line - segment.start


def find_sources(segments: Sequence[Segment], first: int, last: int) -> tuple[SourceLines, ...]:
    """Return the files and lines from which some lines of a page's text come, in order.

    The result is empty if all of the lines are in the page's own file.

    Args:
        segments: The segments of the text, in order. Empty if the text is the file.
        first: First line of the text, from 1.
        last: Last line, inclusive.
    """
    if not segments:
        return ()
    begin, end = _find(segments, first), _find(segments, last)
    if begin == end and segments[begin].page_line is None:
        return ()
    found = []
    for at in range(begin, end + 1):
        segment = segments[at]
        until = last if at == end else segments[at + 1].start - 1
        shift = segment.file_line - segment.start
        start = max(max(first, segment.start) + shift, 1)
        found.append(SourceLines(segment.path, start, until + shift))
    return tuple(found)


def _find(segments: Sequence[Segment], line: int) -> int:
    return max(bisect.bisect_right(segments, line, key=lambda segment: segment.start) - 1, 0)
