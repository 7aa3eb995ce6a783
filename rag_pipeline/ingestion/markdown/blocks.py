"""Split a page into leaf blocks, and a text into paragraphs, list items, tables and formulas.

A leaf block is a block that contains no other block.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

from rag_pipeline.core.models import Block, Container, ParsedDoc, TextBlock, TextBlockKind
from rag_pipeline.ingestion.markdown.construct import Leaf
from rag_pipeline.ingestion.markdown.constructs import code, html
from rag_pipeline.ingestion.markdown.constructs import text as prose
from rag_pipeline.ingestion.markdown.constructs.code import MDX_CODE_FENCE, find_mdx_fences
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING, split_raw_headings
from rag_pipeline.ingestion.markdown.constructs.text import FORMULA, MARKER, PARAGRAPH
from rag_pipeline.ingestion.markdown.tags import SCANNER, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token


_MAX_NESTING: Final = 40  # levels; deeper content becomes plain paragraphs

CONSTRUCTS: Final = (
    *(prose.DIRECTIVE, prose.MATH, html.ESM, html.COMMENT, code.CODE_TAG, html.JSX),
    *(html.EXPRESSION, code.CODE, MDX_CODE_FENCE, prose.THEMATIC_BREAK, prose.LINK_REFERENCE),
    *(html.HTML, HEADING, prose.TABLE, PARAGRAPH, MARKER, prose.FRONT_MATTER),
)
"""All constructs, in the order in which the parser tries their rules."""

CONSTRUCT_OF_TOKEN: Final = {
    token: construct for construct in CONSTRUCTS for token in (construct.name, *construct.tokens)
}


@lru_cache(maxsize=2)
def build_parser(*, mdx: bool) -> MarkdownIt:
    """Build the Markdown parser that splits a text into blocks.

    The parser leaves inline Markdown, such as links, unparsed. It is cached and shared by callers.

    Args:
        mdx: True to parse MDX; False to parse CommonMark with HTML.
    """
    md = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    md.disable(["inline", "text_join"])
    for construct in CONSTRUCTS:
        for rule in construct.rules:
            if rule.only_mdx and not mdx:
                continue
            if rule.before:
                md.block.ruler.before(rule.before, rule.name, rule.read, {"alt": [*rule.ends]})
            else:
                md.block.ruler.at(rule.name, rule.read, {"alt": [*rule.ends]})
        if mdx:
            md.disable([*construct.off_in_mdx])
    return md


_KIND_OF_TOKEN: Final = {
    "bullet_list_open": TextBlockKind.LIST,
    "ordered_list_open": TextBlockKind.LIST,
    "list_item_open": TextBlockKind.LIST_ITEM,
    "blockquote_open": TextBlockKind.QUOTE,
    prose.DIRECTIVE.name: TextBlockKind.ADMONITION,
}
_CLOSING: Final = frozenset(
    name.replace("_open", "_close") for name in _KIND_OF_TOKEN if name.endswith("_open")
)
CONTAINER_TOKENS: Final = frozenset(_KIND_OF_TOKEN) | _CLOSING
"""The types of tokens that open or close a container."""

_MOST_NESTED: Final = 80  # containers; an admonition that is nested deeper is not listed


@dataclass(slots=True)
class ContainerLines:
    """The lines of one container: a list, a list item, a quote or an admonition.

    Attributes:
        start: Index of the first line, 0-based.
        end: Index of the line after the last line.
        chain: Number and kind of each container around this one, the outermost first, and of this
            container as the last entry. A number is unique within the text.
        colons: Number of colons in the opening mark of an admonition. Meaningless for others.
    """

    start: int
    end: int
    chain: tuple[Container, ...]
    colons: int

    @property
    def is_admonition(self) -> bool:
        """True if the container is an admonition, which `:::` lines open and close."""
        return self.chain[-1].kind is TextBlockKind.ADMONITION


def read_containers(
    tokens: Sequence[Token], first_line: int, last_line: int
) -> list[ContainerLines]:
    """Find the lists, list items, quotes and admonitions in the tokens of a Markdown parser.

    Args:
        tokens: All block tokens of a text.
        first_line: Index of the source line that the parser counts as line 0.
        last_line: Index of the line after the last line of the source.

    Returns:
        Containers in the order of their first lines, each before the containers inside it. An
        admonition ends with its closing `:::` line. An admonition that is never closed ends with
        the container around it, or with the text.
    """
    found: list[ContainerLines] = []
    opened: list[ContainerLines] = []
    for token in tokens:
        if token.type in _CLOSING:
            while opened.pop().is_admonition:
                pass
        kind = _KIND_OF_TOKEN.get(token.type)
        if kind is None or token.map is None:
            continue
        start, end = token.map[0] + first_line, token.map[1] + first_line
        if kind is TextBlockKind.ADMONITION:
            if token.nesting < 0:
                _close_admonition(opened, start, len(token.markup))
            if token.nesting <= 0 or len(opened) >= _MOST_NESTED:
                continue
            end = opened[-1].end if opened else last_line
        around = opened[-1].chain if opened else ()
        chain = (*around, Container(len(found), kind))
        opened.append(ContainerLines(start, end, chain, len(token.markup)))
        found.append(opened[-1])
    return found


def _close_admonition(opened: list[ContainerLines], line: int, colons: int) -> None:
    """Close the outermost open admonition that a closing mark of `colons` colons can close.

    As in Docusaurus, the closing mark needs at least as many colons as the opening mark. A mark
    with fewer colons than every open admonition closes nothing. Admonitions inside the closed one
    end before the line of the mark. The function sets the end lines and removes the closed
    admonitions from `opened`. Admonitions around the innermost list or quote stay open.
    """
    first = len(opened)
    while first and opened[first - 1].is_admonition:
        first -= 1
    closed = next((n for n in range(first, len(opened)) if opened[n].colons <= colons), None)
    if closed is None:
        return
    for admonition in opened[closed:]:
        admonition.end = line
    opened[closed].end = line + 1
    del opened[closed:]


def find_chains(
    containers: Sequence[ContainerLines], lines: Iterable[int]
) -> list[tuple[Container, ...]]:
    """Return the containers around each of the given lines.

    Args:
        containers: Containers of the text, as `read_containers` returns them.
        lines: Indexes of lines in ascending order.

    Returns:
        For each line the containers around it, the outermost first, each with its number (unique
        within the text) and kind. Empty for a line outside all containers.
    """
    chains: list[tuple[Container, ...]] = []
    chain: tuple[Container, ...] = ()
    following = 0
    for line in lines:
        while following < len(containers) and containers[following].start <= line:
            chain = containers[following].chain
            following += 1
        while chain and containers[chain[-1].number].end <= line:
            chain = chain[:-1]
        chains.append(chain)
    return chains


_MARKER_LINE: Final = re.compile(r"[\s>]*(?:(?:[-+*]|\d{1,9}[.)])[\s>]*)*")


class _KeptTokens(list["Token"]):
    """The tokens of a page that leaf blocks and containers are read from.

    The parser makes many more, such as several for each cell of a table.
    """

    def append(self, token: Token) -> None:
        """Add a token if it is needed; the text of a heading follows the heading's own token."""
        is_heading = bool(self) and CONSTRUCT_OF_TOKEN.get(self[-1].type) is HEADING
        if (
            token.type in CONSTRUCT_OF_TOKEN
            or token.type in CONTAINER_TOKENS
            or (is_heading and token.type == "inline")
        ):
            super().append(token)


def read_leaves(
    lines: Sequence[str], body_line: int, *, mdx: bool
) -> tuple[list[Leaf], list[ContainerLines], dict[str, Any]]:
    """Split the body of a Markdown page into leaf blocks, and find the containers around them.

    A leaf block contains no other block. Containers are lists, list items, quotes and admonitions.

    Args:
        lines: All lines of the page, without line ends.
        body_line: Index of the first line after the front matter. Earlier lines are ignored.
        mdx: True if the page is MDX; False if it is CommonMark with HTML.

    Returns:
        Three values. First, the leaf blocks in source order; every non-blank line of the body is
        in exactly one of them. Second, the containers. Third, the environment of the parser, which
        contains the link reference definitions of the page.
    """
    fence_lines = find_mdx_fences(lines, body_line)
    masked = list(lines[body_line:])
    for line in fence_lines:
        masked[line - body_line] = ""
    body = "\n".join(masked)
    env: dict[str, Any] = {SCANNER: Scanner(body, mdx=mdx)}
    parser = build_parser(mdx=mdx)
    state = StateCore(body, parser, env)
    state.tokens = tokens = _KeptTokens()
    parser.core.process(state)
    leaves = [Leaf(MDX_CODE_FENCE, line, line + 1) for line in fence_lines]
    for at, token in enumerate(tokens):
        construct = CONSTRUCT_OF_TOKEN.get(token.type)
        if construct is not None and token.map is not None:
            start, end = token.map[0] + body_line, token.map[1] + body_line
            is_heading = construct is HEADING
            level, content = (int(token.tag[1]), tokens[at + 1].content) if is_heading else (0, "")
            leaves.append(Leaf(construct, start, end, level, content))
    leaves.sort(key=lambda leaf: (leaf.start, leaf.end))
    filled = list(_fill_gaps(split_raw_headings(leaves, lines), lines, body_line))
    return filled, read_containers(tokens, body_line, len(lines)), env


def _fill_gaps(leaves: Iterable[Leaf], lines: Sequence[str], body_line: int) -> Iterator[Leaf]:
    """Add leaf blocks for the lines that no leaf covers, so that no text of a page is lost.

    Blank lines at the edges of a leaf are cut off, and overlapping leaves are shortened.

    Yields:
        Leaf blocks in source order; every non-blank line from `body_line` on is in exactly one.
    """
    at = body_line
    for leaf in [*leaves, Leaf(MARKER, len(lines), len(lines))]:
        while at < leaf.start:
            first, is_mark = at, _MARKER_LINE.fullmatch(lines[at]) is not None
            at += 1
            if not lines[first].strip():
                continue
            while not is_mark and at < leaf.start and lines[at].strip():
                at += 1
            yield Leaf(MARKER if is_mark else PARAGRAPH, first, at)
        start, end = max(leaf.start, at), leaf.end
        while end > start and not lines[end - 1].strip():
            end -= 1
        while start < end and not lines[start].strip():
            start += 1
        if start < end:
            is_same = (start, end) == (leaf.start, leaf.end)
            yield leaf if is_same else replace(leaf, start=start, end=end)
            at = end


Piece: TypeAlias = "tuple[TextBlockKind | None, tuple[Container, ...], int, int, int, int, bool]"
"""A block without inner blocks: kind, containers, offsets, lines, and if it begins with a link.

Lines count from 1; the last line is inclusive. A block whose kind is None is not listed.
"""

_LINE_END: Final = re.compile(r"\r\n?|\n")
_LINK: Final = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)*[*_~]*\[[^]\n]+\][(\[]"
)
"""A link at the start of a block, after list marks, quote marks and emphasis."""
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")


def find_text_blocks(text: str) -> tuple[TextBlock, ...]:
    r"""Find the blocks of any Markdown text, such as a reader's selection or a model's answer.

    The text is parsed as CommonMark with tables, admonitions and formulas. No text causes an
    error. Blocks consist of whole lines: a block starts at the first character of its first line,
    including indentation and list marks, and ends before the line end of its last line.

    A list is followed by its items. Items, quotes and admonitions are followed by the blocks
    inside them, except that the paragraphs of an item are not listed. A formula block is either
    `$$` to `$$` on lines of their own, which also ends the paragraph before it, or a paragraph
    that contains only `$$...$$`. A `$$...$$` next to other text is part of its paragraph.

    Returns:
        Blocks by ascending start, each before the blocks inside it. Blocks that are not nested do
        not overlap. Every non-blank character is in a block.
    """
    readable = _UNREADABLE.sub("\ufffd", text)
    starts, ends = [0], []
    for match in _LINE_END.finditer(readable):
        ends.append(match.start())
        starts.append(match.end())
    ends.append(len(readable))
    lines = [readable[start:end] for start, end in zip(starts, ends, strict=True)]
    leaves, containers, _ = read_leaves(lines, 0, mdx=False)
    chains = find_chains(containers, [leaf.start for leaf in leaves])
    pieces: list[Piece] = []
    for leaf, chain in zip(leaves, chains, strict=True):
        start, end = starts[leaf.start], ends[leaf.end - 1]
        kind = choose_kind(leaf.construct.text_kind, readable[start:end], chain)
        links = _LINK.match(readable, start) is not None
        pieces.append((kind, chain, start, end, leaf.start + 1, leaf.end, links))
    return nest_blocks(pieces)


def choose_kind(
    kind: TextBlockKind | None, text: str, containers: tuple[Container, ...]
) -> TextBlockKind | None:
    """Return the kind that a block has in the list of a text's blocks; None if it is left out.

    The paragraphs of a list item are left out, because the list contains the item. A paragraph that
    contains only a formula has the kind of a formula. A container mark outside all containers has
    the kind `OTHER`.

    Args:
        kind: Kind that the block's construct declares; None for the mark of a container.
        text: Text of the block.
        containers: Number and kind of each container around the block, the outermost first.
    """
    if kind is TextBlockKind.PARAGRAPH:
        if "$$" in text and FORMULA.fullmatch(text):
            return TextBlockKind.FORMULA
        listed = [container.kind for container in containers if container.kind is not None]
        return None if listed[-1:] == [TextBlockKind.LIST_ITEM] else kind
    is_outside = all(container.kind is None for container in containers)
    return TextBlockKind.OTHER if kind is None and is_outside else kind


def nest_blocks(pieces: Iterable[Piece]) -> tuple[TextBlock, ...]:
    """Return the containers and blocks of a text, each container before the blocks inside it.

    A container reaches from the start of its first piece to the end of its last piece.

    Args:
        pieces: Blocks that contain no other block, in the order of the text. Blocks whose kind is
            None are left out, but count for the extent of their containers.
    """
    found: list[TextBlock] = []
    place_of: dict[Container, int] = {}
    ends: dict[int, tuple[int, int]] = {}
    for kind, containers, start, end, first, last, links in pieces:
        for container in containers:
            if container.kind is None:
                continue
            at = place_of.setdefault(container, len(found))
            if at == len(found):
                found.append(TextBlock(container.kind, start, end, first, last, links))
            ends[at] = (end, last)
        if kind is not None:
            found.append(TextBlock(kind, start, end, first, last, links))
    for at, (end, last) in ends.items():
        found[at] = replace(found[at], end=end, end_line=last)
    return tuple(found)


def cut_text(block: Block, start: int, end: int) -> str:
    """Return the cleaned text of the part of a block between two source offsets.

    Neither offset may be inside characters that cleaning removes or replaces. If cleaning replaced
    characters directly after `start` or directly before `end`, the part includes their replacement.

    Args:
        block: The block to cut.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.
    """
    if start <= block.start and end >= block.end:
        return block.text
    first = min(bisect.bisect_left(block.runs, start, key=lambda run: run[1]), len(block.runs) - 1)
    last = max(bisect.bisect_right(block.runs, end, key=lambda run: run[0]) - 1, 0)
    run_start, _, text_start = block.runs[first]
    text_start += max(start - run_start, 0)
    run_start, run_end, text_end = block.runs[last]
    return block.text[text_start : text_end + min(end, run_end) - run_start]


def find_removed(block: Block, position: int) -> tuple[int, int] | None:
    """Return the range of removed or replaced source characters around an offset.

    Returns:
        Start and end offset of the characters that cleaning removed or replaced, if `position` is
        strictly inside them. None if no removed characters surround `position`.
    """
    following = bisect.bisect_left(block.runs, position, key=lambda run: run[0])
    if not 0 < following < len(block.runs):
        return None
    start, end = block.runs[following - 1][1], block.runs[following][0]
    return (start, end) if start < position < end else None


def read_span(parsed: ParsedDoc, start: int, end: int) -> str:
    """Return the cleaned text of a part of a document, for reading and embedding.

    Args:
        parsed: The parsed document.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.

    Returns:
        The text of all blocks in the part. Blank lines at the start and end are removed, and so is
        the indentation that all lines share.
    """
    text = "".join(gap + text for _, gap, text in _read_parts(parsed, start, end))
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


def find_span_blocks(parsed: ParsedDoc, start: int, end: int, text: str) -> tuple[TextBlock, ...]:
    """Find the blocks, such as paragraphs and lists, in the cleaned text of a part of a document.

    Args:
        parsed: The parsed document.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.
        text: The text that `read_span` returns for the same document and offsets.

    Returns:
        Blocks with offsets in `text` and lines of the source. A container comes before the blocks
        inside it.
    """
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    pieces: list[Piece] = []
    line = 0
    for block, gap, part in _read_parts(parsed, start, end):
        blank_before = part[: len(part) - len(part.lstrip())].count("\n")
        line += len(gap) if pieces else -blank_before
        last = line + part.rstrip().count("\n")
        piece_end = min(starts[last + 1] - 1, len(text))
        kind = choose_kind(block.text_kind, part, block.containers)
        # Blank lines at the start and end of the part do not count.
        low, high = max(start, block.start), min(end, block.end)
        written = parsed.source[low:high]
        before = parsed.source.count("\n", block.start, high - len(written.lstrip()))
        first = block.start_line + before
        lines = (first, first + written.strip().count("\n"))
        links = start <= block.start and _LINK.match(parsed.source, block.start) is not None
        place = (starts[line + blank_before], piece_end, *lines, links)
        pieces.append((kind, block.containers, *place))
        line += part.count("\n")
    return nest_blocks(pieces)


def _read_parts(parsed: ParsedDoc, start: int, end: int) -> Iterator[tuple[Block, str, str]]:
    """Yield the blocks that have text in a part of a document.

    Yields:
        The block, the line ends that separate it from the block before (none for the first block),
        and the block's cleaned text within the part.
    """
    blocks = parsed.blocks
    at = bisect.bisect_right(blocks, start, key=lambda block: block.end)
    last_line = 0
    while at < len(blocks) and blocks[at].start < end:
        block = blocks[at]
        at += 1
        text = cut_text(block, start, end)
        if not text.strip():
            continue
        gap = ("\n" if block.start_line == last_line + 1 else "\n\n") if last_line else ""
        yield block, gap, text
        last_line = block.end_line
