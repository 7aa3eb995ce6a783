"""Clean one Markdown block so that it stays Markdown: links, images, escapes and entities remain.

Tags and comments are removed as in `edits`. The targets of links become addresses of the site.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination

from rag_pipeline.core.site.markdown_links import encode_target
from rag_pipeline.ingestion.markdown.edits import BlockEdits
from rag_pipeline.ingestion.markdown.tags import find_link_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner

ResolveLink: TypeAlias = Callable[[str, bool], str | None]
"""A function that turns the target of a link or image (then its second argument is True) into an
address for readers; None if readers cannot open the target."""

_SUMMARY: Final = re.compile(r"</?summary\b")


class PageEdits(BlockEdits):
    """The edits that turn one block of a page into Markdown without tags and comments.

    Args:
        scanner: Scanner of the whole source.
        references: The link reference definitions of the page, by normalized label.
        mdx: True if the page is MDX.
        resolve: Function that returns the address of a link's target.
    """

    def __init__(
        self,
        scanner: Scanner,
        references: Mapping[str, object],
        *,
        mdx: bool,
        resolve: ResolveLink,
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
        if self._is_autolink(start, end):
            return self.source.index(">", start) + 1
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
        link = find_link_tag(self.scanner, start, close)
        if link is None or self.source.find(f"</{link[0]}>", close, end) < 0:
            return None
        address = self._resolve(link[1], False)  # noqa: FBT003  # not an image
        if address is None:
            return None
        self._open_tags.append((link[0], encode_target(address)))
        return "["

    def _is_autolink(self, start: int, end: int) -> bool:
        """Return True if an address between `<` and `>` starts at an offset, as in CommonMark."""
        close = self.source.find(">", start, end)
        return (
            close > 0
            and re.fullmatch(r"https?://[^\s<>]*", self.source[start + 1 : close]) is not None
        )

    def _link(self, opening: int, text_start: int, text_end: int, close: int) -> None:
        is_image = self.source[opening] == "!"
        if self.source[text_end + 1 : text_end + 2] == "(":
            target, title = self._read_destination(text_end + 2, close)
        else:
            target, title = self._find_reference(text_start, text_end, close), ""
        address = self._resolve(target, is_image)
        if address is None:
            super()._link(opening, text_start, text_end, close)
        else:
            self.replace(text_end, close, f"]({encode_target(address)}{title})")

    def _read_destination(self, start: int, close: int) -> tuple[str, str]:
        """Return the target of an inline link, and its title with a space before it."""
        while self.source[start].isspace():
            start += 1
        found = parseLinkDestination(self.source, start, close - 1)
        title = self.source[found.pos : close - 1].strip() if found.ok else ""
        return found.str if found.ok else "", f" {title}" if title else ""

    def _find_reference(self, text_start: int, text_end: int, close: int) -> str:
        """Return the target of a link whose definition is elsewhere on the page."""
        label = self.source[text_end + 2 : close - 1] or self.source[text_start:text_end]
        definition = self._references.get(normalizeReference(label))
        return str(definition.get("href", "")) if isinstance(definition, dict) else ""
