"""Compare the words of the built pages of a Docusaurus site with the words of their chunks.

    python -m benchmarks.built_words SITE [--build FOLDER] [--docs FOLDER] [--least 99] [--show 12]

Build the site first. For each page of the docs, the script prints the share of the words of its
`<article>` that the chunks contain, if the share is below the bound, with the words that are
missing most often, and what the parser reports about the page. Code is compared too. What
Docusaurus adds to a page is not compared: breadcrumbs, tags, dates, buttons, the table of contents
and the links to other pages. The exit code is 1 if a page is below the bound without a report.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rag_pipeline.core.models import ChunkLimits
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.text.terms import UNSPACED
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.site.detection import detect_site, settle_detected_site

_VOID: Final = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")
)
_ADDED: Final = re.compile(
    r"theme-doc-(?:breadcrumbs|footer|toc|version)|breadcrumbs|pagination-nav|hash-link|tocCollapsible"
    r"|buttonGroup|theme-edit-this-page|theme-last-updated|docs-doc-footer|tag_|openapi-explorer"
    r"|api-explorer|openapi-left-panel__security|sr-only|screen-reader|avatar|authorCol"
    r"|container_[\w-]{4} margin-vert--md"
)
"""Classes of elements that Docusaurus adds to the text of a page."""

_HIDDEN: Final = frozenset(("script", "style", "noscript", "template", "svg", "button", "select"))
_INLINE: Final = frozenset(("span", "b", "i", "em", "strong", "a", "code", "mark", "sup", "sub"))
_DRAWN: Final = re.compile(
    r"\b(?:Possible\s+values|Default\s+value|Example):|Response\s+Headers|Callbacks|\bnon-empty\b"
)
"""Words that the theme of docusaurus-plugin-openapi-docs adds."""

_APART: Final = frozenset((("span", "strong"), ("a", "a")))
_COUNT: Final = re.compile(r"\d+ items?")
_LABELS: Final = frozenset(("note", "tip", "info", "warning", "danger", "caution", "important"))
"""The titles that Docusaurus gives to admonitions without a title."""

_WORD: Final = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})[^\W_])+")
"""A word. A letter of a script without spaces is a word of its own, because markup is no space."""


class _Article(HTMLParser):
    """Collects the text inside `<article>` that is the page's own."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._depth = 0
        self._skipped = 0
        self._class = self._closed = ""
        self._stack: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        if tag in _VOID:
            self.parts.append(" ")
            return
        given = {name: value or "" for name, value in attrs}
        if tag not in {"svg", "path", "span"}:
            self._class = given.get("class", "")
        is_apart = "data-footnote-ref" in given or (tag, self._closed) in _APART
        if tag not in _INLINE or is_apart or "openapi" in given.get("class", ""):
            self.parts.append(" ")  # minified pages leave out closing tags
        is_copy = "katex-html" in given.get("class", "") or (
            self._stack[-1:] and self._stack[-1][0] == "semantics" and tag != "annotation"
        )
        is_added = (
            tag in _HIDDEN
            or is_copy
            or "data-footnote-backref" in given
            or _ADDED.search(given.get("class", ""))
        )
        is_skipped = self._depth > 0 and bool(is_added or tag == "footer")
        self._stack.append((tag, is_skipped))
        self._skipped += is_skipped
        self._depth += tag == "article"

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those inside it that were not closed."""
        if all(opened != tag for opened, _ in self._stack):
            return
        opened, self._closed = "", tag
        while opened != tag:
            opened, was_skipped = self._stack.pop()
            self._skipped -= was_skipped
            self._depth -= opened == "article"
        self.parts.append(" " * (tag not in _INLINE))

    def handle_data(self, data: str) -> None:
        """Keep the text of an element that is shown."""
        self._closed = ""
        is_label = "admonitionHeading" in self._class and data.strip().lower() in _LABELS
        is_label |= "cardDescription" in self._class and _COUNT.fullmatch(data) is not None
        if self._depth and not self._skipped and not is_label:
            self.parts.append(data)


def count_words(text: str) -> Counter[str]:
    """Return how often each word occurs, in lower case; punctuation is left out."""
    return Counter(word.lower() for word in _WORD.findall(text))


def read_article(file: Path) -> str:
    """Return the text of the article of a built page."""
    parser = _Article()
    page = file.read_text(encoding="utf-8", errors="replace")
    parser.feed(page)
    text = "".join(parser.parts)
    return _DRAWN.sub(" ", text) if "openapi-" in page else text


def find_file(build: Path, url: str, base_path: str) -> Path | None:
    """Return the built file of a page's address."""
    path = unquote(urlsplit(url).path).removeprefix(base_path.rstrip("/")).strip("/")
    places = (build / path / "index.html", build / f"{path}.html", build / path)
    return next((place for place in places if place.is_file()), None)


def main() -> int:
    """Compare all pages, print those below the bound and the totals, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--build", type=Path, help="folder of the built pages; SITE/build if empty")
    parser.add_argument("--docs", type=Path, help="docs folder, if the site is not to be detected")
    parser.add_argument("--run-config", action="store_true", help="run the configuration with Node")
    parser.add_argument("--least", type=float, default=99.0, help="percent of the words of a page")
    parser.add_argument("--show", type=int, default=12, help="missing words of a page to print")
    options = parser.parse_args()
    detected = detect_site(
        options.site, lambda _: None, run_config=options.run_config, docs_dir=options.docs
    )
    settings = load_settings(docs_dir=detected.docs_dir, site_base_url=None)
    site = settle_detected_site(settings, detected).site
    found = discover_docs(detected.docs_dir, sources=detected.sources, with_unlisted=True)
    pages = below = silent = missing_pages = 0
    shown_words = found_words = 0
    for doc in found.docs:
        parsed = parse_doc(doc, site)
        file = find_file(
            options.build or options.site / "build",
            parsed.document.url,
            urlsplit(site.base_url).path,
        )
        if file is None:
            missing_pages += 1
            continue
        own = parsed.document
        title = [own.title, own.description, *own.learning_objectives]
        chunks = [chunk.text for chunk in chunk_doc(parsed, ChunkLimits())]
        wanted = count_words(read_article(file))
        lost = wanted - count_words("\n".join([*title, *chunks]))
        total = sum(wanted.values())
        share = 100 * (1 - sum(lost.values()) / total) if total else 100.0
        pages, shown_words = pages + 1, shown_words + total
        found_words += total - sum(lost.values())
        if share < options.least:
            below += 1
            notes = parsed.notes
            told = [*notes.components, *notes.warnings] + ["expressions"] * bool(notes.left_out)
            silent += not told
            words = ", ".join(f"{word} {n}" for word, n in lost.most_common(options.show))
            print(f"{share:5.1f} % of {total:5} words  {doc.doc_id}: {words}")
            print(f"        report: {'; '.join(told) or 'nothing'}")
    share = 100 * found_words / shown_words if shown_words else 100.0
    print(
        f"{pages} pages, {missing_pages} without a built file, {share:.2f} % of {shown_words} words"
    )
    print(f"{below} pages below {options.least:g} %, {silent} of them without a line in the report")
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
