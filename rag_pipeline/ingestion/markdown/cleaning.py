"""What cleaning changes in a block, as edits on the source, and a span of the source cleaned.

Kept as written: code, tables' bars, math, list and quote marks, emphasis. Edits are found once per
block; `clean_span` applies those that lie in a span, so that a chunk's text is its span, cleaned.
"""

from __future__ import annotations

import bisect
import html
import re
from typing import TYPE_CHECKING, Any, Final

from markdown_it.common.utils import normalizeReference

from rag_pipeline.core.models import BlockKind
from rag_pipeline.ingestion.markdown.mdx_syntax import (
    Scanner,
    find_literal,
    find_tag_texts,
    is_comment_expression,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rag_pipeline.core.models import Block, Edit, Hold, ParsedDoc

_STRIPPED: Final = frozenset(
    {
        BlockKind.FRONT_MATTER,
        BlockKind.ESM,
        BlockKind.COMMENT,
        BlockKind.LINK_REFERENCE,
        BlockKind.MDX_CODE_FENCE,
        BlockKind.THEMATIC_BREAK,
        BlockKind.MARKER,
    }
)
_TAG_ONLY: Final = frozenset({BlockKind.JSX, BlockKind.EXPRESSION})

_CONSTRUCT: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])|(?P<ticks>`+)|(?P<comment><!--)|(?P<tag><(?=[A-Za-z/>]))"
    r"|(?P<brace>\{)|(?P<math>\$+)|(?P<open>!?\[)|(?P<close>\])"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
_DESTINATION: Final = re.compile(
    r"""\(\s*(?:<[^<>\n]*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*)"""
    r"""(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\([^()]*\)))?\s*\)"""
)
_REFERENCE: Final = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999})\]")
_AUTOLINK: Final = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
_HEADING_ID: Final = re.compile(r"\s*\{#[^{}]*\}(?=[ \t]*#*[ \t]*(?:\n|$))")
_DIRECTIVE: Final = re.compile(r":{2,}(?P<name>[\w-]*)[ \t]*(?P<rest>.*)", re.DOTALL)
_DIRECTIVE_LABEL: Final = re.compile(r"\[(?P<title>.*)\](?:\{[^}]*\})?[ \t]*(?:$|\n)")
_DIRECTIVE_TITLE: Final = re.compile(r"""\{[^}]*\btitle=(["'])(?P<title>[^"'}]*)\1[^}]*\}""")
_HIDDEN_TAG: Final = re.compile(r"[ \t>]*<(?:style|script)\b", re.IGNORECASE)
_BLOCK_TAG: Final = re.compile(
    r"<(?:br|(?P<opening>p|div|[uo]l|table|details)"
    r"|/(?:p|div|li|[uod]l|d[dt]|t[dhr]|table|summary|details|section|pre|h[1-6]|TabItem))"
    r"(?=[\s/>])",
    re.IGNORECASE,
)
_MAGIC_COMMENT: Final = re.compile(
    r"^[ \t>]*(?://|/\*|\{\s*/\*|\#|<!--|--|;;|%|'|REM|!|\*>)\s*"
    r"highlight-(?:next-line|start|end)\s*(?:\*/\s*\}|\*/|-->)?[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_BLANK_LINES: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+(?=\n)")


def find_edits(
    kind: BlockKind, scanner: Scanner, span: tuple[int, int], env: Mapping[str, Any], *, mdx: bool
) -> tuple[tuple[Edit, ...], tuple[Hold, ...]]:
    """Find what cleaning changes in one block, and where the block must not be cut.

    Args:
        kind: Kind of the block.
        scanner: Over the whole source.
        span: First character of the block, and behind its last.
        env: The block parser's environment, for its link references.
        mdx: Whether `{...}` are expressions.
    """
    start, end = span
    if kind is BlockKind.MATH:
        return (), ()
    if kind is BlockKind.CODE:
        found = _MAGIC_COMMENT.finditer(scanner.text, start, end)
        return tuple((match.start(), match.end(), "") for match in found), ()
    references = env.get("references", {})
    inline = _InlineScan(scanner, references, mdx=mdx, is_table=kind is BlockKind.TABLE)
    kept = _find_kept_text(kind, scanner, start, end)
    if kept is not None:
        for edit in _find_removed(kept, start, end):
            inline.edit(*edit)
        for title in kept if kind is BlockKind.DIRECTIVE else ():
            inline.run(*title)
        return inline.result()
    inline.run(start, end)
    if kind is BlockKind.HEADING:
        for match in _HEADING_ID.finditer(scanner.text, start, end):
            inline.edit(match.start(), match.end(), "")
    return inline.result()


def _find_kept_text(
    kind: BlockKind, scanner: Scanner, start: int, end: int
) -> list[tuple[int, int]] | None:
    """Where text stands in a block that is syntax as a whole; None for a block of text."""
    if kind in _STRIPPED or _HIDDEN_TAG.match(scanner.text, start, end):
        return []
    if kind is BlockKind.DIRECTIVE:
        return _find_directive_title(scanner.text, start, end)
    if kind in _TAG_ONLY:
        return _find_tag_texts(scanner, start, end)
    return None


def _find_removed(kept: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[Edit]:
    """Edits that remove all but some ranges, which then stand on lines of their own."""
    at = start
    for kept_start, kept_end in kept:
        yield at, kept_start, "\n" if at > start else ""
        at = kept_end
    yield at, end, ""


def clean_span(parsed: ParsedDoc, start: int, end: int) -> str:
    """Clean a span of a document's source for reading and embedding.

    Args:
        parsed: The document.
        start: First character.
        end: Behind the last character.

    Returns:
        The span's text without edge blank lines; margins common to all lines removed.
    """
    first = bisect.bisect_right(parsed.blocks, start, key=lambda block: block.end)
    parts: list[str] = []
    last_line = 0
    for block in parsed.blocks[first:]:
        if block.start >= end:
            break
        text = clean_block(parsed.source, block, max(start, block.start), min(end, block.end))
        if not text.strip():
            continue
        if parts:
            parts.append("\n" if block.start_line == last_line + 1 else "\n\n")
        parts.append(text)
        last_line = block.end_line
    return _dedent("".join(parts))


def clean_block(source: str, block: Block, start: int, end: int) -> str:
    """Clean a part of one block; an edit that a cut divides is left out whole."""
    parts: list[str] = []
    at = start
    for edit_start, edit_end, replacement in block.edits:
        if edit_start < start:
            continue
        if edit_end > end:
            break
        parts += source[at:edit_start], replacement
        at = edit_end
    parts.append(source[at:end])
    text = "".join(parts)
    return text if block.kind in {BlockKind.CODE, BlockKind.MATH} else _BLANK_LINES.sub("\n", text)


def _dedent(text: str) -> str:
    """Remove the margin that all lines share, and blank lines at the edges."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    margins = (len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    margin = min(margins, default=0)
    if margin:
        lines = [line[margin:] if line.strip() else "" for line in lines]
    return "\n".join(lines).rstrip()


def _find_directive_title(source: str, start: int, end: int) -> list[tuple[int, int]]:
    match = _DIRECTIVE.match(source, source.index("::", start), end)
    if match is None or match.start("rest") == end:
        return []
    rest = match.start("rest")
    titled = _DIRECTIVE_LABEL.match(source, rest, end) or _DIRECTIVE_TITLE.match(source, rest, end)
    if titled is not None:
        return [titled.span("title")]
    return [] if source[rest] == "{" else [(rest, end)]


def _find_tag_texts(scanner: Scanner, start: int, end: int) -> list[tuple[int, int]]:
    """What attributes of tags show, and literal texts in braces."""
    kept: list[tuple[int, int]] = []
    at = start
    while at < end:
        char = scanner.text[at]
        find = {"<": scanner.find_tag_end, "{": scanner.find_brace_end}.get(char)
        close = find(at, end) if find is not None else None
        if close is None:
            at += 1
            continue
        kept += (
            find_tag_texts(scanner.text, at, close)
            if char == "<"
            else find_literal(scanner.text, at, close)
        )
        at = close
    return kept


class _InlineScan:
    """Edits and holds of inline Markdown, in one pass over a block."""

    def __init__(
        self, scanner: Scanner, references: Mapping[str, object], *, mdx: bool, is_table: bool
    ) -> None:
        self._scanner = scanner
        self._source = scanner.text
        self._references = references
        self._mdx = mdx
        self._is_table = is_table
        self._edits: list[Edit] = []
        self._holds: list[Hold] = []
        self._open: list[tuple[int, int]] = []
        self._unclosed_ticks: dict[int, int] = {}

    def run(self, start: int, end: int) -> None:
        """Scan the source from `start` to `end`."""
        at = start
        handlers = {
            "ticks": self._code,
            "comment": self._comment,
            "tag": self._tag,
            "brace": self._brace,
            "math": self._math,
            "open": self._open_bracket,
            "close": self._close_bracket,
        }
        while (match := _CONSTRUCT.search(self._source, at, end)) is not None:
            name = str(match.lastgroup)
            if name == "escaped":
                at = match.end()
                if not (self._is_table and match["escaped"] == "|"):
                    self.edit(match.start(), match.start() + 1, "")
            elif name == "entity":
                at = match.end()
                self.edit(match.start(), at, html.unescape(match.group()))
            else:
                at = handlers[name](match.start(), match.end(), end)

    def edit(self, start: int, end: int, replacement: str) -> None:
        """Note a change and hold its characters together."""
        self._edits.append((start, end, replacement))
        self._holds.append((start, end))

    def result(self) -> tuple[tuple[Edit, ...], tuple[Hold, ...]]:
        """Edits in order, one that overlaps another before it left out, and merged holds."""
        edits: list[Edit] = []
        for edit in sorted(self._edits, key=lambda edit: (edit[0], -edit[1])):
            if not edits or edit[0] >= edits[-1][1]:
                edits.append(edit)
        holds: list[Hold] = []
        for start, end in sorted(self._holds):
            if holds and start < holds[-1][1]:
                holds[-1] = (holds[-1][0], max(end, holds[-1][1]))
            else:
                holds.append((start, end))
        return tuple(edits), tuple(holds)

    def _code(self, start: int, after: int, end: int) -> int:
        length = after - start
        if start >= self._unclosed_ticks.get(length, end):
            return after
        closing = re.compile(f"(?<!`)`{{{length}}}(?!`)").search(self._source, after, end)
        if closing is None:
            self._unclosed_ticks[length] = start
            return after
        self._holds.append((start, closing.end()))
        return closing.end()

    def _comment(self, start: int, after: int, end: int) -> int:
        close = self._source.find("-->", after, end)
        if close < 0:
            return after
        self._remove(start, close + 3)
        return close + 3

    def _tag(self, start: int, after: int, end: int) -> int:
        link = _AUTOLINK.match(self._source, start, end)
        if link is not None:
            self.edit(start, start + 1, "")
            self.edit(link.end() - 1, link.end(), "")
            self._holds.append((start, link.end()))
            return link.end()
        close = self._scanner.find_tag_end(start, end)
        if close is None:
            return after
        at = start
        for text_start, text_end in find_tag_texts(self._source, start, close):
            self.edit(at, text_start, " " if at > start else "")
            at = text_end
        self.edit(at, close, " " if at > start or self._parts(start, close) else "")
        return close

    def _parts(self, start: int, close: int) -> bool:
        """Tell whether a tag within a line begins or ends a block, as one table cell of many."""
        tag = _BLOCK_TAG.match(self._source, start, close)
        before, behind = self._source[start - 1 : start], self._source[close : close + 2]
        if tag is None or not before.strip() or not behind[:1].strip() or behind == "</":
            return False
        return tag["opening"] is None or before != ">"

    def _brace(self, start: int, after: int, end: int) -> int:
        close = self._scanner.find_brace_end(start, end) if self._mdx else None
        if close is None:
            return after
        for text_start, text_end in find_literal(self._source, start, close):
            self.edit(start, text_start, "")
            self.edit(text_end, close, "")
            return close
        text = self._source[start:close]
        if "*/" not in text or not is_comment_expression(text):
            return after
        self._remove(start, close)
        return close

    def _math(self, start: int, after: int, end: int) -> int:
        marker = self._source[start:after]
        close = self._source.find(marker, after, end)
        inner = self._source[after:close]
        is_math = close > after and (
            len(marker) > 1 or not (inner[0].isspace() or inner[-1].isspace())
        )
        behind = self._source[close + len(marker) : close + len(marker) + 1]
        if not is_math or "\n\n" in inner or (len(marker) == 1 and behind.isdigit()):
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
        target = _DESTINATION.match(self._source, after, end)
        close = target.end() if target else self._match_reference(text_start, start, end)
        if close is None:
            return after
        self.edit(opening, text_start, "")
        self.edit(start, close, "")
        self._holds.append((opening, close))
        return close

    def _match_reference(self, text_start: int, text_end: int, end: int) -> int | None:
        after = text_end + 1
        reference = _REFERENCE.match(self._source, after, end)
        label = reference.group(1) if reference else ""
        label = label or self._source[text_start:text_end]
        if len(label) > 999 or normalizeReference(label) not in self._references:
            return None
        return reference.end() if reference else after

    def _remove(self, start: int, end: int) -> None:
        while (
            start > 0 and self._source[start - 1] in " \t" and self._source[end : end + 1].isspace()
        ):
            start -= 1
        self.edit(start, end, "")
