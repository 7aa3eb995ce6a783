"""The origin of the lines of a page that shows the content of other files, such as partials."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
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
