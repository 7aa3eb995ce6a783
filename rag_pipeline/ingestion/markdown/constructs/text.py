"""Paragraphs, displayed formulas, tables, link references, footnotes, and lines without text."""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import lheading as read_setext_heading
from markdown_it.rules_block import paragraph as read_paragraph
from markdown_it.rules_block import reference as read_reference
from markdown_it.rules_block import table as read_table
from mdit_py_plugins.footnote.index import footnote_def as read_footnote

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    PARAGRAPHS,
    BlockRule,
    Construct,
    accept,
    begin_of,
    text_of,
)
from rag_pipeline.ingestion.markdown.edits import BlockEdits

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.construct import ReadBlock


_MOST_DIRECTIVES: Final = 40  # open directives that are tracked at the same time
_OPEN_DIRECTIVES: Final = "open_directives"
_CONTAINER: Final = re.compile(r"(:{3,})(?:[A-Za-z][\w-]*(?:[\[{ \t].*)?)?[ \t]*")
_LEAF: Final = re.compile(r"::(?P<name>[A-Za-z][\w-]*)(?:\[[^\]]*\])?(?:\{[^}]*\})?[ \t]*")
_DIRECTIVE: Final = re.compile(r":{2,}(?P<name>[\w-]*)[ \t]*(?P<rest>.*)", re.DOTALL)
_LABEL: Final = re.compile(r"\[(?P<title>.*)\](?:\{[^}]*\})?[ \t]*(?:$|\n)")
_TITLE: Final = re.compile(r"""\{[^}]*\btitle=(["'])(?P<title>[^"'}]*)\1[^}]*\}""")


def _read_directive(state: StateBlock, start_line: int, _end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a directive's marker line at `start_line`; return True if there is one.

    The `nesting` of the pushed token is 1 for an opening line, -1 for a closing line and 0 for a
    leaf directive. Its `markup` contains the colons of an opening or closing line.
    """
    text = text_of(state, start_line)
    if not text.startswith("::") or state.is_code_block(start_line):
        return False
    match = _CONTAINER.fullmatch(text)
    if match is None and _LEAF.fullmatch(text) is None:
        return False
    if silent:
        return True
    accept(state, DIRECTIVE.name, start_line, start_line + 1)
    if match is not None:
        is_closing = not text.strip(": \t")
        state.tokens[-1].markup = match.group(1)
        state.tokens[-1].nesting = -1 if is_closing else 1
        _track(state, start_line, len(match.group(1)), is_closing=is_closing)
    return True


def _track(state: StateBlock, line: int, colons: int, *, is_closing: bool) -> None:
    """Record an opening line, or remove the directives that a closing line closes.

    As in Docusaurus, a closing line closes the outermost directive at its block quote depth that
    has at most as many colons, and all directives inside it. It may close none.
    """
    opened: list[tuple[int, int]] = state.env.setdefault(_OPEN_DIRECTIVES, [])
    depth = _quote_depth(state, line)
    if not is_closing:
        if len(opened) < _MOST_DIRECTIVES:
            opened.append((depth, colons))
        return
    for place, (quotes, own_colons) in enumerate(opened):
        if quotes == depth and own_colons <= colons:
            del opened[place:]
            return


def _quote_depth(state: StateBlock, line: int) -> int:
    """Return the number of block quotes around a line."""
    start = state.bMarks[line]
    return state.src.count(">", state.src.rfind("\n", 0, start) + 1, start)


def find_closing_mark(state: StateBlock, line: int) -> re.Pattern[str] | None:
    """Return a regular expression for the lines that close a directive around the given line.

    It matches lines of at least as many colons as the shortest opening mark of these directives
    has. The result is None if no directive is open at the block quote depth of the line.
    """
    depth = _quote_depth(state, line)
    opened = [colons for quotes, colons in state.env.get(_OPEN_DIRECTIVES, ()) if quotes == depth]
    return re.compile(f":{{{min(opened)},}}[ \\t]*") if opened else None


def is_closed_by(state: StateBlock, line: int, mark: re.Pattern[str]) -> bool:
    """Return True if a line closes a directive; `mark` is the result of `find_closing_mark`."""
    is_directive = state.src.startswith(":::", begin_of(state, line))
    return is_directive and mark.fullmatch(text_of(state, line)) is not None


def _clean_directive(edits: BlockEdits, start: int, end: int) -> None:
    mark = edits.source.index("::", start)
    leaf = _LEAF.match(edits.source, mark, end)
    if leaf is not None:
        edits.scope.unread.append(f"::{leaf['name']}")
    rest = _DIRECTIVE.match(edits.source, mark, end)
    title_start = title_end = end if rest is None else rest.start("rest")
    place = (edits.source, title_start, end)
    titled = _LABEL.match(*place) or _TITLE.match(*place)
    if titled is not None:
        title_start, title_end = titled.span("title")
    elif title_start == end or edits.source[title_start] == "{":
        edits.replace(start, end, "")
        return
    else:
        title_end = end
    # The marks and the indentation before the title keep it in its list item or quote.
    edits.replace(mark, title_start, "")
    edits.clean_inline(title_start, title_end)
    edits.replace(title_end, end, "")


DIRECTIVE: Final = Construct(
    "directive",
    _clean_directive,
    text_kind=None,
    rules=(BlockRule("directive", _read_directive, before="fence", ends=ALL_TEXT),),
    leads=True,
)


_START: Final = re.compile(r"(\${2,})([^$]*)")
FORMULA: Final = re.compile(r"\s*(\${2,})[^$]+\1\s*")
"""A paragraph that contains only one formula, `$$...$$`."""
_OPEN_FROM: Final = "math_open_from"


def _read_formula(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a formula from `$$` to `$$` at `start_line`; return True if there is one.

    The opening mark must begin a line, and the closing mark must end a later line. A formula that
    is never closed is plain text.
    """
    match = _START.fullmatch(text_of(state, start_line))
    if match is None or state.is_code_block(start_line):
        return False
    marker = match.group(1)
    never: int = state.env.get(_OPEN_FROM, len(state.src))
    if state.bMarks[start_line] >= never:
        return False
    closing = find_closing_mark(state, start_line)
    is_inside = not _is_outside(state, start_line)  # if False, it ends the list item above
    for line in range(start_line + 1, end_line):
        if is_inside and not state.isEmpty(line) and _is_outside(state, line):
            break
        if closing is not None and is_closed_by(state, line, closing):
            break
        if text_of(state, line).rstrip().endswith(marker):
            return silent or accept(state, MATH.name, start_line, line + 1)
    else:
        if end_line == len(state.bMarks) - 1:
            state.env[_OPEN_FROM] = state.bMarks[start_line]
    return False


def _is_outside(state: StateBlock, line: int) -> bool:
    """Return True if a line is indented less than the content of the container being parsed."""
    return state.sCount[line] < state.blkIndent


def _clean_formula(edits: BlockEdits, _start: int, _end: int) -> None:
    edits.keeps_blank_lines = True


MATH: Final = Construct(
    "math",
    _clean_formula,
    TextBlockKind.FORMULA,
    rules=(BlockRule("math", _read_formula, before="fence", ends=ALL_TEXT),),
    is_atomic=True,
)


def clean_away(edits: BlockEdits, start: int, end: int) -> None:
    """Record the edit that removes a whole block, because the block is only syntax."""
    edits.replace(start, end, "")


FRONT_MATTER: Final = Construct("front_matter", clean_away)
THEMATIC_BREAK: Final = Construct("thematic_break", clean_away, tokens=("hr",))
MARKER: Final = Construct("marker", clean_away, text_kind=None)
"""The mark of an empty list item or quote. The parser creates no block for it."""


def _read_link_reference(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a link reference definition at `start_line`; return True if there is one.

    A footnote definition such as `[^1]: text` is not a link reference definition.
    """
    if state.src.startswith("[^", begin_of(state, start_line)):
        return False
    if not read_reference(state, start_line, end_line, silent):
        return False
    if not silent:
        token = state.push(LINK_REFERENCE.name, "", 0)
        token.map = [start_line, state.line]
    return True


LINK_REFERENCE: Final = Construct(
    "link_reference",
    clean_away,
    rules=(
        BlockRule("reference", _read_link_reference),
        BlockRule("footnote", read_footnote, before="reference", ends=PARAGRAPHS),
    ),
)


_MOST_INDENT: Final = 3  # columns; deeper indentation is code in CommonMark
_MOST_DEEP_LINES: Final = 50  # checked for each paragraph, so that parsing takes linear time
_DEEP_LINES: Final = "deep_lines"


def ignore_indent(rule: ReadBlock) -> ReadBlock:
    """Wrap a paragraph rule so that lines indented by four or more columns can end the paragraph.

    CommonMark would read such a line as a continuation of the paragraph. MDX has no indented code,
    so a code fence or list may be indented that far.
    """

    def read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
        deep: list[int] | None = state.env.get(_DEEP_LINES)
        if deep is None:
            lines = range(state.lineMax)
            deep = [line for line in lines if state.sCount[line] > _MOST_INDENT]
            state.env[_DEEP_LINES] = deep
        kept: dict[int, int] = {}
        first = bisect.bisect_right(deep, start_line)
        for line in deep[first : first + _MOST_DEEP_LINES]:
            if line >= end_line:
                break
            if state.sCount[line] - state.blkIndent > _MOST_INDENT:
                kept[line] = state.sCount[line]
                state.sCount[line] = state.blkIndent + _MOST_INDENT
        try:
            return rule(state, start_line, end_line, silent)
        finally:
            for line, indent in kept.items():
                state.sCount[line] = indent

    return read


PARAGRAPH: Final = Construct(
    "paragraph",
    BlockEdits.clean_inline,
    TextBlockKind.PARAGRAPH,
    tokens=("paragraph_open",),
    rules=(
        BlockRule("lheading", ignore_indent(read_setext_heading), only_mdx=True),
        BlockRule("paragraph", ignore_indent(read_paragraph), only_mdx=True),
    ),
)


def _clean_table(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_escaped_bars = True
    edits.clean_inline(start, end)


# markdown-it tries tables before lists, so it would make the mark of `1. a | b` part of a table.
# This rule is therefore tried later.
TABLE: Final = Construct(
    "table",
    _clean_table,
    TextBlockKind.TABLE,
    tokens=("table_open",),
    rules=(BlockRule("gfm_table", read_table, before="lheading", ends=PARAGRAPHS),),
    is_atomic=True,
)
