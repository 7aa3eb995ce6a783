"""A page of the textbook as its lint sees it: front matter, Markdown tokens, pieces of prose.

No rule stands here; `book_lint` has them. Line numbers count from 1 and from the top of the file.
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
    """One page as the checks see it: front matter, body and Markdown tokens."""

    name: str  # path under the docs folder, with forward slashes
    folder: Path  # the docs folder, to resolve links in
    lines: tuple[str, ...]  # of the whole file
    front_matter: Mapping[str, object]
    body_line: int  # 1-based line on which the body begins
    tokens: tuple[Token, ...]  # maps count from line 0 of the whole file

    @property
    def word_count(self) -> int:
        """Words of the body, split at white space; code and math count."""
        return sum(len(line.split()) for line in self.lines[self.body_line - 1 :])

    def key_line(self, key: str) -> int:
        """Line of a front matter key, or 1 if it is absent."""
        for number, line in enumerate(self.lines[: self.body_line - 1], 1):
            if line.startswith(f"{key}:"):
                return number
        return 1


def load_page(path: Path, docs: Path) -> Page:
    """Read a page. One without front matter, or with front matter that is no mapping, has {}."""
    return parse_page(path.read_text("utf-8"), path.relative_to(docs).as_posix(), docs)


def load_book(docs: Path) -> tuple[Page, ...]:
    """Every page of the docs folder, ordered by path."""
    return tuple(load_page(path, docs) for path in sorted(docs.rglob("*.md")))


def parse_page(text: str, name: str, docs: Path) -> Page:
    """A page from its text; `name` is its path under `docs`."""
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
    """The body with inline math as code spans and display math blanked, lines kept.

    CommonMark knows no math, so `_` and `*` in a formula would be read as emphasis.
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
    if match["keep"] is not None:
        return match.group(0)
    if match["display"] is not None:
        return "\n" * match["display"].count("\n")
    return f"`{match['inline']}`"


def first_line(token: Token) -> int:
    """1-based line on which a block begins."""
    return token.map[0] + 1 if token.map else 1


def pieces(page: Page) -> Iterator[tuple[str, int, str]]:
    """What stands in the page, in order, as kind, line and text.

    Kinds: "text" (prose, no code and no math), "link" and "autolink" (targets, images
    included), "html" (tags). Import lines are left out.
    """
    for token in page.tokens:
        if token.type == "html_block":
            yield "html", first_line(token), token.content
        elif token.type == "inline" and not token.content.startswith("import "):
            yield from _inline_pieces(token)


def _inline_pieces(token: Token) -> Iterator[tuple[str, int, str]]:
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
    """The lines of the body that are in no code block, with their numbers."""
    code = {
        line
        for token in page.tokens
        if token.type == "fence" and token.map
        for line in range(*token.map)
    }
    for number, text in enumerate(page.lines):
        if number + 1 >= page.body_line and number not in code:
            yield number + 1, text
