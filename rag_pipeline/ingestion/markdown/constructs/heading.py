"""Headings (with `#`, underlined or as `<h2>`), and the texts for their id and for display."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt
from mdit_py_plugins.footnote.index import footnote_ref

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.site.docusaurus import split_custom_id
from rag_pipeline.ingestion.markdown.construct import Construct, Leaf
from rag_pipeline.ingestion.markdown.constructs.html import HTML, JSX
from rag_pipeline.ingestion.markdown.constructs.text import PARAGRAPH
from rag_pipeline.ingestion.markdown.scope import SCOPE, Scope
from rag_pipeline.ingestion.markdown.tags import Scanner, is_comment_expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    from rag_pipeline.ingestion.markdown.edits import BlockEdits

_OWN_ID: Final = re.compile(r"\s*\\?\{#[^{}]*\}(?=[ \t]*#*[ \t]*(?:\n|$))")
_RAW_HEADING: Final = re.compile(
    r"^[ \t>*+-]*(?:<[^<>]*>[ \t]*)*<h(?P<level>[1-6])(?P<attributes>\s[^<>]*)?>"
    r"(?P<text>.{0,1000}?)</h(?P=level)>(?:[ \t]*<[^<>\n]*>)*[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_RAW_ID: Final = re.compile(r"""(?:^|\s)id\s*=\s*\{?\s*["']([^"']+)["']""")
_PART_OPENING: Final = re.compile(r"[ \t>*+-]*<h[1-6][\s>]|[ \t]*<Heading(?=\s|$)")
_COMPONENT: Final = re.compile(
    r"""[ \t]*<Heading\s(?=[^<>]*\bas=\{?\s*["']h(?P<level>[1-6])["'])"""
    r"""(?P<attributes>[^<>]{0,1000}?)(?:/>|>(?P<text>.{0,1000}?)</Heading>)\s*""",
    re.DOTALL,
)
_COMPONENT_CHILDREN: Final = re.compile(r"""\bchildren=\{?\s*["']([^"']+)["']""")
_MOST_HEADING_LEAVES: Final = 5
_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_NOT_A_LINE_END: Final = re.compile(r"[^\n]")
_TEXT_DIRECTIVE: Final = re.compile(
    r":(?P<name>[A-Za-z](?:[\w-]*[A-Za-z0-9])?)(?![\w-])(?::|(?P<label>\[[^\]]*\])?(?P<attributes>\{[^}]*\})?)",
    re.ASCII,
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.clean_inline(start, end)
    for match in _OWN_ID.finditer(edits.source, start, end):
        edits.replace(match.start(), match.end(), "")


HEADING: Final = Construct(
    "heading", _clean, TextBlockKind.HEADING, tokens=("heading_open",), leads=True
)


def split_raw_headings(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Split HTML headings, such as `<h2 id="x">Text</h2>`, off paragraphs and HTML blocks.

    An HTML heading counts only if nothing except tags stands next to it on its lines.

    Args:
        leaves: Blocks of a page that contain no other block, in source order.
        lines: All lines of the page.

    Yields:
        The blocks in source order. Text before and after an HTML heading stays a block of the
        original kind.
    """
    if not any("<h" in line or "<Heading" in line for line in lines):
        yield from leaves
        return
    for leaf in _join_parts(leaves, lines):
        at, position = leaf.start, 0
        may_contain = leaf.construct is PARAGRAPH or leaf.construct is HTML
        text = "\n".join(lines[leaf.start : leaf.end]) if may_contain else ""
        component = _COMPONENT.fullmatch(text) if leaf.construct is PARAGRAPH else None
        if component is not None:
            raw_id = _RAW_ID.search(component["attributes"])
            children = _COMPONENT_CHILDREN.search(component["attributes"])
            content = (component["text"] or "").strip() or (children[1] if children else "")
            level, own_id = int(component["level"]), raw_id[1] if raw_id else None
            yield Leaf(HEADING, at, leaf.end, level, content, own_id, is_raw=True)
            continue
        if "<h" in text:
            text = _HIDDEN.sub(lambda match: _NOT_A_LINE_END.sub(" ", match.group()), text)
        for match in _RAW_HEADING.finditer(text):
            start = at + text.count("\n", position, match.start())
            if start > at:
                yield Leaf(leaf.construct, at, start)
            raw_id = _RAW_ID.search(match["attributes"] or "")
            own_id = raw_id[1] if raw_id else None
            at, position = start + match.group().count("\n") + 1, match.end() + 1
            yield Leaf(HEADING, start, at, int(match["level"]), match["text"], own_id, is_raw=True)
        if at < leaf.end:
            yield leaf if at == leaf.start else Leaf(leaf.construct, at, leaf.end)


def _join_parts(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Join the blocks of an HTML heading, or of `<Heading as="h2" id="x">`, into a paragraph block.

    In MDX, an opening `<h2>`, the text and `</h2>` on separate lines are three blocks.
    """
    pending: list[Leaf] = []
    for leaf in leaves:
        if pending and (leaf.start != pending[-1].end or len(pending) > _MOST_HEADING_LEAVES):
            yield from pending
            pending = []
        opening = _PART_OPENING.match(lines[leaf.start])
        may_begin = leaf.construct is JSX or leaf.construct is PARAGRAPH
        if not pending and not (may_begin and opening):
            yield leaf
            continue
        pending.append(leaf)
        text = "\n".join(lines[pending[0].start : leaf.end])
        is_raw = pending[0].construct is JSX and _RAW_HEADING.search(text) is not None
        if is_raw or _COMPONENT.fullmatch(text):
            yield Leaf(PARAGRAPH, pending[0].start, leaf.end)
            pending = []
    yield from pending


def read_heading(
    content: str, env: MutableMapping[str, Any], *, mdx: bool
) -> tuple[str, str, str | None]:
    """Parse the inline Markdown of a heading into the texts for its id and for display.

    Args:
        content: Inline Markdown of the heading, without `#` marks or underline.
        env: Environment of the block parser, with link references and names of footnotes.
        mdx: True if `{...}` is an expression and tags are JSX, as in MDX.

    Returns:
        The text from which the site generates the heading's id; the text that a reader sees, with
        each run of white space reduced to one space; and the id that the author gave the heading,
        as in `{#my-id}`, or None.
    """
    tokens: list[Token] = []
    md = _build_parser(mdx=mdx)
    md.inline.parse(content.strip(), md, env, tokens)
    slugged, shown = _join(tokens)
    is_comment = bool(tokens) and tokens[-1].type == "mdx_comment"
    custom_id = tokens[-1].content.strip("/* \t\n").split(" ")[0] if is_comment else ""
    if custom_id.startswith("#") and len(custom_id) > 1:
        return slugged, " ".join(shown.split()), custom_id[1:]
    slugged, own_id = split_custom_id(slugged)
    return slugged, " ".join(split_custom_id(shown)[0].split()), own_id


@lru_cache(maxsize=2)
def _build_parser(*, mdx: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark").enable("strikethrough")
    md.inline.ruler.before("link", "footnote", footnote_ref)
    md.inline.ruler.before("entity", "directive", _text_directive)
    if mdx:
        md.disable(["html_inline", "autolink"])
        md.inline.ruler.before("entity", "mdx", _mdx)
    return md


def _join(tokens: Sequence[Token]) -> tuple[str, str]:
    slugged, shown, alts = [], [], []
    for token in tokens:
        if token.type in {"text", "text_special", "code_inline"}:
            slugged.append(token.content)
            shown.append(token.content)
        elif token.type == "softbreak":
            slugged.append("\n")
            shown.append(" ")
        elif token.type == "image":
            alts.append(_join(token.children or [])[0])
            slugged.append(alts[-1])
        elif token.type == "directive":
            slugged.append(token.content)
            shown.append(token.content or token.markup)
        elif token.type in {"mdx_expression", "mdx_comment"}:
            slugged.append(token.content)
            shown.append(token.markup)
    text = "".join(shown)
    return "".join(slugged), text if text.strip() else "".join(alts)


def _text_directive(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a text directive `:name[label]{attributes}`; return True if there is one.

    The label becomes part of the heading's text. A directive that is only `:name` becomes part of
    the heading's displayed text, but not of its id.
    """
    if state.src[state.pos - 1 : state.pos] == ":" and state.pos:
        return False
    match = _TEXT_DIRECTIVE.match(state.src, state.pos)
    if match is None or match.group().endswith(":"):
        return False
    if not silent:
        token = state.push("directive", "", 0)
        token.content = (match["label"] or "")[1:-1]
        token.markup = "" if match["attributes"] else f":{match['name']}"
    state.pos = match.end()
    return True


def _mdx(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse an HTML comment, JSX tag or `{...}` expression; return True if there is one.

    HTML comments and tags add no text to the heading. The source of an expression becomes part of
    the heading's id. Its value becomes part of the displayed text if it is known. A custom id such
    as `{#id}` is not an expression.
    """
    char = state.src[state.pos]
    comment = _COMMENT.match(state.src, state.pos)
    if comment is not None:
        state.pos = comment.end()
        return True
    if char not in "<{" or state.src.startswith("{#", state.pos):
        return False
    scanner = Scanner(state.src, mdx=True)
    find_end = scanner.find_brace_end if char == "{" else scanner.find_tag_end
    end = find_end(state.pos, state.posMax)
    if end is None:
        return False
    if not silent:
        source = state.src[state.pos : end]
        is_comment = char == "{" and is_comment_expression(source) and "*/" in source
        kind = "mdx_comment" if is_comment else "mdx_expression" if char == "{" else "jsx"
        token = state.push(kind, "", 0)
        token.content = source[1:-1]
        scope: Scope = state.env.get(SCOPE) or Scope()
        token.markup = "" if is_comment else scope.find_value(source[1:-1]) or ""
    state.pos = end
    return True
