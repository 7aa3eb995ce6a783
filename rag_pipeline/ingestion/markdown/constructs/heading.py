"""Headings (with `#`, underlined or as `<h2>`), and the texts for their id and for display."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.site.docusaurus import split_custom_id
from rag_pipeline.ingestion.markdown.construct import Construct, Leaf
from rag_pipeline.ingestion.markdown.constructs.html import HTML, JSX
from rag_pipeline.ingestion.markdown.constructs.text import FOOTNOTES, PARAGRAPH, clean_text
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
_RAW_OPENING: Final = re.compile(r"[ \t>*+-]*<h[1-6][\s>]")
_RAW_ID: Final = re.compile(r"""\sid\s*=\s*["']([^"']+)["']""")
_COMPONENT_OPENING: Final = re.compile(r"[ \t]*<Heading(?=\s|$)")
_COMPONENT: Final = re.compile(
    r"[ \t]*<Heading\s(?P<attributes>[^<>]{0,1000}?)(?:/>|>(?P<text>.{0,1000}?)</Heading>)\s*",
    re.DOTALL,
)
_COMPONENT_LEVEL: Final = re.compile(r"""\bas=\{?\s*["']h([1-6])["']""")
_COMPONENT_ID: Final = re.compile(r"""\bid=\{?\s*["']([^"']+)["']""")
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
_FOOTNOTE: Final = re.compile(r"\[\^([^\]\s]+)\]")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    clean_text(edits, start, end)
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
    for leaf in _join_raw_headings(_join_components(leaves, lines), lines):
        at, position = leaf.start, 0
        may_contain = leaf.construct is PARAGRAPH or leaf.construct is HTML
        text = "\n".join(lines[leaf.start : leaf.end]) if may_contain else ""
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


def _join_components(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Join the blocks of each `<Heading as="h2" id="x">` component into one heading."""
    pending: list[Leaf] = []
    for leaf in leaves:
        if pending and (leaf.start != pending[-1].end or len(pending) > _MOST_HEADING_LEAVES):
            yield from pending
            pending = []
        begins = leaf.construct in {JSX, PARAGRAPH} and _COMPONENT_OPENING.match(lines[leaf.start])
        if not pending and not begins:
            yield leaf
            continue
        pending.append(leaf)
        text = "\n".join(lines[pending[0].start : leaf.end])
        if not text.rstrip().endswith(("/>", "</Heading>")):
            continue
        component = _COMPONENT.fullmatch(text)
        level = component and _COMPONENT_LEVEL.search(component["attributes"])
        if component is None or not level:
            yield from pending
        else:
            raw_id = _COMPONENT_ID.search(component["attributes"])
            children = _COMPONENT_CHILDREN.search(component["attributes"])
            content = (component["text"] or "").strip() or (children[1] if children else "")
            own_id, start = raw_id[1] if raw_id else None, pending[0].start
            yield Leaf(HEADING, start, leaf.end, int(level[1]), content, own_id, is_raw=True)
        pending = []
    yield from pending


def _join_raw_headings(leaves: Iterable[Leaf], lines: Sequence[str]) -> Iterator[Leaf]:
    """Join an HTML heading whose tags and text are on separate lines into one paragraph block.

    In MDX, an opening `<h2>`, the text and `</h2>` on separate lines are three blocks.
    """
    pending: list[Leaf] = []
    for leaf in leaves:
        begins = leaf.construct is JSX and _RAW_OPENING.match(lines[leaf.start]) is not None
        if begins or (pending and leaf.start != pending[-1].end):
            yield from pending
            pending = []
        if not begins and not pending:
            yield leaf
            continue
        pending.append(leaf)
        if len(pending) == len(("tag", "text", "tag")):
            is_heading = pending[1].construct is PARAGRAPH and leaf.construct is JSX
            joined = Leaf(PARAGRAPH, pending[0].start, leaf.end)
            yield from [joined] if is_heading else pending
            pending = []
    yield from pending


@dataclass(frozen=True, slots=True)
class HeadingText:
    """The texts of one heading.

    Attributes:
        slugged: Text from which the site generates the heading's id if there is no `custom_id`.
        shown: Text that a reader sees, with each run of white space reduced to one space.
        custom_id: Id that the author gave the heading, as in `{#my-id}`; None without such an id.
    """

    slugged: str
    shown: str
    custom_id: str | None


def read_heading(content: str, env: MutableMapping[str, Any], *, mdx: bool) -> HeadingText:
    """Parse the inline Markdown of a heading into the texts for its id and for display.

    Args:
        content: Inline Markdown of the heading, without `#` marks or underline.
        env: Environment of the block parser, with link references and names of footnotes.
        mdx: True if `{...}` is an expression and tags are JSX, as in MDX.
    """
    tokens: list[Token] = []
    md = _build_parser(mdx=mdx)
    md.inline.parse(content.strip(), md, env, tokens)
    slugged, shown = _join(tokens)
    if tokens and tokens[-1].type == "mdx_comment":
        words = tokens[-1].content.strip("/* \t\n").split(" ")
        if words[0].startswith("#") and len(words[0]) > 1:
            return HeadingText(slugged, _collapse(shown), words[0][1:])
    slugged, custom_id = split_custom_id(slugged)
    return HeadingText(slugged, _collapse(split_custom_id(shown)[0]), custom_id)


@lru_cache(maxsize=2)
def _build_parser(*, mdx: bool) -> MarkdownIt:
    md = MarkdownIt("commonmark").enable("strikethrough")
    md.inline.ruler.before("link", "footnote", _footnote)
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


def _collapse(text: str) -> str:
    return " ".join(text.split())


def _footnote(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a footnote mark such as `[^1]` in a heading; return True if there is one.

    The mark adds no text to the heading. The result is False if the page does not define the
    footnote.
    """
    match = _FOOTNOTE.match(state.src, state.pos)
    if match is None or match.group(1) not in state.env.get(FOOTNOTES, ()):
        return False
    if not silent:
        state.push("footnote", "", 0)
    state.pos = match.end()
    return True


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
