"""Block rules for markdown-it: what Docusaurus reads otherwise than CommonMark.

Each rule pushes one token with a line map and no children: a tag, an expression, an import, a
directive's marker line. What stands between an opening and a closing tag is parsed as Markdown, so
that a heading in a tab is a heading. Rules return True where they apply, as markdown-it asks.
"""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from markdown_it.rules_block import fence as read_fence
from markdown_it.rules_block import lheading as read_setext_heading
from markdown_it.rules_block import paragraph as read_paragraph
from markdown_it.rules_block import reference as read_reference
from markdown_it.rules_block import table as read_table
from mdit_py_plugins.footnote.index import footnote_def as read_footnote

from rag_pipeline.core.models import BlockKind
from rag_pipeline.ingestion.markdown import mdx_syntax

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.ruler import RuleOptionsType
    from markdown_it.rules_block import StateBlock

_Rule: TypeAlias = "Callable[[StateBlock, int, int, bool], bool]"

_MOST_INDENT: Final = 3  # columns; more make code in CommonMark
_MOST_DEEP_LINES: Final = 50  # looked at for each paragraph, to stay linear
_MOST_DIRECTIVES: Final = 40  # open at a time and remembered
_DEEP_LINES: Final = "deep_lines"
_INTERRUPTING: Final = ["paragraph", "reference", "blockquote", "list"]
_DIRECTIVE: Final = re.compile(r"(:{3,})(?:[A-Za-z][\w-]*(?:[\[{ \t].*)?)?[ \t]*")
_LEAF_DIRECTIVE: Final = re.compile(r"::[A-Za-z][\w-]*(?:\[[^\]]*\])?(?:\{[^}]*\})?[ \t]*")
_HIDDEN_TAG: Final = re.compile(r"<(style|script)\b[^>]*(?<!/)>")
_MATH_START: Final = re.compile(r"(\${2,})([^$]*)")
_OPEN_DIRECTIVES: Final = "open_directives"
SCANNER: Final = "scanner"
REFERENCE_LINES: Final = "reference_lines"


def use_docusaurus_rules(md: MarkdownIt, *, mdx: bool) -> None:
    """Add the rules to a parser; `mdx` adds those that `.md` files read as CommonMark lack."""
    ruler = md.block.ruler
    interrupting: RuleOptionsType = {"alt": [*_INTERRUPTING]}
    ruler.at("fence", _fence, interrupting)
    ruler.at("reference", _reference)
    ruler.before("fence", "directive", _directive, interrupting)
    ruler.before("fence", "math", _math, interrupting)
    # markdown-it tries tables before lists and would take the mark of `1. a | b` into the table
    ruler.before("lheading", "gfm_table", read_table, {"alt": ["paragraph", "reference"]})
    ruler.before("reference", "footnote", read_footnote, {"alt": ["paragraph", "reference"]})
    if mdx:
        md.disable(["code", "html_block"])
        ruler.at("lheading", _ignore_indent(read_setext_heading))
        ruler.at("paragraph", _ignore_indent(read_paragraph))
        ruler.before("fence", "esm", _esm)
        ruler.before("fence", "comment", _html_comment, interrupting)
        ruler.before("fence", "jsx", _jsx, interrupting)


def _begin(state: StateBlock, line: int) -> int:
    return state.bMarks[line] + state.tShift[line]


def _text(state: StateBlock, line: int) -> str:
    return state.src[_begin(state, line) : state.eMarks[line]]


def _is_outside(state: StateBlock, line: int) -> bool:
    """Tell whether a line belongs to a container above the one being parsed."""
    return state.sCount[line] < state.blkIndent


def _accept(state: StateBlock, kind: BlockKind, start_line: int, end_line: int) -> bool:
    token = state.push(kind.value, "", 0)
    token.map = [start_line, end_line]
    state.line = end_line
    return True


def _directive(state: StateBlock, start_line: int, _end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`:::note Title`, `:::` and `::leaf`: marker lines, content in between stays Markdown."""
    text = _text(state, start_line)
    if not text.startswith("::") or state.is_code_block(start_line):
        return False
    match = _DIRECTIVE.fullmatch(text)
    if match is None and _LEAF_DIRECTIVE.fullmatch(text) is None:
        return False
    if silent:
        return True
    _accept(state, BlockKind.DIRECTIVE, start_line, start_line + 1)
    if match is not None:
        is_closing = not text.strip(": \t")
        state.tokens[-1].markup = match.group(1)
        state.tokens[-1].nesting = -1 if is_closing else 1
        _track_directive(state, start_line, len(match.group(1)), is_closing=is_closing)
    return True


def _track_directive(state: StateBlock, line: int, colons: int, *, is_closing: bool) -> None:
    opened: list[tuple[int, int]] = state.env.setdefault(_OPEN_DIRECTIVES, [])
    if not is_closing:
        if len(opened) < _MOST_DIRECTIVES:
            opened.append((_quote_depth(state, line), colons))
        return
    while opened and opened[-1][1] > colons:
        opened.pop()
    if opened:
        opened.pop()


def _quote_depth(state: StateBlock, line: int) -> int:
    """How many block quotes a line stands in."""
    start = state.bMarks[line]
    return state.src.count(">", state.src.rfind("\n", 0, start) + 1, start)


def _fence(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """A fence, ended by the `:::` of the directive around it where it is not closed before."""
    if not read_fence(state, start_line, end_line, silent):
        return False
    if silent:
        return True
    closing = _closing_mark(state, start_line)
    if closing is None:
        return True
    for line in range(start_line + 1, state.line):
        if _is_mark(state, line, closing):
            state.line = line
            state.tokens[-1].map = [start_line, line]
            break
    return True


def _closing_mark(state: StateBlock, line: int) -> re.Pattern[str] | None:
    """What closes a directive around a line, whatever else is open; None where none is."""
    depth = _quote_depth(state, line)
    opened = [colons for quotes, colons in state.env.get(_OPEN_DIRECTIVES, ()) if quotes == depth]
    return re.compile(f":{{{min(opened)},}}[ \\t]*") if opened else None


def _is_mark(state: StateBlock, line: int, mark: re.Pattern[str]) -> bool:
    is_directive = state.src.startswith(":::", _begin(state, line))
    return is_directive and mark.fullmatch(_text(state, line)) is not None


def _ignore_indent(rule: _Rule) -> _Rule:
    """Let an indented line end a paragraph: in MDX a fence or list indented by four is one."""

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


def _reference(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """A link reference, remembered by its lines; a footnote `[^1]: text` is none."""
    if state.src.startswith("[^", _begin(state, start_line)):
        return False
    if not read_reference(state, start_line, end_line, silent):
        return False
    if not silent:
        state.env.setdefault(REFERENCE_LINES, []).append((start_line, state.line))
    return True


def _math(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`$$` to `$$` on lines of their own; one that is never closed is text."""
    match = _MATH_START.fullmatch(_text(state, start_line))
    if match is None or state.is_code_block(start_line):
        return False
    marker = match.group(1)
    never: int = state.env.get("math_open_from", len(state.src))
    if state.bMarks[start_line] >= never:
        return False
    closing = _closing_mark(state, start_line)
    is_inside = not _is_outside(state, start_line)  # else it ends the list item before it
    for line in range(start_line + 1, end_line):
        if is_inside and not state.isEmpty(line) and _is_outside(state, line):
            break
        if closing is not None and _is_mark(state, line, closing):
            break
        if _text(state, line).rstrip().endswith(marker):
            return silent or _accept(state, BlockKind.MATH, start_line, line + 1)
    else:
        if end_line == len(state.bMarks) - 1:
            state.env["math_open_from"] = state.bMarks[start_line]
    return False


def _esm(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`import` and `export` at the first column, to the blank line that ends the statement."""
    start = state.bMarks[start_line]
    if state.tShift[start_line] or state.blkIndent or state.src[start - 1 : start].strip():
        return False
    if not mdx_syntax.begins_esm(state.src[start : state.eMarks[start_line]]):
        return False
    if silent:
        return True
    scanner: mdx_syntax.Scanner = state.env[SCANNER]
    end = scanner.find_esm_end(start, state.eMarks[end_line - 1])
    return _accept(state, BlockKind.ESM, start_line, _find_line(state, start_line, end) + 1)


def _html_comment(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`<!-- ... -->`, over blank lines too; what follows on its last line stays with it."""
    start = _begin(state, start_line)
    if not state.src.startswith("<!--", start):
        return False
    never: int = state.env.get("comment_open_from", len(state.src))
    end = -1 if start >= never else state.src.find("-->", start + 4, state.eMarks[end_line - 1])
    if end < 0:
        if end_line == len(state.bMarks) - 1:
            state.env["comment_open_from"] = min(start, never)
        return False
    if silent:
        return True
    line = _find_line(state, start_line, end)
    is_whole = not state.src[end + 3 : state.eMarks[line]].strip()
    return _accept(state, BlockKind.COMMENT if is_whole else BlockKind.HTML, start_line, line + 1)


def _jsx(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Tags and `{...}` with nothing else on their lines; text beside a tag makes a paragraph."""
    at = _begin(state, start_line)
    if state.src[at : at + 1] not in {"<", "{"}:
        return False
    scanner: mdx_syntax.Scanner = state.env[SCANNER]
    limit = state.eMarks[end_line - 1]
    kind = BlockKind.COMMENT
    while state.src[at : at + 1] in {"<", "{"}:
        if state.src[at] == "{":
            end = scanner.find_brace_end(at, limit)
            is_comment = end is not None and mdx_syntax.is_comment_expression(state.src[at:end])
            kind = kind if is_comment or kind == BlockKind.JSX else BlockKind.EXPRESSION
        else:
            end = scanner.find_tag_end(at, limit)
            kind = BlockKind.JSX
            hidden = _HIDDEN_TAG.match(state.src, at, end) if end is not None else None
            if hidden is not None:
                close = state.src.find(f"</{hidden.group(1)}>", end, limit)
                end = close if close >= 0 else end
        if end is None:
            return False
        at = end
        while state.src[at : at + 1] in {" ", "\t"}:
            at += 1
    line = _find_line(state, start_line, at - 1)
    if state.src[at : state.eMarks[line]].strip():
        return False
    return silent or _accept(state, kind, start_line, line + 1)


def _find_line(state: StateBlock, line: int, position: int) -> int:
    while state.eMarks[line] < position:
        line += 1
    return line
