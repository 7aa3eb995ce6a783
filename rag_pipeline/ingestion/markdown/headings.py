"""A heading's inline Markdown as the text that is slugged and the text that is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

from rag_pipeline.core.docusaurus import split_custom_id
from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner, is_comment_expression

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_TEXT_DIRECTIVE: Final = re.compile(
    r":(?P<name>[A-Za-z](?:[\w-]*[A-Za-z0-9])?)(?![\w-])(?::|(?P<label>\[[^\]]*\])?(?P<attributes>\{[^}]*\})?)",
    re.ASCII,
)
_FOOTNOTE: Final = re.compile(r"\[\^([^\]\s]+)\]")
FOOTNOTES: Final = "footnote_names"
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HeadingText:
    """A heading read.

    Attributes:
        slugged: What its id is made of where it has none of its own.
        shown: What a reader sees, white space collapsed.
        custom_id: Its own id, None where the page makes one.
    """

    slugged: str
    shown: str
    custom_id: str | None


class HeadingReader:
    """Reads the headings of one document.

    Args:
        mdx: Whether `{...}` are expressions and tags are JSX.
        env: The block parser's environment: link references and names of footnotes.
    """

    def __init__(self, *, mdx: bool, env: MutableMapping[str, Any]) -> None:
        self._md = MarkdownIt("commonmark").enable("strikethrough")
        ruler = self._md.inline.ruler
        ruler.before("link", "footnote", _footnote)
        ruler.before("entity", "directive", _text_directive)
        if mdx:
            self._md.disable(["html_inline", "autolink"])
            ruler.before("entity", "mdx", _mdx)
        self._env = env

    def read(self, content: str) -> HeadingText:
        """Read a heading's source without its `#` marks or underline."""
        tokens: list[Token] = []
        self._md.inline.parse(content.strip(), self._md, self._env, tokens)
        slugged, shown = _join(tokens)
        if tokens and tokens[-1].type == "mdx_comment":
            words = tokens[-1].content.strip("/* \t\n").split(" ")
            if words[0].startswith("#") and len(words[0]) > 1:
                return HeadingText(slugged, _collapse(shown), words[0][1:])
        slugged, custom_id = split_custom_id(slugged)
        return HeadingText(slugged, _collapse(split_custom_id(shown)[0]), custom_id)


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
    """`[^1]` shows no text where the page defines the footnote."""
    match = _FOOTNOTE.match(state.src, state.pos)
    if match is None or match.group(1) not in state.env.get(FOOTNOTES, ()):
        return False
    if not silent:
        state.push("footnote", "", 0)
    state.pos = match.end()
    return True


def _text_directive(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`:name[label]{attributes}`: the label is text; without one the name is shown, not slugged."""
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
    """Tags show no text, `{...}` is slugged as written; `{#id}` is text."""
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
        token.markup = "" if is_comment else source[1:-1].strip("\"'` ")
    state.pos = end
    return True
