"""Parser for pages of the textbook, used by the rules in `book_lint`.

Line numbers start at 1 at the top of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})")
_MATH = re.compile(
    r"(?P<keep>\\.|(?P<ticks>`+)(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`))"
    r"|\$\$(?P<display>.*?)\$\$"
    r"|\$(?P<inline>(?:\\.|(?!\n\s*\n)[^$\\])+)\$",
    re.DOTALL,
)
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable(["code", "text_join"])


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page of the textbook: front matter, body and Markdown tokens."""

    name: str  # path under the docs folder, with forward slashes
    folder: Path  # the docs folder, for resolving links
    lines: tuple[str, ...]  # of the whole file
    front_matter: Mapping[str, object]
    body_line: int  # 1-based line on which the body begins
    tokens: tuple[Token, ...]  # their `map` counts lines from 0 at the top of the file

    @property
    def word_count(self) -> int:
        """The number of words in the body, split at white space, with code and math."""
        return sum(len(line.split()) for line in self.lines[self.body_line - 1 :])

    def key_line(self, key: str) -> int:
        """Return the line of a front matter key, or 1 if the key is missing."""
        for number, line in enumerate(self.lines[: self.body_line - 1], 1):
            if line.startswith(f"{key}:"):
                return number
        return 1


def load_page(path: Path, docs: Path) -> Page:
    """Read and parse a page. Missing or invalid front matter becomes an empty mapping."""
    return parse_page(path.read_text("utf-8"), path.relative_to(docs).as_posix(), docs)


def load_book(docs: Path) -> tuple[Page, ...]:
    """Read and parse all pages of the docs folder, ordered by path."""
    return tuple(load_page(path, docs) for path in sorted(docs.rglob("*.md")))


def parse_page(text: str, name: str, docs: Path) -> Page:
    """Parse a page from its text; `name` is its path below `docs`."""
    match = _FRONT_MATTER.match(text)
    head = match.group(0) if match else ""
    try:
        loaded = yaml.safe_load(match.group(1)) if match else None
    except yaml.YAMLError:
        loaded = None
    blanked = "\n" * head.count("\n") + _math_as_code(text[len(head) :])
    return Page(
        name=name,
        folder=docs,
        lines=tuple(text.splitlines()),
        front_matter=loaded if isinstance(loaded, dict) else {},
        body_line=head.count("\n") + 1,
        tokens=tuple(_MARKDOWN.parse(blanked)),
    )


def _math_as_code(body: str) -> str:
    """Replace inline math by code spans, and display math by empty lines.

    CommonMark does not know math, so it would read `_` and `*` in a formula as emphasis. The number
    of lines stays the same.
    """
    parts: list[str] = []
    live: list[str] = []
    fence = ""
    for line in body.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if not fence and mark is None:
            live.append(line)
            continue
        if live:
            parts.append(_MATH.sub(_replace_math, "".join(live)))
            live.clear()
        parts.append(line)
        if not fence and mark is not None:
            fence = mark.group(1)
        elif line.strip(" \t>\n") == fence[0] * max(len(fence), len(line.strip(" \t>\n"))):
            fence = ""
    return "".join(parts) + _MATH.sub(_replace_math, "".join(live))


def _replace_math(match: re.Match[str]) -> str:
    """Return the replacement of a match of `_MATH`."""
    if match["keep"] is not None:
        return match.group(0)
    if match["display"] is not None:
        return "\n" * match["display"].count("\n")
    return f"`{match['inline']}`"


def first_line(token: Token) -> int:
    """Return the line on which a block starts, counted from 1."""
    return token.map[0] + 1 if token.map else 1


def pieces(page: Page) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of each piece of the page, in order.

    The kinds are "text" (prose without code and math), "link" and "autolink" (targets, also of
    images), and "html" (tags). Code, math and import lines are left out.
    """
    for token in page.tokens:
        if token.type == "html_block":
            yield "html", first_line(token), token.content
        elif token.type == "inline" and not token.content.startswith("import "):
            yield from _inline_pieces(token)


def _inline_pieces(token: Token) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of each piece of an inline token."""
    line = first_line(token)
    for child in token.children or ():
        if child.type == "text":
            yield "text", line, child.content
        elif child.type == "html_inline":
            yield "html", line, child.content
        elif child.type == "link_open":
            kind = "autolink" if child.markup == "autolink" else "link"
            yield kind, line, str(child.attrs["href"])
        elif child.type == "image":
            yield "link", line, str(child.attrs["src"])
            yield "text", line, child.content
        line += child.content.count("\n") + (child.type in {"softbreak", "hardbreak"})


def plain_lines(page: Page) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of the body outside code blocks."""
    code = {
        line
        for token in page.tokens
        if token.type == "fence" and token.map
        for line in range(*token.map)
    }
    for number, text in enumerate(page.lines):
        if number + 1 >= page.body_line and number not in code:
            yield number + 1, text
