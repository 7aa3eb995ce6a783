"""The form in which a kind of Markdown block is declared, and tools for its block rules.

A block rule has markdown-it's signature: it returns True if it applies, and then, unless it is
`silent`, pushes tokens with a line map and moves `state.line` on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from markdown_it.rules_block import StateBlock

from rag_pipeline.core.models import TextBlockKind

if TYPE_CHECKING:
    from rag_pipeline.ingestion.markdown.edits import BlockEdits

ReadBlock: TypeAlias = Callable[[StateBlock, int, int, bool], bool]
CleanBlock: TypeAlias = "Callable[[BlockEdits, int, int], None]"

PARAGRAPHS: Final = ("paragraph", "reference")
ALL_TEXT: Final = (*PARAGRAPHS, "blockquote", "list")


@dataclass(frozen=True, slots=True)
class BlockRule:
    """A rule of the block parser.

    Attributes:
        before: The rule that this one is tried before; empty replaces the rule of the same name.
        ends: The blocks that a line to which the rule applies ends.
        only_mdx: Whether the rule is left out of pages that are read as CommonMark.
    """

    name: str
    read: ReadBlock
    before: str = ""
    ends: tuple[str, ...] = ()
    only_mdx: bool = False


@dataclass(frozen=True, slots=True)
class Construct:
    """A kind of Markdown block.

    Attributes:
        name: `Block.kind`, and the type of the token that the construct's own rules push.
        clean: Records what cleaning changes in a block, given its start and end in the source.
        text_kind: How a text's blocks list it; None for mere marks of the container around it.
        tokens: Other token types of the parser that are this construct.
        rules: The block rules that find it, besides markdown-it's own.
        off_in_mdx: Rules of markdown-it that MDX does not have.
        is_atomic: Whether chunking never cuts it.
        leads: Whether the block after it belongs to it, as to a heading.
    """

    name: str
    clean: CleanBlock
    text_kind: TextBlockKind | None = TextBlockKind.OTHER
    tokens: tuple[str, ...] = ()
    rules: tuple[BlockRule, ...] = ()
    off_in_mdx: tuple[str, ...] = ()
    is_atomic: bool = False
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """A run of lines without blocks in it, 0-based, `end` exclusive; the rest is of headings only.

    Attributes:
        content: The heading's inline Markdown.
        raw_id: Id of a heading written as an HTML tag; such a heading is not slugged.
    """

    construct: Construct
    start: int
    end: int
    level: int = 0
    content: str = ""
    raw_id: str | None = None
    is_raw: bool = False


def begin_of(state: StateBlock, line: int) -> int:
    """Return the position of a line's first character after indentation and container marks."""
    return state.bMarks[line] + state.tShift[line]


def text_of(state: StateBlock, line: int) -> str:
    """Return a line without indentation and container marks."""
    return state.src[begin_of(state, line) : state.eMarks[line]]


def find_line(state: StateBlock, line: int, position: int) -> int:
    """Return the line that contains a position, which is not before `line`."""
    while state.eMarks[line] < position:
        line += 1
    return line


def accept(state: StateBlock, name: str, start_line: int, end_line: int) -> bool:
    """Push a token for lines up to `end_line` (exclusive), and go on after them."""
    token = state.push(name, "", 0)
    token.map = [start_line, end_line]
    state.line = end_line
    return True
