"""The body of a document as leaf blocks: which source lines are a heading, a fence, a table, ...

Belongs here: lines and kinds, from markdown-it's tokens. Cleaning and titles: cleaning, parsing.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

from rag_pipeline.core.models import BlockKind
from rag_pipeline.ingestion.markdown import mdx_rules
from rag_pipeline.ingestion.markdown.containers import read_containers
from rag_pipeline.ingestion.markdown.headings import FOOTNOTES
from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from rag_pipeline.ingestion.markdown.containers import Container

_KIND_OF_TOKEN: Final = {
    "heading_open": BlockKind.HEADING,
    "paragraph_open": BlockKind.PARAGRAPH,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "table_open": BlockKind.TABLE,
    "html_block": BlockKind.HTML,
    "hr": BlockKind.THEMATIC_BREAK,
    **{kind.value: kind for kind in BlockKind},
}
_MARKER_LINE: Final = re.compile(r"[\s>]*(?:(?:[-+*]|\d{1,9}[.)])[\s>]*)*")
_MDX_CODE_OPEN: Final = re.compile(r" *(`{3,4}) *mdx-code-block")
_MDX_CODE_CLOSE: Final = re.compile(r" *(`{3,4})")
_RAW_HEADING: Final = re.compile(
    r"^[ \t>*+-]*(?:<[^<>]*>[ \t]*)*<h(?P<level>[1-6])(?P<attributes>\s[^<>]*)?>"
    r"(?P<text>.{0,1000}?)</h(?P=level)>(?:[ \t]*<[^<>\n]*>)*[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_RAW_OPENING: Final = re.compile(r"[ \t>*+-]*<h[1-6][\s>]")
_HOLDING_RAW: Final = frozenset({BlockKind.HTML, BlockKind.PARAGRAPH})
_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_NOT_A_LINE_END: Final = re.compile(r"[^\n]")
_RAW_ID: Final = re.compile(r"""\sid\s*=\s*["']([^"']+)["']""")
_FOOTNOTE_DEFINITION: Final = re.compile(r"^ {0,3}\[\^([^\]\s]+)\]:", re.MULTILINE)
_MAX_NESTING: Final = 40  # levels; deeper content is kept as plain paragraphs


@dataclass(frozen=True, slots=True)
class Leaf:
    """A run of lines, 0-based, `end` exclusive; the last three for headings alone.

    Attributes:
        content: The heading's inline Markdown.
        raw_id: Id of a heading written as an HTML tag; such a heading is not slugged.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    content: str = ""
    raw_id: str | None = None
    is_raw: bool = False


def read_leaves(
    lines: Sequence[str], body_line: int, *, mdx: bool
) -> tuple[list[Leaf], list[Container], dict[str, Any]]:
    """Read the leaf blocks of the lines from `body_line` on, and the containers around them.

    Args:
        lines: All lines of the source without line ends.
        body_line: First line behind the front matter, 0-based.
        mdx: Whether the file is MDX, else CommonMark with HTML.

    Returns:
        Leaves in order, every line that is not blank in exactly one; the containers; and the
        parser's environment with the link references.
    """
    masked, fence_lines = _mask_mdx_fences(lines, body_line)
    body = "\n".join(masked[body_line:])
    env: dict[str, Any] = {
        mdx_rules.SCANNER: Scanner(body, mdx=mdx),
        FOOTNOTES: frozenset(_FOOTNOTE_DEFINITION.findall(body)),
    }
    tokens = _build_parser(mdx=mdx).parse(body, env)
    leaves = [Leaf(BlockKind.MDX_CODE_FENCE, line, line + 1) for line in fence_lines]
    leaves += [
        Leaf(BlockKind.LINK_REFERENCE, start + body_line, end + body_line)
        for start, end in env.get(mdx_rules.REFERENCE_LINES, ())
    ]
    leaves += _read_tokens(tokens, body_line)
    leaves.sort(key=lambda leaf: (leaf.start, leaf.end))
    filled = list(_fill_gaps(_split_raw_headings(leaves, lines), lines, body_line))
    return filled, read_containers(tokens, body_line, len(lines)), env


@lru_cache(maxsize=2)
def _build_parser(*, mdx: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    md.disable(["inline", "text_join"])
    mdx_rules.use_docusaurus_rules(md, mdx=mdx)
    return md


def _mask_mdx_fences(lines: Sequence[str], body_line: int) -> tuple[list[str], list[int]]:
    """Blank the fence lines of `mdx-code-block`, whose content is live Markdown."""
    masked = list(lines)
    found: list[int] = []
    closers: dict[str, list[int]] = {"```": [], "````": []}
    for at in range(body_line, len(lines)):
        close = _MDX_CODE_CLOSE.fullmatch(lines[at])
        if close is not None:
            closers[close.group(1)].append(at)
    until = body_line
    for at in range(body_line, len(lines)):
        opening = _MDX_CODE_OPEN.fullmatch(lines[at]) if at >= until else None
        if opening is None:
            continue
        possible = closers[opening.group(1)]
        index = bisect.bisect_right(possible, at + 1)
        if index < len(possible):
            until = possible[index] + 1
            found += [at, until - 1]
    for at in found:
        masked[at] = ""
    return masked, found


def _read_tokens(tokens: Sequence[Token], body_line: int) -> Iterator[Leaf]:
    for at, token in enumerate(tokens):
        kind = _KIND_OF_TOKEN.get(token.type)
        if kind is None or token.map is None:
            continue
        start, end = token.map[0] + body_line, token.map[1] + body_line
        if kind is BlockKind.HEADING:
            yield Leaf(kind, start, end, int(token.tag[1]), tokens[at + 1].content)
        else:
            yield Leaf(kind, start, end)


def _split_raw_headings(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Make `<h2 id="x">Text</h2>` with tags alone beside it a heading, the lines around blocks."""
    for leaf in _join_raw_headings(leaves, lines):
        at, position = leaf.start, 0
        text = "\n".join(lines[leaf.start : leaf.end]) if leaf.kind in _HOLDING_RAW else ""
        if "<h" in text:
            text = _HIDDEN.sub(lambda match: _NOT_A_LINE_END.sub(" ", match.group()), text)
        for match in _RAW_HEADING.finditer(text):
            start = at + text.count("\n", position, match.start())
            if start > at:
                yield Leaf(leaf.kind, at, start)
            raw_id = _RAW_ID.search(match["attributes"] or "")
            at, position = start + match.group().count("\n") + 1, match.end() + 1
            yield Leaf(
                BlockKind.HEADING,
                start,
                at,
                int(match["level"]),
                match["text"],
                raw_id.group(1) if raw_id else None,
                is_raw=True,
            )
        if at < leaf.end:
            yield leaf if at == leaf.start else Leaf(leaf.kind, at, leaf.end)


def _join_raw_headings(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Join a heading's tags on lines of their own with the text between them: one paragraph."""
    pending: list[Leaf] = []
    for leaf in leaves:
        begins = leaf.kind is BlockKind.JSX and _RAW_OPENING.match(lines[leaf.start]) is not None
        if begins or (pending and leaf.start != pending[-1].end):
            yield from pending
            pending = []
        if not begins and not pending:
            yield leaf
            continue
        pending.append(leaf)
        if len(pending) == len(("tag", "text", "tag")):
            is_heading = pending[1].kind is BlockKind.PARAGRAPH and leaf.kind is BlockKind.JSX
            joined = Leaf(BlockKind.PARAGRAPH, pending[0].start, leaf.end)
            yield from [joined] if is_heading else pending
            pending = []
    yield from pending


def _fill_gaps(leaves: Iterable[Leaf], lines: Sequence[str], body_line: int) -> Iterator[Leaf]:
    """Give every line that no leaf has a leaf of its own: nothing of a source is lost."""
    at = body_line
    for leaf in [*leaves, Leaf(BlockKind.MARKER, len(lines), len(lines))]:
        yield from _read_gap(lines, at, leaf.start)
        start, end = max(leaf.start, at), leaf.end
        while end > start and not lines[end - 1].strip():
            end -= 1
        while start < end and not lines[start].strip():
            start += 1
        if start < end:
            yield leaf if (start, end) == (leaf.start, leaf.end) else _move(leaf, start, end)
            at = end


def _move(leaf: Leaf, start: int, end: int) -> Leaf:
    return Leaf(leaf.kind, start, end, leaf.level, leaf.content, leaf.raw_id, leaf.is_raw)


def _read_gap(lines: Sequence[str], start: int, end: int) -> Iterator[Leaf]:
    at = start
    while at < end:
        if not lines[at].strip():
            at += 1
            continue
        if _MARKER_LINE.fullmatch(lines[at]):
            yield Leaf(BlockKind.MARKER, at, at + 1)
            at += 1
            continue
        first = at
        while at < end and lines[at].strip():
            at += 1
        yield Leaf(BlockKind.PARAGRAPH, first, at)
