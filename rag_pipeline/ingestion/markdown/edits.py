"""Clean the text of one Markdown block, for search or as Markdown for readers.

Tags and comments are removed. In Markdown for readers, links, images, escapes and entities stay,
and the targets of links become addresses of the site.
"""

from __future__ import annotations

import bisect
import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination

from rag_pipeline.core.site.addresses import encode_target
from rag_pipeline.ingestion.markdown.tags import OPENING, Piece, Scanner, read_attributes

if TYPE_CHECKING:
    from rag_pipeline.core.text.sentences import Hold, Run
    from rag_pipeline.ingestion.markdown.scope import Scope


_Edit: TypeAlias = "tuple[int, int, str]"

_CONSTRUCT: Final = re.compile(
    r"\\(?P<escape>[!-/:-@\[-`{-~])|(?P<code>`+)|(?P<comment><!--)|(?P<tag><(?=[A-Za-z/>]))"
    r"|(?P<brace>\{)|(?P<math>\$+)|(?P<open_bracket>!?\[)|(?P<close_bracket>\])"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
"""Marks of inline Markdown. Each group is read by the method of `BlockEdits` with its name."""

_DESTINATION: Final = re.compile(
    r"""\(\s*(?:<[^<>\n]*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*)"""
    r"""(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\([^()]*\)))?\s*\)"""
)
_REFERENCE: Final = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999})\]")
_AUTOLINK: Final = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
_CELLS: Final = re.compile(
    r"(?=</?t[dhr][\s>])(?P<last></t[dh]>\s*)?"
    r"(?P<row></tr>\s*(?:</?t(?:head|body|foot)[^<>]*>\s*)*(?=<tr))?"
    r"(?:<tr\b[^<>]*>\s*)?(?P<next><t[dh]\b[^<>]*>\s*)?"
)
"""The tags between two cells of a table, or those before the first or after the last one."""

_BLOCK_TAG: Final = re.compile(
    r"<(?:br|(?P<opening>p|div|[uo]l|table|details)"
    r"|/(?:p|div|li|[uod]l|d[dt]|t[dhr]|table|summary|details|section|pre|h[1-6]|TabItem))"
    r"(?=[\s/>])",
    re.IGNORECASE,
)
_BLANK_LINES: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+(?=\n)")


class BlockEdits:
    r"""The edits that clean one Markdown block, and the places where the block must not be cut.

    Attributes:
        scanner: Scanner that finds the ends of tags and braces in the whole source.
        source: Text of the whole page. All offsets refer to it.
        scope: The names that the page knows. All blocks of a page share it.
        hidden: Start and end offset of the parts of the page that readers do not see, in order.
        keeps_blank_lines: True to keep several blank lines in a row, as in code. Otherwise they
            are reduced to one.
        keeps_escaped_bars: True to keep `\|`, as in tables. Otherwise it becomes `|`.
    """

    scope: Scope

    def __init__(self, scanner: Scanner, references: Mapping[str, Any], *, mdx: bool) -> None:
        self.scanner = scanner
        self.source = scanner.text
        self.hidden: Sequence[tuple[int, int]] = ()
        self.keeps_blank_lines = False
        self.keeps_escaped_bars = False
        self._references = references
        self._mdx = mdx
        self._edits: list[_Edit] = []
        self._holds: list[Hold] = []
        self._open: list[tuple[int, int]] = []
        self._unclosed_ticks: dict[int, int] = {}
        self._shown_from = 0
        self._unclosed_comments = (0, -1)  # a range in which no comment ends

    def replace(self, start: int, end: int, replacement: str) -> None:
        """Record an edit that replaces the source from `start` to `end` with `replacement`.

        The replaced characters are also marked as a place where the block must not be cut.
        """
        self._edits.append((start, end, replacement))
        self._holds.append((start, end))

    def show(self, pieces: Iterable[Piece], start: int, usual: str) -> int:
        """Record edits that keep the given texts, and return the offset after the last one.

        Args:
            pieces: The texts, in order.
            start: Offset of the first character. It is removed up to the first text.
            usual: Text that separates the texts.
        """
        at = start
        for piece in pieces:
            self.replace(at, piece.start, piece.separate(usual) if at > start else piece.prefix)
            if piece.text is not None:
                self.replace(piece.start, piece.end, piece.text)
            at = piece.end
        return at

    def apply(self, start: int, end: int) -> tuple[str, tuple[Run, ...], tuple[Hold, ...]]:
        """Apply the recorded edits to the block between the source offsets `start` and `end`.

        Returns:
            The cleaned text; the runs, which are the parts of the source that the text keeps, in
            order; and the holds, which are the source ranges that chunking must not cut apart.
        """
        text, runs = self._replace_all(start, end)
        blank = [] if self.keeps_blank_lines else [*_BLANK_LINES.finditer(text)]
        for match in blank:
            begin, until = match.start() + 1, match.end()
            first = runs[bisect.bisect_right(runs, begin, key=lambda run: run[2]) - 1]
            last = runs[bisect.bisect_left(runs, until, key=lambda run: run[2] + run[1] - run[0])]
            self._edits.append((first[0] + begin - first[2], last[0] + until - last[2], ""))
        if blank:
            text, runs = self._replace_all(start, end)
        holds: list[Hold] = []
        for first_hold, last_hold in sorted(self._holds):
            if holds and first_hold < holds[-1][1]:
                holds[-1] = (holds[-1][0], max(last_hold, holds[-1][1]))
            else:
                holds.append((first_hold, last_hold))
        return text, tuple(runs), tuple(holds)

    def _replace_all(self, start: int, end: int) -> tuple[str, list[Run]]:
        """Apply the edits in source order, and return the text and the kept parts of the source.

        An edit that overlaps an earlier edit is skipped.
        """
        parts: list[str] = []
        runs: list[Run] = []
        at, length = start, 0
        self._edits.sort(key=lambda edit: (edit[0], -edit[1]))
        for edit_start, edit_end, replacement in self._edits:
            if edit_start >= at:
                runs.append((at, edit_start, length))
                parts += self.source[at:edit_start], replacement
                length += edit_start - at + len(replacement)
                at = edit_end
        runs.append((at, end, length))
        parts.append(self.source[at:end])
        return "".join(parts), runs

    def clean_inline(self, start: int, end: int) -> None:
        """Record the edits that clean inline Markdown, such as links, from `start` to `end`.

        Tags, comments, escapes, the targets of links and hidden elements are removed, and entities
        such as `&amp;` become characters. Code spans and formulas stay as they are, but must not be
        cut.
        """
        for first, last in self.remove_hidden(start, end):
            at = self._shown_from = first
            while (match := _CONSTRUCT.search(self.source, at, last)) is not None:
                at = getattr(self, f"_{match.lastgroup}")(match.start(), match.end(), last)

    def remove_hidden(self, start: int, end: int) -> list[tuple[int, int]]:
        """Record edits that remove hidden elements, and return the ranges between them."""
        if not self.hidden:
            return [(start, end)]
        shown, at = [], start
        following = bisect.bisect_right(self.hidden, start, key=lambda one: one[1])
        for first, last in self.hidden[following:]:
            if first >= end:
                break
            shown.append((at, max(at, first)))
            at = min(last, end)
            self._remove(max(first, start), at)
        return [*shown, (at, end)]

    def _escape(self, start: int, after: int, _end: int) -> int:
        if not (self.keeps_escaped_bars and self.source[start + 1] == "|"):
            self.replace(start, start + 1, "")
        return after

    def _entity(self, start: int, after: int, _end: int) -> int:
        self.replace(start, after, html.unescape(self.source[start:after]))
        return after

    def _code(self, start: int, after: int, end: int) -> int:
        length = after - start
        if start >= self._unclosed_ticks.get(length, end):
            return after
        closing = re.compile(f"(?<!`)`{{{length}}}(?!`)").search(self.source, after, end)
        if closing is None:
            self._unclosed_ticks[length] = start
            return after
        self._holds.append((start, closing.end()))
        return closing.end()

    def _comment(self, start: int, after: int, end: int) -> int:
        low, high = self._unclosed_comments
        if low <= after and end <= high:
            return after
        close = self.source.find("-->", after, end)
        if close < 0:
            self._unclosed_comments = after, end
            return after
        self._remove(start, close + 3)
        return close + 3

    def _tag(self, start: int, after: int, end: int) -> int:
        link = _AUTOLINK.match(self.source, start, end)
        if link is not None:
            self.replace(start, start + 1, "")
            self.replace(link.end() - 1, link.end(), "")
            self._holds.append((start, link.end()))
            return link.end()
        close = self.scanner.find_tag_end(start, end)
        if close is None:
            return after
        cells = _CELLS.match(self.source, start, end)
        if cells is not None and cells.end() > start:
            return self._separate_cells(cells)
        at = self.show(self.scope.read_tag(self.scanner, start, close), start, " ")
        has_text = at > start and not self.source[close : close + 1].isspace()
        self.replace(at, close, " " if has_text or self._separates_text(start, close) else "")
        return close

    def _separate_cells(self, tags: re.Match[str]) -> int:
        """Write the cells of a row on one line; `tags` are those between two cells."""
        start = tags.start()
        while start > self._shown_from and self.source[start - 1].isspace():
            start -= 1
        follows = start > self._shown_from and (tags["last"] or self.source[start - 1] != ">")
        is_between = tags["next"] and follows
        separator = "\n" if tags["row"] else " | "
        self.replace(start, tags.end(), separator if is_between else "")
        return tags.end()

    def _separates_text(self, start: int, close: int) -> bool:
        """Return True if removing a tag would join two texts that the page shows apart.

        This is the case for a tag between two words that breaks the line or that begins or ends a
        block, such as `<br>` or `</td>`.
        """
        tag = _BLOCK_TAG.match(self.source, start, close)
        before, following = self.source[start - 1 : start], self.source[close : close + 2]
        if tag is None or not before.strip() or not following[:1].strip() or following == "</":
            return False
        return tag["opening"] is None or before != ">"

    def _brace(self, start: int, after: int, end: int) -> int:
        is_expression = self._mdx or self.source.startswith("{@", start)
        close = self.scanner.find_brace_end(start, end) if is_expression else None
        if close is None:
            return after
        if value := self.scope.resolve(self.source[start + 1 : close - 1]):
            self.replace(start, close, value)
        else:
            self._remove(start, close)
        return close

    def _math(self, start: int, after: int, end: int) -> int:
        marker = self.source[start:after]
        close = self.source.find(marker, after, end)
        inner = self.source[after:close]
        is_math = close > after and (
            len(marker) > 1 or not (inner[0].isspace() or inner[-1].isspace())
        )
        following = self.source[close + len(marker) : close + len(marker) + 1]
        if not is_math or "\n\n" in inner or (len(marker) == 1 and following.isdigit()):
            return after
        self._holds.append((start, close + len(marker)))
        return close + len(marker)

    def _open_bracket(self, start: int, after: int, _end: int) -> int:
        self._open.append((start, after))
        return after

    def _close_bracket(self, start: int, after: int, end: int) -> int:
        if not self._open:
            return after
        opening, text_start = self._open.pop()
        text = self.source[text_start:start]
        if inline := _DESTINATION.match(self.source, after, end):
            close = inline.end()
            address, title = self._read_destination(after + 1, close - 1)
        else:  # its definition is elsewhere
            reference = _REFERENCE.match(self.source, after, end)
            label = (reference[1] if reference else "") or text
            found = self._references.get(normalizeReference(label)) if len(label) < 1000 else None
            if found is None:
                return after
            close = reference.end() if reference else after
            address, title = str(found.get("href", "")), ""
        if self.source[opening] == "!":  # answers that quote the text beside it show the image
            alt = html.unescape(text)
            self.scope.add_image(opening, address, alt, title.strip(" \"'()"))
        self._link((opening, text_start), (start, close), address, title)
        self._holds.append((opening, close))
        return close

    def _read_destination(self, start: int, end: int) -> tuple[str, str]:
        """Return the target of a link or image in brackets, and its title with a space before."""
        while self.source[start].isspace():
            start += 1
        found = parseLinkDestination(self.source, start, end)
        title = self.source[found.pos : end].strip() if found.ok else ""
        return found.str if found.ok else "", f" {title}" if title else ""

    def _link(
        self, opening: tuple[int, int], closing: tuple[int, int], _address: str, _title: str
    ) -> None:
        """Record the edits of a link or image: only its text is kept.

        Args:
            opening: Offsets of `[` or `![`, and after it.
            closing: Offsets of `]`, and after the target.
        """
        self.replace(*opening, "")
        self.replace(*closing, "")

    def _remove(self, start: int, end: int) -> None:
        while (
            start > 0 and self.source[start - 1] in " \t" and self.source[end : end + 1].isspace()
        ):
            start -= 1
        self.replace(start, end, "")


ResolveLink: TypeAlias = Callable[[str, bool], str | None]
"""A function that turns the target of a link or image (then its second argument is True) into an
address for readers; None if readers cannot open the target."""

StartEdits: TypeAlias = "Callable[..., BlockEdits]"
"""Creates the edits of one block; it has the parameters of `BlockEdits`, which is one."""

_SUMMARY: Final = re.compile(r"</?summary\b")
_WEB_LINK: Final = re.compile(r"<https?://[^\s<>]*>")


class PageEdits(BlockEdits):
    """The edits that turn one block of a page into Markdown without tags and comments.

    Args:
        scanner: Scanner of the whole source.
        references: The link reference definitions of the page, by normalized label.
        mdx: True if the page is MDX.
        resolve: Function that returns the address of a link's target.
    """

    def __init__(
        self, scanner: Scanner, references: Mapping[str, Any], *, mdx: bool, resolve: ResolveLink
    ) -> None:
        super().__init__(scanner, references, mdx=mdx)
        self._resolve = resolve
        self._open_tags: list[tuple[str, str]] = []

    def _escape(self, _start: int, after: int, _end: int) -> int:
        return after

    def _entity(self, _start: int, after: int, _end: int) -> int:
        return after

    def _tag(self, start: int, after: int, end: int) -> int:
        close = self.scanner.find_tag_end(start, end)
        if close is not None and _SUMMARY.match(self.source, start, close):
            return self._embolden_summary(start, close, end)
        mark = None if close is None else self._find_mark(start, close, end)
        if close is not None and mark is not None:
            self.replace(start, close, mark)
            return close
        if link := _WEB_LINK.match(self.source, start, end):
            return link.end()
        return super()._tag(start, after, end)

    def _embolden_summary(self, start: int, close: int, end: int) -> int:
        """Replace a tag of a summary by `**`, which must touch the words; return where it ends."""
        if self.source.startswith("</", start):
            words = len(self.source[:start].rstrip())
            is_near = "\n\n" not in self.source[words:start]
            self.replace(words if is_near else start, close, "**")
            return close
        text = self.source[close:end]
        after = close + len(text) - len(text.lstrip())
        self.replace(start, after, "**")
        return after

    def _find_mark(self, start: int, close: int, end: int) -> str | None:
        """Return the Markdown for a tag of a link; None for any other tag."""
        if self._open_tags and self.source.startswith(f"</{self._open_tags[-1][0]}>", start):
            return f"]({self._open_tags.pop()[1]})"
        opening = OPENING.match(self.source, start, close)
        if opening is None or opening[1] not in {"a", "Link"}:
            return None
        attributes = read_attributes(self.scanner, start, close)
        target = attributes.get("href") or attributes.get("to")
        is_closed = self.source.find(f"</{opening[1]}>", close, end) >= 0
        if not target or not is_closed or self.source.startswith("/>", close - 2):
            return None
        address = self._resolve(target, False)  # noqa: FBT003  # not an image
        if address is None:
            return None
        self._open_tags.append((opening[1], encode_target(address)))
        return "["

    def _link(
        self, opening: tuple[int, int], closing: tuple[int, int], address: str, title: str
    ) -> None:
        resolved = self._resolve(address, self.source[opening[0]] == "!")
        if resolved is None:
            super()._link(opening, closing, address, title)
        else:
            self.replace(*closing, f"]({encode_target(resolved)}{title})")
