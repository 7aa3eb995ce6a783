"""Code blocks that are written as a tag: `<CodeBlock language="js">{`...`}</CodeBlock>`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    BlockRule,
    Construct,
    accept,
    begin_of,
    find_line,
)
from rag_pipeline.ingestion.markdown.constructs.code import find_magic_comments
from rag_pipeline.ingestion.markdown.tags import SCANNER, read_attributes

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits
    from rag_pipeline.ingestion.markdown.tags import Scanner

_OPENING: Final = re.compile(r"<CodeBlock(?=[\s/>])")
_CLOSING: Final = "</CodeBlock>"
_TICKS: Final = re.compile("`{3,}")


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
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


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_blank_lines = True
    source = edits.source
    tag = source.index("<CodeBlock", start)
    place = _find_content(edits.scanner, tag, end)
    if place is None:  # the block was cut, for example by a container
        edits.keep_only([], start, end)
        return
    attributes = read_attributes(edits.scanner, tag, place[0], edits.scope.find_value)
    info = build_info(attributes)
    code = source[place[0] : place[1]].strip()
    if code.startswith("{") and code.endswith("}"):
        code = edits.scope.resolve(code[1:-1], info)
    edits.replace(start, end, fence_code(code, info) if code.strip() else "")


def build_info(attributes: dict[str, str]) -> str:
    """Return the text after the opening fence for the attributes of a code block's tag."""
    title = attributes.get("title", "")
    quote = "'" if '"' in title else '"'
    named = attributes.get("className", "").removeprefix("language-")
    language = attributes.get("language") or named or ("text" if title else "")
    shown = f"title={quote}{title}{quote}" if title else ""
    parts = [language, shown, attributes.get("metastring", "")]
    return " ".join(part for part in parts if part)


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
    _clean,
    TextBlockKind.CODE,
    rules=(BlockRule("code_tag", _read, before="fence", ends=ALL_TEXT, only_mdx=True),),
    is_atomic=True,
)
