"""Directives: the marker lines of admonitions, `:::note Title` to `:::`, and `::leaf[text]`.

The content between marker lines is parsed as Markdown, so a heading in an admonition is a heading.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    BlockRule,
    Construct,
    accept,
    begin_of,
    text_of,
)

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits

_MOST_DIRECTIVES: Final = 40  # open directives that are tracked at the same time
_OPEN_DIRECTIVES: Final = "open_directives"
_CONTAINER: Final = re.compile(r"(:{3,})(?:[A-Za-z][\w-]*(?:[\[{ \t].*)?)?[ \t]*")
_LEAF: Final = re.compile(r"::(?P<name>[A-Za-z][\w-]*)(?:\[[^\]]*\])?(?:\{[^}]*\})?[ \t]*")
_DIRECTIVE: Final = re.compile(r":{2,}(?P<name>[\w-]*)[ \t]*(?P<rest>.*)", re.DOTALL)
_LABEL: Final = re.compile(r"\[(?P<title>.*)\](?:\{[^}]*\})?[ \t]*(?:$|\n)")
_TITLE: Final = re.compile(r"""\{[^}]*\btitle=(["'])(?P<title>[^"'}]*)\1[^}]*\}""")


def _read(state: StateBlock, start_line: int, _end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
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


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    mark = edits.source.index("::", start)
    leaf = _LEAF.match(edits.source, mark, end)
    if leaf is not None:
        edits.scope.unread.append(f"::{leaf['name']}")
    title = _find_title(edits.source, mark, end)
    if title is None:
        edits.replace(start, end, "")
        return
    # The marks and the indentation before the title keep it in its list item or quote.
    title_start, title_end = title
    edits.replace(mark, title_start, "")
    edits.clean_inline(title_start, title_end)
    edits.replace(title_end, end, "")


def _find_title(source: str, mark: int, end: int) -> tuple[int, int] | None:
    match = _DIRECTIVE.match(source, mark, end)
    if match is None or match.start("rest") == end:
        return None
    rest = match.start("rest")
    titled = _LABEL.match(source, rest, end) or _TITLE.match(source, rest, end)
    if titled is not None:
        return titled.span("title")
    return None if source[rest] == "{" else (rest, end)


DIRECTIVE: Final = Construct(
    "directive",
    _clean,
    text_kind=None,
    rules=(BlockRule("directive", _read, before="fence", ends=ALL_TEXT),),
    leads=True,
)
