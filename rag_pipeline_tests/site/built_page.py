"""One HTML page of a built Docusaurus site: canonical address, headings, ids and links.

Read with the standard library from the file itself, so that no server's redirect and no browser's
leniency hides a wrong path. What must hold between pages and chunks stands in `proof`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    {"a", "b", "code", "del", "em", "i", "kbd", "span", "strong", "sub", "sup", "u"}
)
_LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


@dataclass(frozen=True, slots=True)
class BuiltHeading:
    """A heading as the page shows it.

    Attributes:
        text: White space collapsed; a formula as `$source$`, an image's alt text where nothing
            else is shown.
        id: None where the element has none.
        is_title: Whether it is the h1 at the head of the page, written in the body or made by
            Docusaurus.
    """

    level: int
    text: str
    id: str | None
    is_title: bool = False


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """What a page says of itself.

    Attributes:
        canonical: `href` of `<link rel="canonical">`; empty where there is none.
        headings: Those of the document's own body in order; not the site's (footnotes, cards).
        texts: What is shown before the first heading, then from each heading, its own text
            included, to the next.
        ids: Of all elements of the page, in order, repeats included.
        links: Addresses of all links, images and scripts, in order.
    """

    canonical: str
    headings: tuple[BuiltHeading, ...]
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    links: tuple[str, ...]


def read_page(path: Path) -> BuiltPage:
    """Read an HTML file.

    Headings are those inside the element of class `theme-doc-markdown`; a page without it, such as
    the homepage, has none.
    """
    reader = _PageReader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    return BuiltPage(
        canonical=reader.canonical,
        headings=tuple(reader.headings),
        texts=tuple("".join(pieces) for pieces in reader.texts),
        ids=tuple(reader.ids),
        links=tuple(reader.links),
    )


class _PageReader(HTMLParser):
    """Follows the few elements that matter; their end tags are never left out by a minifier."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.canonical = ""
        self.headings: list[BuiltHeading] = []
        self.texts: list[list[str]] = [[]]
        self.ids: list[str] = []
        self.links: list[str] = []
        self._body = _Region("div")
        self._header = _Region("header")
        self._footnotes = _Region("section")
        self._heading = _Region("")
        self._heading_id: str | None = None
        self._is_card = False
        self._hash_link = _Region("a")
        self._formula = _Region("span")
        self._formula_source = _Region("annotation")
        self._shown: list[str] = []
        self._alts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and links, and enter what begins here."""
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        if values.get("id"):
            self.ids.append(values["id"])
        if values.get(_LINKS.get(tag, "")):
            self.links.append(values[_LINKS[tag]])
        if tag == "link" and values.get("rel") == "canonical":
            self.canonical = values.get("href", "")
        self._body.start(tag, opens="theme-doc-markdown" in classes)
        if not self._body:
            return
        self._header.start(tag, opens=True)
        self._footnotes.start(tag, opens="data-footnotes" in values)
        if tag in _HEADINGS and not self._heading:
            self._heading = _Region(tag)
            self._heading_id = values.get("id") or None
            self._is_card = any(name.startswith("cardTitle") for name in classes)
            self._shown, self._alts = [], []
            if self._is_own:
                self.texts.append([])
        if tag not in _INLINE:
            self.texts[-1].append(" " + values.get("alt", ""))
        self._heading.start(tag, opens=True)
        if self._heading:
            self._start_in_heading(tag, classes, values)

    @property
    def _is_own(self) -> bool:
        """Whether the heading is the document's and none that the site adds."""
        return not (self._footnotes or self._is_card)

    def _start_in_heading(self, tag: str, classes: list[str], values: dict[str, str]) -> None:
        self._hash_link.start(tag, opens="hash-link" in classes)
        self._formula.start(tag, opens="katex" in classes)
        self._formula_source.start(tag, opens=bool(self._formula))
        if tag == "img":
            self._alts.append(values.get("alt", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave what ends here; a heading that ends is complete."""
        for region in (self._hash_link, self._formula_source, self._formula):
            region.end(tag)
        if self._body and tag not in _INLINE:
            self.texts[-1].append(" ")
        if self._heading and self._heading.end(tag) and self._is_own:
            level = _HEADINGS[tag]
            text = "".join(self._shown)
            text = " ".join((text if text.strip() else "".join(self._alts)).split())
            is_title = level == 1 and bool(self._header) and not self.headings
            self.headings.append(BuiltHeading(level, text, self._heading_id, is_title))
        for region in (self._footnotes, self._header, self._body):
            region.end(tag)

    def handle_data(self, data: str) -> None:
        """Collect what the body shows and, apart from it, what a heading shows."""
        if self._body:
            self.texts[-1].append(data)
        if not self._heading or self._hash_link:
            return
        if self._formula_source:
            self._shown.append(f"${data}$")
        elif not self._formula:
            self._shown.append(data)


class _Region:
    """Whether the reader is inside an element of interest, by counting tags of its name."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._depth = 0

    def __bool__(self) -> bool:
        return self._depth > 0

    def start(self, tag: str, *, opens: bool) -> None:
        if tag == self._tag and (self._depth or opens):
            self._depth += 1

    def end(self, tag: str) -> bool:
        """Count an end tag; True where it ends the region."""
        if tag != self._tag or not self._depth:
            return False
        self._depth -= 1
        return self._depth == 0
