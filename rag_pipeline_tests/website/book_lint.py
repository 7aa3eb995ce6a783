"""Lint rules for the Markdown files of `website/docs`.

Each `check_...` function takes one page or the whole book, and yields a `Finding` for every place
that breaks its rule. Anchors, formulas and diagrams are checked by the build of the website.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers import expat

import yaml

from rag_pipeline_tests.website.book_page import Page, first_line, pieces, plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

MIN_PAGES = 89
MIN_BOOK_WORDS = 100_000
MIN_PAGE_WORDS = 500
SHORT_PAGES = frozenset({"index.md", "quiz.md"})  # these may have fewer words
REPEAT_WORDS = 12  # shorter paragraphs may be repeated
DESCRIPTION_CHARS = (50, 180)  # the range that search results show in full
TAG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
JSX_TAGS = frozenset({"details", "summary", "Tabs", "TabItem"})
XML_LANGUAGES = frozenset({"xml", "urdf", "sdf", "xacro"})


_TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w.]*)[^>]*?(/?)>", re.DOTALL)
_ADMONITION = re.compile(r"^\s*:::+\s*(?P<name>\w+)\s+[^\s\[{]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """A place in a page that breaks a rule."""

    page: str
    line: int  # 1-based
    message: str

    def __str__(self) -> str:
        """Return `page:line: message`, which editors turn into a link."""
        return f"{self.page}:{self.line}: {self.message}"


# --- Front matter and headings


def check_front_matter(page: Page) -> Iterator[Finding]:
    """Check that the page has the six required front matter keys with valid values."""
    rules: dict[str, Callable[[object], str]] = {
        "title": _text_fault,
        "description": _description_fault,
        "tags": _tags_fault,
        "sidebar_label": _text_fault,
        "sidebar_position": _position_fault,
        "learning-objectives": _objectives_fault,
    }
    for key, find_fault in rules.items():
        if key not in page.front_matter:
            yield Finding(page.name, 1, f"front matter has no {key}")
        elif fault := find_fault(page.front_matter[key]):
            yield Finding(page.name, page.key_line(key), f"{key} {fault}")


def _text_fault(value: object) -> str:
    return "" if isinstance(value, str) and value.strip() else "is not a text"


def _description_fault(value: object) -> str:
    low, high = DESCRIPTION_CHARS
    if fault := _text_fault(value):
        return fault
    length = len(str(value))
    return "" if low <= length <= high else f"has {length} characters, not {low} to {high}"


def _tags_fault(value: object) -> str:
    if not isinstance(value, list) or not value:
        return "is not a list with at least one tag"
    bad = [tag for tag in value if not isinstance(tag, str) or not TAG.fullmatch(tag)]
    if bad:
        return f"has {bad[0]!r}, which is not lower-case with hyphens"
    return "" if len(set(value)) == len(value) else "contains a tag twice"


def _position_fault(value: object) -> str:
    return "" if type(value) is int else "is not a whole number"


def _objectives_fault(value: object) -> str:
    if not isinstance(value, list) or not value:
        return "is not a list with at least one objective"
    return (
        ""
        if not any(_text_fault(item) for item in value)
        else "contains an entry that is not a text"
    )


def check_headings(page: Page) -> Iterator[Finding]:
    """Check that the page starts with one h1 equal to its title, and that no level is skipped."""
    headings = [
        (int(token.tag[1]), first_line(token), page.tokens[index + 1].content)
        for index, token in enumerate(page.tokens)
        if token.type == "heading_open"
    ]
    title = page.front_matter.get("title")
    tops = [heading for heading in headings if heading[0] == 1]
    if not tops:
        yield Finding(page.name, page.body_line, "no h1")
    for _, line, text in tops[:1]:
        if text != title:
            yield Finding(page.name, line, f"h1 {text!r} is not the title {title!r}")
    for _, line, text in tops[1:]:
        yield Finding(page.name, line, f"second h1 {text!r}")
    level = 0
    for depth, line, text in headings:
        if depth > level + 1:
            yield Finding(page.name, line, f"h{depth} {text!r} follows an h{level}")
        level = depth


def check_length(page: Page) -> Iterator[Finding]:
    """Check that the page has at least 500 words, unless it is an index page or a quiz."""
    if page.name.rpartition("/")[2] not in SHORT_PAGES and page.word_count < MIN_PAGE_WORDS:
        yield Finding(page.name, 1, f"{page.word_count} words, fewer than {MIN_PAGE_WORDS}")


# --- Code


def check_code(page: Page) -> Iterator[Finding]:
    """Check that code blocks are closed and have a language; parse Python, YAML, XML and JSON."""
    for token in page.tokens:
        if token.type != "fence" or token.map is None:
            continue
        start, end = token.map
        language = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
        if not language:
            yield Finding(page.name, start + 1, "code block without a language")
        if end - start < 2 or token.markup not in page.lines[end - 1]:
            yield Finding(page.name, start + 1, "code block is never closed")
        elif fault := _code_fault(language, token.content):
            line, message = fault
            yield Finding(page.name, start + 1 + line, f"{language} does not parse: {message}")


def _code_fault(language: str, code: str) -> tuple[int, str] | None:
    """Return line (from 1) and message of the first syntax error in a code block, or None."""
    try:
        if language in {"python", "py"}:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SyntaxWarning)
                ast.parse(code)
        elif language in {"yaml", "yml"}:
            list(yaml.safe_load_all(code))
        elif language == "json":
            json.loads(code)
        elif language in XML_LANGUAGES:
            expat.ParserCreate().Parse(code.strip(), True)  # noqa: FBT003 (positional only)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return (mark.line + 1 if mark else 1), str(error.problem)
    except (json.JSONDecodeError, expat.ExpatError) as error:
        return error.lineno, str(error)
    return None


# --- MDX


def check_mdx(page: Page) -> Iterator[Finding]:
    """Check that prose contains nothing that MDX reads as code: braces, bare `<`, unknown tags."""
    open_tags: list[str] = []
    for kind, line, text in pieces(page):
        if kind == "text" and (stray := re.search(r"[<{}]", text)):
            yield Finding(
                page.name, line, f"bare {stray.group()!r}: escape it or format it as code"
            )
        elif kind == "autolink":
            yield Finding(page.name, line, "address in angle brackets: write [text](address)")
        elif kind == "html":
            for offset, fault in _tag_faults(text, open_tags):
                yield Finding(page.name, line + offset, fault)
    for name in open_tags:
        yield Finding(page.name, len(page.lines), f"<{name}> is never closed")
    yield from _admonition_faults(page)


def _tag_faults(html: str, open_tags: list[str]) -> Iterator[tuple[int, str]]:
    """Yield line offset and message of each wrong tag, and update the list of open tags."""
    if "<!--" in html:
        yield html[: html.index("<!--")].count("\n"), "HTML comment: write {/* ... */} in MDX"
    for match in _TAG_NAME.finditer(html):
        closing, name, alone = match.groups()
        offset = html[: match.start()].count("\n")
        if name not in JSX_TAGS:
            yield offset, f"tag <{name}> is not one of {', '.join(sorted(JSX_TAGS))}"
        elif closing:
            if not open_tags or open_tags.pop() != name:
                yield offset, f"</{name}> closes nothing"
        elif not alone:
            open_tags.append(name)


def _admonition_faults(page: Page) -> Iterator[Finding]:
    """Yield admonitions whose title has no brackets, and `:::` lines without their counterpart."""
    depth = 0
    for line, text in plain_lines(page):
        stripped = text.strip()
        if not stripped.startswith(":::"):
            continue
        if _ADMONITION.match(text):
            yield Finding(page.name, line, "admonition title without brackets: write :::tip[Title]")
        depth += -1 if stripped.strip(":") == "" else 1
        if depth < 0:
            yield Finding(page.name, line, "::: closes nothing")
            depth = 0
    if depth:
        yield Finding(page.name, len(page.lines), "admonition is never closed")


# --- Prose


def load_terms(path: Path) -> dict[str, re.Pattern[str]]:
    """Read a YAML file of spellings: preferred spelling to a pattern of the rejected spellings."""
    table = yaml.safe_load(path.read_text("utf-8"))
    return {preferred: _any_spelling(preferred, rejected) for preferred, rejected in table.items()}


def _any_spelling(preferred: str, rejected: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that matches each rejected spelling as whole words, also with a plural s.

    If neither the rejected nor the preferred spelling contains capitals, the pattern also matches
    a capital first letter, as at the start of a sentence.
    """
    folds = preferred == preferred.lower()
    words = "|".join(_spelled(word, capital=folds and word == word.lower()) for word in rejected)
    return re.compile(rf"(?<![\w./-])(?:{words})s?(?![\w/-])")


def _spelled(word: str, *, capital: bool) -> str:
    """Return a pattern for a spelling; `capital` also allows a capital first letter."""
    first = f"[{word[0]}{word[0].upper()}]" if capital else re.escape(word[0])
    return first + re.escape(word[1:]).replace(r"\ ", r"\s+")


def check_terms(page: Page, terms: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    """Check that prose (not code, math or link targets) contains no rejected spelling."""
    for kind, line, text in pieces(page):
        if kind != "text":
            continue
        for preferred, pattern in terms.items():
            for match in pattern.finditer(text):
                yield Finding(page.name, line, f"{match.group()!r}: write {preferred!r}")


def check_links(page: Page) -> Iterator[Finding]:
    """Check that each link within the book is a relative path to an existing file."""
    for kind, line, target in pieces(page):
        if kind != "link" or re.match(r"[a-z]+:|#", target):
            continue
        path = target.partition("#")[0]
        if path.startswith("/"):
            yield Finding(
                page.name, line, f"{target}: link to the Markdown file, not to the address"
            )
        elif not (page.folder / page.name).parent.joinpath(path).is_file():
            yield Finding(page.name, line, f"{target}: the file does not exist")


# --- The whole book


def check_size(book: Sequence[Page]) -> Iterator[Finding]:
    """Check that the book has at least 89 pages and 100,000 words."""
    words = sum(page.word_count for page in book)
    if len(book) < MIN_PAGES:
        yield Finding(".", 1, f"{len(book)} pages, fewer than {MIN_PAGES}")
    if words < MIN_BOOK_WORDS:
        yield Finding(".", 1, f"{words} words, fewer than {MIN_BOOK_WORDS}")


def check_repeats(book: Iterable[Page]) -> Iterator[Finding]:
    """Check that no paragraph with at least 12 words occurs twice in the book."""
    seen: dict[str, str] = {}
    for page in book:
        for index, token in enumerate(page.tokens):
            if token.type != "paragraph_open":
                continue
            words = page.tokens[index + 1].content.lower().split()
            place = f"{page.name}:{first_line(token)}"
            first = seen.setdefault(" ".join(words), place)
            if first != place and len(words) >= REPEAT_WORDS:
                yield Finding(page.name, first_line(token), f"repeats the paragraph at {first}")


def check_order(book: Iterable[Page]) -> Iterator[Finding]:
    """Check that the pages of each folder have different sidebar positions."""
    taken: dict[tuple[str, object], str] = {}
    for page in book:
        place = page.front_matter.get("sidebar_position")
        first = taken.setdefault((page.name.rpartition("/")[0], place), page.name)
        if first != page.name:
            line = page.key_line("sidebar_position")
            yield Finding(page.name, line, f"{first} has the same sidebar_position {place}")
