"""Rules for the Markdown and the prose of `website/docs`, as functions from pages to findings.

A check takes one page, or the whole book, and yields a `Finding` for each place that breaks its
rule; it never stops at the first. What only the site's own build can tell (anchors, formulas,
diagrams) is not looked at here.
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
SHORT_PAGES = frozenset({"index.md", "quiz.md"})  # may have fewer words
REPEAT_WORDS = 12  # a shorter paragraph may stand twice
DESCRIPTION_CHARS = (50, 180)  # what a search result shows
TAG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
JSX_TAGS = frozenset({"details", "summary", "Tabs", "TabItem"})
XML_LANGUAGES = frozenset({"xml", "urdf", "sdf", "xacro"})


_TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w.]*)[^>]*?(/?)>", re.DOTALL)
_ADMONITION = re.compile(r"^\s*:::+\s*(?P<name>\w+)\s+[^\s\[{]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in one page that breaks a rule."""

    page: str
    line: int  # 1-based
    message: str

    def __str__(self) -> str:
        """`page:line: message`, the form editors make a link of."""
        return f"{self.page}:{self.line}: {self.message}"


# --- Front matter and headings


def check_front_matter(page: Page) -> Iterator[Finding]:
    """The six keys every page has, each of its type and form."""
    rules: dict[str, Callable[[object], str]] = {
        "title": _text_fault,
        "description": _description_fault,
        "tags": _tags_fault,
        "sidebar_label": _text_fault,
        "sidebar_position": _position_fault,
        "learning-objectives": _objectives_fault,
    }
    for key, fault_of in rules.items():
        if key not in page.front_matter:
            yield Finding(page.name, 1, f"front matter lacks {key}")
        elif fault := fault_of(page.front_matter[key]):
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
        return "is not a list with a tag in it"
    bad = [tag for tag in value if not isinstance(tag, str) or not TAG.fullmatch(tag)]
    if bad:
        return f"has {bad[0]!r}, which is not lower-case with hyphens"
    return "" if len(set(value)) == len(value) else "names a tag twice"


def _position_fault(value: object) -> str:
    return "" if type(value) is int else "is not a whole number"


def _objectives_fault(value: object) -> str:
    if not isinstance(value, list) or not value:
        return "is not a list with an objective in it"
    return "" if not any(_text_fault(item) for item in value) else "has an entry that is no text"


def check_headings(page: Page) -> Iterator[Finding]:
    """One h1, first and equal to the title; after it no level is skipped."""
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
    """A page has enough words to teach something; index pages and quizzes may be shorter."""
    if page.name.rpartition("/")[2] not in SHORT_PAGES and page.word_count < MIN_PAGE_WORDS:
        yield Finding(page.name, 1, f"{page.word_count} words, fewer than {MIN_PAGE_WORDS}")


# --- Code


def check_code(page: Page) -> Iterator[Finding]:
    """Every fence is closed and names its language; Python, YAML, XML and JSON parse."""
    for token in page.tokens:
        if token.type != "fence" or token.map is None:
            continue
        start, end = token.map
        language = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
        if not language:
            yield Finding(page.name, start + 1, "code block without a language")
        if end - start < 2 or token.markup not in page.lines[end - 1]:
            yield Finding(page.name, start + 1, "code block never closed")
        elif fault := _code_fault(language, token.content):
            line, message = fault
            yield Finding(page.name, start + 1 + line, f"{language} does not parse: {message}")


def _code_fault(language: str, code: str) -> tuple[int, str] | None:
    """The line in the block (from 1) and the message of its first fault, if it has one."""
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
    """Nothing in the prose that MDX would read as code: braces, stray `<`, comments, other tags."""
    open_tags: list[str] = []
    for kind, line, text in pieces(page):
        if kind == "text" and (stray := re.search(r"[<{}]", text)):
            yield Finding(page.name, line, f"bare {stray.group()!r}: escape it or make it code")
        elif kind == "autolink":
            yield Finding(page.name, line, "address in angle brackets: write [text](address)")
        elif kind == "html":
            for offset, fault in _tag_faults(text, open_tags):
                yield Finding(page.name, line + offset, fault)
    for name in open_tags:
        yield Finding(page.name, len(page.lines), f"<{name}> never closed")
    yield from _admonition_faults(page)


def _tag_faults(html: str, open_tags: list[str]) -> Iterator[tuple[int, str]]:
    """Line offset and fault of each tag; `open_tags` holds what is open and is kept up to date."""
    if "<!--" in html:
        yield html[: html.index("<!--")].count("\n"), "HTML comment: MDX has {/* ... */}"
    for match in _TAG_NAME.finditer(html):
        closing, name, alone = match.groups()
        offset = html[: match.start()].count("\n")
        if name not in JSX_TAGS:
            yield offset, f"tag <{name}>, not one of {', '.join(sorted(JSX_TAGS))}"
        elif closing:
            if not open_tags or open_tags.pop() != name:
                yield offset, f"</{name}> closes nothing"
        elif not alone:
            open_tags.append(name)


def _admonition_faults(page: Page) -> Iterator[Finding]:
    """Titles in brackets, and as many `:::` closed as opened."""
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
        yield Finding(page.name, len(page.lines), "admonition never closed")


# --- Prose


def load_terms(path: Path) -> dict[str, re.Pattern[str]]:
    """The rejected spellings of each preferred one, from a YAML mapping of lists."""
    table = yaml.safe_load(path.read_text("utf-8"))
    return {preferred: _any_spelling(preferred, rejected) for preferred, rejected in table.items()}


def _any_spelling(preferred: str, rejected: Sequence[str]) -> re.Pattern[str]:
    """Matches each rejected spelling as words of its own, and its plural in s.

    A word without capitals is found at the beginning of a sentence too, unless the preferred
    spelling has capitals: then that is what is wrong with it, and it is looked for as written.
    """
    folds = preferred == preferred.lower()
    words = "|".join(_spelled(word, capital=folds and word == word.lower()) for word in rejected)
    return re.compile(rf"(?<![\w./-])(?:{words})s?(?![\w/-])")


def _spelled(word: str, *, capital: bool) -> str:
    first = f"[{word[0]}{word[0].upper()}]" if capital else re.escape(word[0])
    return first + re.escape(word[1:]).replace(r"\ ", r"\s+")


def check_terms(page: Page, terms: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    """Prose uses the preferred spelling; code, math and link targets are free."""
    for kind, line, text in pieces(page):
        if kind != "text":
            continue
        for preferred, pattern in terms.items():
            for match in pattern.finditer(text):
                yield Finding(page.name, line, f"{match.group()!r}: write {preferred!r}")


def check_links(page: Page) -> Iterator[Finding]:
    """A link to a page of the book is a relative path, with extension, to a file that is there."""
    for kind, line, target in pieces(page):
        if kind != "link" or re.match(r"[a-z]+:|#", target):
            continue
        path = target.partition("#")[0]
        if path.startswith("/"):
            yield Finding(page.name, line, f"{target}: link to the file, not to its address")
        elif not (page.folder / page.name).parent.joinpath(path).is_file():
            yield Finding(page.name, line, f"{target}: no such file")


# --- The whole book


def check_size(book: Sequence[Page]) -> Iterator[Finding]:
    """The book has the pages and the words it is meant to have."""
    words = sum(page.word_count for page in book)
    if len(book) < MIN_PAGES:
        yield Finding(".", 1, f"{len(book)} pages, fewer than {MIN_PAGES}")
    if words < MIN_BOOK_WORDS:
        yield Finding(".", 1, f"{words} words, fewer than {MIN_BOOK_WORDS}")


def check_repeats(book: Iterable[Page]) -> Iterator[Finding]:
    """No paragraph of `REPEAT_WORDS` words or more stands twice, in whatever page."""
    seen: dict[str, str] = {}
    for page in book:
        for index, token in enumerate(page.tokens):
            if token.type != "paragraph_open":
                continue
            words = page.tokens[index + 1].content.lower().split()
            place = f"{page.name}:{first_line(token)}"
            first = seen.setdefault(" ".join(words), place)
            if first != place and len(words) >= REPEAT_WORDS:
                yield Finding(page.name, first_line(token), f"this paragraph stands at {first}")


def check_order(book: Iterable[Page]) -> Iterator[Finding]:
    """Pages of one folder have different places in the sidebar."""
    taken: dict[tuple[str, object], str] = {}
    for page in book:
        place = page.front_matter.get("sidebar_position")
        first = taken.setdefault((page.name.rpartition("/")[0], place), page.name)
        if first != page.name:
            line = page.key_line("sidebar_position")
            yield Finding(page.name, line, f"sidebar_position {place} is that of {first}")
