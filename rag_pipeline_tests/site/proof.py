"""Proves the citations of chunks against the built HTML of their Docusaurus site.

For any site: `python -m rag_pipeline_tests.site.proof website/build chunks.json --base-url /book/`
with the output of `rag-pipeline chunks --json`; the exit code is 1 where a citation is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, unquote, urljoin, urlsplit

from rag_pipeline_tests.site.built_page import BuiltPage, read_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline_tests.site.built_page import BuiltHeading
    from rag_pipeline_tests.site.records import (
        ChunkRecord,
        ChunksRecord,
        DocumentRecord,
        HeadingRecord,
    )

_SECTION_LEVEL = 3  # deeper headings do not begin a section of their own
# A chunk's words that its section need not show: of the book's, up to an eighth, since the numbers
# of a list are the browser's; of short ones a few, such as an attribute or an emoji's name.
_HIDDEN_SHARE = 0.2
_HIDDEN_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
# The browser draws these; the page holds no word of them.
_DIAGRAM = re.compile(r"^[ \t>]*```mermaid.*?^[ \t>]*```", re.DOTALL | re.MULTILINE)


@dataclass(slots=True)
class Proof:
    """Counts of what was looked at and what held, by kind, and a line for each fault."""

    seen: Counter[str] = field(default_factory=Counter)
    proven: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, kind: str, faults: Sequence[str]) -> None:
        """Count one thing of a kind, proven where it has no fault."""
        self.seen[kind] += 1
        self.proven[kind] += not faults
        self.faults.extend(faults)

    def __str__(self) -> str:
        """`pages 114 of 114 proven, chunks ...`."""
        counts = (f"{kind} {self.proven[kind]} of {count}" for kind, count in self.seen.items())
        return "proven: " + ", ".join(counts)


_Section: TypeAlias = "tuple[str | None, frozenset[str]]"  # id of the heading, words shown


@dataclass(frozen=True, slots=True)
class _CitedPage:
    """A document and its page; `shown` has what the page shows for each of its headings."""

    document: DocumentRecord
    page: BuiltPage
    shown: Sequence[BuiltHeading | None]
    sections: Sequence[_Section]


class BuiltSite:
    """The files of a build folder, found by the addresses they are served under.

    Args:
        folder: What `docusaurus build` wrote.
        base_url: The site's `baseUrl`, such as `/book/`; scheme and host are passed over.
    """

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.base_path = unquote(urlsplit(base_url).path).rstrip("/") + "/"
        self._pages: dict[str, BuiltPage] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """Every file by its exact name, so that a file system that folds case changes nothing."""
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return frozenset(path.relative_to(self.folder).as_posix() for path in paths)

    def find_file(self, url_path: str) -> str | None:
        """The file a static host answers an encoded path with, None where it has none."""
        path = unquote(url_path)
        if path + "/" == self.base_path:
            path = self.base_path
        if not path.startswith(self.base_path):
            return None
        name = path.removeprefix(self.base_path)
        if not name or name.endswith("/"):
            names = [f"{name}index.html"]
        else:
            names = [name, f"{name}.html", f"{name}/index.html"]
        return next((name for name in names if name in self.files), None)

    def page(self, file: str) -> BuiltPage:
        """The page of an HTML file."""
        if file not in self._pages:
            self._pages[file] = read_page(self.folder / file)
        return self._pages[file]


def prove_citations(site: BuiltSite, record: ChunksRecord) -> Proof:
    """Hold every document and chunk against its built page; nothing stops at the first fault."""
    proof = Proof()
    cited: dict[str, _CitedPage] = {}
    for document in record["documents"]:
        path = document["doc_path"]
        page, faults = _find_page(site, document)
        shown, further = _align_headings(document, page)
        if page is not None:
            cited[path] = _CitedPage(document, page, shown, _split_sections(page))
        faults += [f"the page has a further heading {_describe(item)}" for item in further]
        proof.note("pages", [f"{path}: {fault}" for fault in faults])
        for heading, built in zip(document["headings"], shown, strict=True):
            found = [] if _is_same(heading, built) else [_describe_difference(heading, built)]
            proof.note("headings", [f"{path}: {fault}" for fault in found])
    for chunk in record["chunks"]:
        name = f"{chunk['doc_path']} chunk {chunk['chunk_index']}"
        target = cited.get(chunk["doc_path"])
        faults = list(_check_chunk(chunk, target)) if target else ["its page was not found"]
        proof.note("chunks", [f"{name}: {fault}" for fault in faults])
        if chunk["anchor"] is not None:
            proof.seen["anchors"] += 1
            proof.proven["anchors"] += not faults
        faults = list(_check_text(chunk, target.sections)) if target else ["its page was not found"]
        proof.note("texts", [f"{name}: {fault}" for fault in faults])
    return proof


def check_links(site: BuiltSite) -> Proof:
    """Follow every link, image and script of every HTML file to a built file and, with `#`, to an
    id on it. Other sites' addresses are passed over.
    """
    proof = Proof()
    for file in sorted(name for name in site.files if name.endswith(".html")):
        page = site.page(file)
        here = page.canonical or f"http://localhost{quote(site.base_path + file)}"
        for link in page.links:
            target = urlsplit(urljoin(here, link))
            if target[:2] != urlsplit(here)[:2]:
                continue
            found = file if link.startswith("#") else site.find_file(target.path)
            proof.note("links", list(_check_target(site, file, link, found, target.fragment)))
    return proof


def _check_target(
    site: BuiltSite, file: str, link: str, found: str | None, fragment: str
) -> Iterator[str]:
    if found is None:
        yield f"{file}: {link} leads to no built file"
    elif fragment and found.endswith(".html"):
        wanted = unquote(fragment)
        if wanted != "top" and wanted not in site.page(found).ids:
            yield f"{file}: {link} leads to no id of {found}"


def _find_page(site: BuiltSite, document: DocumentRecord) -> tuple[BuiltPage | None, list[str]]:
    """The page a document is cited by, and what is wrong with it as a page."""
    url = document["url"]
    file = site.find_file(urlsplit(url).path)
    if file is None or not file.endswith(".html"):
        return None, [f"{url} is no page of the build"]
    page = site.page(file)
    faults = []
    canonical = page.canonical if urlsplit(url).netloc else _without_host(page.canonical)
    # Docusaurus writes a path of other characters than URLs have into the link as it is.
    if canonical not in {url, unquote(url)}:
        faults.append(f"cited as {url}, canonical is {page.canonical or 'missing'}")
    repeated = [name for name, count in Counter(page.ids).items() if count > 1]
    faults += [f"id {name} stands {page.ids.count(name)} times on {file}" for name in repeated]
    title = document["title"]
    if _has_made_title(page, document) and page.headings[0].text != title:
        faults.append(f"title {title!r} is shown as {page.headings[0].text!r}")
    return page, faults


def _without_host(url: str) -> str:
    parts = urlsplit(url)
    return url.removeprefix(f"{parts.scheme}://{parts.netloc}")


def _has_made_title(page: BuiltPage, document: DocumentRecord) -> bool:
    """Whether Docusaurus made the page's title, as it does where the body begins with no h1."""
    written = sum(heading["level"] == 1 for heading in document["headings"])
    shown = sum(heading.level == 1 for heading in page.headings)
    return shown > written and page.headings[0].is_title


def _align_headings(
    document: DocumentRecord, page: BuiltPage | None
) -> tuple[list[BuiltHeading | None], list[BuiltHeading]]:
    """Pair the document's headings with the page's in order: what the page shows for each, and what
    only the page has, so that one heading too many moves none of those after it.
    """
    if page is None:
        return [None] * len(document["headings"]), []
    own = page.headings[_has_made_title(page, document) :]
    wanted = [(item["level"], item["text"], item["anchor"]) for item in document["headings"]]
    found = [(item.level, item.text, item.id) for item in own]
    shown: list[BuiltHeading | None] = []
    further: list[BuiltHeading] = []
    for _, start, end, first, last in SequenceMatcher(
        None, wanted, found, autojunk=False
    ).get_opcodes():
        pairs = min(end - start, last - first)
        shown += own[first : first + pairs]
        shown += [None] * (end - start - pairs)
        further += own[first + pairs : last]
    return shown, further


def _is_same(heading: HeadingRecord, built: BuiltHeading | None) -> bool:
    wanted = (heading["level"], heading["text"], heading["anchor"])
    return built is not None and wanted == (built.level, built.text, built.id)


def _describe_difference(heading: HeadingRecord, built: BuiltHeading | None) -> str:
    wanted = f"h{heading['level']} {heading['text']!r} with id {heading['anchor']}"
    return f"line {heading['line']} is {wanted}, the page shows {_describe(built)}"


def _describe(heading: BuiltHeading | None) -> str:
    return f"h{heading.level} {heading.text!r} with id {heading.id}" if heading else "none"


def _check_chunk(chunk: ChunkRecord, cited: _CitedPage) -> Iterator[str]:
    """Yield what is wrong with the citation of a chunk: address, anchor, text or place."""
    document, ids = cited.document, cited.page.ids
    anchor = chunk["anchor"]
    address, _, fragment = chunk["url"].partition("#")
    if address != document["url"]:
        yield f"cited as {address}, its document as {document['url']}"
    if (unquote(fragment) or None) != anchor:
        yield f"{chunk['url']} does not end in the anchor {anchor}"
    if anchor is not None and ids.count(anchor) != 1:
        yield f"{ids.count(anchor)} elements have the id {anchor}"
    place = _find_place(chunk, document)
    if place is None:
        if anchor is not None:
            yield f"stands before every heading, yet has the anchor {anchor}"
        return
    heading = cited.shown[place]
    wanted = (chunk["heading_level"], chunk["section_heading"], anchor)
    # A heading without text, such as a mere image, is cited by the page's title.
    if heading is None or wanted != (heading.level, heading.text or chunk["title"], heading.id):
        citation = f"h{wanted[0]} {wanted[1]!r} with id {anchor}"
        yield f"cites {citation}, its section's heading on the page is {_describe(heading)}"


def _split_sections(page: BuiltPage) -> list[_Section]:
    sections: list[tuple[str | None, str]] = [(None, page.texts[0])]
    for heading, text in zip(page.headings, page.texts[1:], strict=True):
        if heading.level <= _SECTION_LEVEL:
            sections.append((heading.id, text))
        else:
            sections[-1] = (sections[-1][0], sections[-1][1] + text)
    return [(anchor, _read_words(text)) for anchor, text in sections]


def _read_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _check_text(chunk: ChunkRecord, sections: Sequence[_Section]) -> Iterator[str]:
    """Yield what speaks against the chunk's words standing below the heading it cites: too few of
    them there, or more of them elsewhere on the page. Knows of no line number.
    """
    words = _read_words(_DIAGRAM.sub("", chunk["text"]))
    counts = [(len(words & shown), anchor) for anchor, shown in sections]
    own = max((count for count, anchor in counts if anchor == chunk["anchor"]), default=0)
    most, elsewhere = max(counts, key=lambda item: item[0])
    if len(words) - own > max(_HIDDEN_SHARE * len(words), _HIDDEN_WORDS):
        yield f"{own} of its {len(words)} words stand below {chunk['anchor'] or 'the title'}"
    if own < most:
        yield f"{own} of its words stand below its own heading, {most} below {elsewhere}"


def _find_place(chunk: ChunkRecord, document: DocumentRecord) -> int | None:
    """Place among the document's headings of the section that the chunk's first line lies in."""
    above = (
        place
        for place, heading in enumerate(document["headings"])
        if heading["level"] <= _SECTION_LEVEL and heading["line"] <= chunk["start_line"]
    )
    return max(above, default=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove the citations of a chunks file and print the counts; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="folder that `docusaurus build` wrote")
    parser.add_argument("chunks", type=Path, help="output of `rag-pipeline chunks --json`")
    parser.add_argument("--base-url", default="/", help="the site's baseUrl (default /)")
    options = parser.parse_args(arguments)
    site = BuiltSite(options.build, options.base_url)
    proof = prove_citations(site, json.loads(options.chunks.read_text(encoding="utf-8")))
    links = check_links(site)
    sys.stdout.write("\n".join([*proof.faults, *links.faults, str(proof), str(links), ""]))
    return 1 if proof.faults or links.faults else 0


if __name__ == "__main__":
    sys.exit(main())
