"""Data classes that declare a kind of Markdown block, and helper functions for its block rules.

A block rule is a function with markdown-it's signature `(state, start_line, end_line, silent)`. It
returns True if its block starts at `start_line`. Unless `silent` is True, it then also pushes
tokens with a line map and moves `state.line` to the line after the block.
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
    """A rule with which the Markdown parser recognises one kind of block.

    Attributes:
        name: Name of the rule in the parser.
        read: Function that recognises the block, with markdown-it's signature for block rules.
        before: Name of the existing rule that this rule is tried before. If it is empty, this rule
            replaces the existing rule that is called `name`.
        ends: Types of blocks that end at a line where this rule applies.
        only_mdx: True if the rule is used only for MDX pages, not for CommonMark pages.
    """

    name: str
    read: ReadBlock
    before: str = ""
    ends: tuple[str, ...] = ()
    only_mdx: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Construct:
    """A kind of Markdown block: the rules that find it, clean it and keep it whole in a chunk.

    Each kind is one object, so two constructs are equal only if they are the same object.

    Attributes:
        name: Name of the construct, which becomes `Block.kind`. The construct's own rules push
            tokens of this type.
        clean: Function that records the edits which turn a block into readable text. It gets the
            edits and the block's start and end offset in the source.
        text_kind: Kind under which the block is listed among the blocks of a text. None for a mark
            that only opens or closes a container, such as `:::`.
        tokens: Token types of markdown-it that also stand for this construct.
        rules: Block rules that find the construct, in addition to those built into markdown-it.
        off_in_mdx: Names of markdown-it's rules that are disabled for MDX pages.
        is_atomic: True if chunking must not split the block.
        leads: True if the block must stay together with the next block, as a heading must.
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
    """A run of source lines that form one block and contain no other block.

    All attributes after `end` are used only for headings.

    Attributes:
        construct: The kind of the block.
        start: Index of the first line, 0-based.
        end: Index of the line after the last line.
        level: Level of the heading, 1 to 6.
        content: Inline Markdown of the heading.
        raw_id: Value of the `id` attribute of an HTML heading; None if it has none.
        is_raw: True for a heading that is written as an HTML tag, such as `<h2>`. No id is
            generated from the text of an HTML heading.
    """

    construct: Construct
    start: int
    end: int
    level: int = 0
    content: str = ""
    raw_id: str | None = None
    is_raw: bool = False


def begin_of(state: StateBlock, line: int) -> int:
    """Return the offset of a line's first character after indentation and container marks.

    Container marks are the `>` of a quote and the marker of a list item.
    """
    return state.bMarks[line] + state.tShift[line]


def text_of(state: StateBlock, line: int) -> str:
    """Return the text of a line without its indentation and container marks, such as `> `."""
    return state.src[begin_of(state, line) : state.eMarks[line]]


def find_line(state: StateBlock, line: int, position: int) -> int:
    """Return the number of the line that contains a source offset.

    Args:
        state: State of the block parser.
        line: Line at which the search starts. It must not be after the wanted line.
        position: Offset in the source.
    """
    while state.eMarks[line] < position:
        line += 1
    return line


def accept(state: StateBlock, name: str, start_line: int, end_line: int) -> bool:
    """Push a token for a recognised block, and continue parsing after the block.

    Args:
        state: State of the block parser.
        name: Type of the token.
        start_line: First line of the block.
        end_line: Line after the last line of the block.

    Returns:
        True, which is the result of a block rule that applies.
    """
    token = state.push(name, "", 0)
    token.map = [start_line, end_line]
    state.line = end_line
    return True
