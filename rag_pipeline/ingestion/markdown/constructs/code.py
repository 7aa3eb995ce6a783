"""Code blocks: fences, indented code, `<CodeBlock>` tags, and `mdx-code-block` fences.

The content of an `mdx-code-block` fence is not code; it is parsed as Markdown.
"""

from __future__ import annotations

import bisect
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import fence as read_fence

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    BlockRule,
    Construct,
    accept,
    begin_of,
    find_line,
)
from rag_pipeline.ingestion.markdown.constructs.text import (
    clean_away,
    find_closing_mark,
    is_closed_by,
)
from rag_pipeline.ingestion.markdown.tags import SCANNER, Scanner, read_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits


_COMMENTS: Final = {
    "js": (r"//", ""),
    "block": (r"/\*", r"\*/"),
    "jsx": (r"\{\s*/\*", r"\*/\s*\}"),
    "bash": (r"\#", ""),
    "html": ("<!--", "-->"),
    "lua": ("--", ""),
    "wasm": (";;", ""),
    "tex": ("%", ""),
    "vb": (r"(?:_\s*)?['\u2018\u2019]", ""),
    "rem": (r"[Rr][Ee][Mm]\b", ""),
    "f90": ("!", ""),
    "ml": (r"\(\*", r"\*\)"),
    "cobol": (r"\*>", ""),
}
_POPULAR: Final = "js block jsx bash html"
_STYLES: Final = {
    "js javascript ts typescript": "js block",
    "jsx tsx": "js block jsx",
    "html": "js block html",
    "python py bash": "bash",
    "markdown md": "html jsx bash",
    "tex latex matlab": "tex",
    "lua haskell": "lua",
    "sql": "lua block",
    "wasm": "wasm",
    "vb vba visual-basic vbnet": "vb rem",
    "batch": "rem",
    "basic": "rem f90",
    "fsharp": "js ml",
    "ocaml sml": "ml",
    "fortran": "f90",
    "cobol": "cobol",
}
"""Comment styles of highlight comments by languages, as in Docusaurus's codeBlockUtils.js."""

_STYLES_OF: Final = {name: styles for names, styles in _STYLES.items() for name in names.split()}
_HIGHLIGHT: Final = "highlight-"
_LINE_RANGE: Final = re.compile(r"\{[\d,-]+\}")
_FENCE_LINE: Final = re.compile(r"[\s>]*(?:`{3,}|~{3,})(?P<info>[^\n]*)")
_MDX_OPEN: Final = re.compile(r" *(`{3,4}) *mdx-code-block")
_MDX_CLOSE: Final = re.compile(r" *(`{3,4})")


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a code fence that starts at `start_line`; return True if there is one.

    If the fence is inside a directive such as an admonition, the directive's closing `:::` line
    also ends the fence.
    """
    if not read_fence(state, start_line, end_line, silent):
        return False
    if silent:
        return True
    closing = find_closing_mark(state, start_line)
    if closing is None:
        return True
    for line in range(start_line + 1, state.line):
        if is_closed_by(state, line, closing):
            state.line = line
            state.tokens[-1].map = [start_line, line]
            break
    return True


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_blank_lines = True
    fence = _FENCE_LINE.match(edits.source, start, end)
    info = fence["info"] if fence is not None else ""
    for first, last in find_magic_comments(edits.source, start, end, info):
        edits.replace(first, last, "")


def find_magic_comments(text: str, start: int, end: int, info: str) -> Iterator[tuple[int, int]]:
    """Yield start and end offset of the lines with highlight comments, which readers do not see.

    As in Docusaurus, the style of comments depends on the language, and a code block whose lines
    are named in braces has no highlight comments.

    Args:
        text: Text that contains the code.
        start: Offset of the first character of the code block.
        end: Offset after its last character.
        info: The text after the opening fence, such as `js {1,3}`.
    """
    if text.find(_HIGHLIGHT, start, end) < 0 or _LINE_RANGE.search(info):
        return
    language = (info.split() or [""])[0].lower()
    for match in _find_comment(_STYLES_OF.get(language, _POPULAR)).finditer(text, start, end):
        yield match.span()


@lru_cache
def _find_comment(styles: str) -> re.Pattern[str]:
    """Compile a regular expression for lines with a highlight comment in one of some styles."""
    directive = rf"[ \t]*{_HIGHLIGHT}(?:next-line|start|end)[ \t]*"
    comments = "|".join(directive.join(_COMMENTS[style]) for style in styles.split())
    return re.compile(rf"^[ \t>]*(?:{comments})[ \t]*(?:\n|\Z)", re.MULTILINE)


def find_mdx_fences(lines: Sequence[str], body_line: int) -> list[int]:
    """Return the indexes of the opening and closing lines of all `mdx-code-block` fences.

    As in Docusaurus, fences of three backticks are also found inside fences of four.

    Args:
        lines: All lines of the page.
        body_line: Index of the first line to search.

    Returns:
        Line indexes in ascending order. Fences that are never closed are left out.
    """
    found: list[int] = []
    openers: dict[str, list[int]] = {"```": [], "````": []}
    closers: dict[str, list[int]] = {"```": [], "````": []}
    for at in range(body_line, len(lines)):
        for pattern, places in ((_MDX_OPEN, openers), (_MDX_CLOSE, closers)):
            if (match := pattern.fullmatch(lines[at])) is not None:
                places[match.group(1)].append(at)
    for ticks, possible in closers.items():
        until = body_line
        for at in openers[ticks]:
            index = bisect.bisect_right(possible, at + 1)
            if at >= until and index < len(possible):
                until = possible[index] + 1
                found += [at, until - 1]
    return sorted(found)


CODE: Final = Construct(
    "code",
    _clean,
    TextBlockKind.CODE,
    tokens=("fence", "code_block"),
    rules=(BlockRule("fence", _read, ends=ALL_TEXT),),
    off_in_mdx=("code",),
    is_atomic=True,
)
MDX_CODE_FENCE: Final = Construct("mdx_code_fence", clean_away)


_OPENING: Final = re.compile(r"<CodeBlock(?=[\s/>])")
_CLOSING: Final = "</CodeBlock>"
_TICKS: Final = re.compile("`{3,}")


def _read_tag_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a `<CodeBlock>` tag with its content; return True if nothing else is on its lines."""
    at = begin_of(state, start_line)
    if _OPENING.match(state.src, at) is None:
        return False
    limit = state.eMarks[end_line - 1]
    place = _find_content(state.env[SCANNER], at, limit)
    if place is None:
        return False
    end = place[1] + len(_CLOSING)
    line = find_line(state, start_line, end)
    if state.src[end : state.eMarks[line]].strip():
        return False
    return silent or accept(state, CODE_TAG.name, start_line, line + 1)


def _find_content(scanner: Scanner, start: int, limit: int) -> tuple[int, int] | None:
    """Return start and end offset of the content between the tags; None if a tag is missing."""
    opening = scanner.find_tag_end(start, limit)
    if opening is None or scanner.text.startswith("/>", opening - 2):
        return None
    at = opening
    while at < limit and scanner.text[at].isspace():
        at += 1
    inner = scanner.find_brace_end(at, limit) if scanner.text[at : at + 1] == "{" else None
    close = scanner.text.find(_CLOSING, inner or opening, limit)
    return (opening, close) if close >= 0 else None


def _clean_tag_block(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_blank_lines = True
    source = edits.source
    tag = source.index("<CodeBlock", start)
    place = _find_content(edits.scanner, tag, end)
    if place is None:  # the block was cut, for example by a container
        edits.replace(start, end, "")
        return
    attributes = read_attributes(edits.scanner, tag, place[0], edits.scope.find_value)
    title = attributes.get("title", "")
    quote = "'" if '"' in title else '"'
    named = attributes.get("className", "").removeprefix("language-")
    language = attributes.get("language") or named or ("text" if title else "")
    shown = f"title={quote}{title}{quote}" if title else ""
    parts = (language, shown, attributes.get("metastring", ""))
    info = " ".join(part for part in parts if part)
    code = source[place[0] : place[1]].strip()
    if code.startswith("{") and code.endswith("}"):
        code = edits.scope.resolve(code[1:-1], info)
    edits.replace(start, end, fence_code(code, info) if code.strip() else "")


def fence_code(code: str, info: str) -> str:
    """Return code as a fenced block, without its highlight comments."""
    for start, end in reversed([*find_magic_comments(code, 0, len(code), info)]):
        code = code[:start] + code[end:]
    longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    ending = "" if code.endswith("\n") else "\n"
    return f"{fence}{info}\n{code}{ending}{fence}"


CODE_TAG: Final = Construct(
    "code_tag",
    _clean_tag_block,
    TextBlockKind.CODE,
    rules=(BlockRule("code_tag", _read_tag_block, before="fence", ends=ALL_TEXT, only_mdx=True),),
    is_atomic=True,
)
