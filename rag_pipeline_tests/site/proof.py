"""Check that the citations of chunks lead to the right headings in the built HTML of their site.

For any site: `python -m rag_pipeline_tests.site.proof website/build chunks.json --base-url /book/`,
where chunks.json is the output of `rag-pipeline chunks --json`. The exit code is 1 if a citation or
a link is wrong.
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

# The share and the number of a chunk's words that may be missing in the section on the page. In the
# textbook up to an eighth is missing, because browsers generate the numbers of lists. Short chunks
# can lack a few words, such as an attribute or the name of an emoji.
_HIDDEN_SHARE = 0.2
_HIDDEN_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
# Of a code block's first line the page shows only the title.
_FENCE = re.compile(r"^[ \t>]*```(?:.*?title=([\"'])(?P<title>.*?)\1)?.*$", re.MULTILINE)
# The browser draws diagrams, so the HTML contains none of their words.
_DIAGRAM = re.compile(r"^[ \t>]*```mermaid.*?^[ \t>]*```", re.DOTALL | re.MULTILINE)


@dataclass(slots=True)
class Proof:
    """The result of a check: counts by kind (such as "chunks") and a message for each fault.

    Attributes:
        seen: Number of things that were checked, by kind.
        proven: Number of things without a fault, by kind.
        faults: One message per fault.
    """

    seen: Counter[str] = field(default_factory=Counter)
    proven: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, kind: str, faults: Sequence[str]) -> None:
        """Count one checked thing of a kind, as proven if it has no faults, and keep its faults."""
        self.seen[kind] += 1
        self.proven[kind] += not faults
        self.faults.extend(faults)

    def __str__(self) -> str:
        """Return the counts, such as `proven: pages 114 of 114, chunks 1525 of 1525`."""
        counts = (f"{kind} {self.proven[kind]} of {count}" for kind, count in self.seen.items())
        return "proven: " + ", ".join(counts)


_Section: TypeAlias = (
    "tuple[str | None, frozenset[str]]"  # the heading's id, and the words of the section
)


@dataclass(frozen=True, slots=True)
class _CitedPage:
    """A document and its built page.

    Attributes:
        shown: The page's heading for each heading of the document; None if the page lacks it.
        sections: The sections of the page.
    """

    document: DocumentRecord
    page: BuiltPage
    shown: Sequence[BuiltHeading | None]
    sections: Sequence[_Section]


class BuiltSite:
    """The folder of a built site, with a lookup from addresses to files and pages.

    Args:
        folder: The output folder of `docusaurus build`.
        base_url: The site's `baseUrl`, such as `/book/`. Scheme and host are ignored.
    """

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.base_path = unquote(urlsplit(base_url).path).rstrip("/") + "/"
        self._pages: dict[str, BuiltPage] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """The paths of all files, so that names are compared with case on every file system."""
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return frozenset(path.relative_to(self.folder).as_posix() for path in paths)

    def find_file(self, url_path: str) -> str | None:
        """Return the file that a static web server sends for a percent-encoded path, or None."""
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
        """Return the parsed page of an HTML file, given by its path in the build folder."""
        if file not in self._pages:
            self._pages[file] = read_page(self.folder / file)
        return self._pages[file]


def prove_citations(site: BuiltSite, record: ChunksRecord) -> Proof:
    """Compare every document and chunk with its built page, and return all faults and counts."""
    proof = Proof()
    cited: dict[str, _CitedPage] = {}
    for document in record["documents"]:
        path = document["doc_path"]
        page, faults = _find_page(site, document)
        shown, additional = _align_headings(document, page)
        if page is not None:
            cited[path] = _CitedPage(document, page, shown, _split_sections(page))
        faults += [f"only the page has the heading {_describe(item)}" for item in additional]
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
    """Check that every link, image and script of all HTML files leads to a file of the build.

    A link with `#` must also lead to an id on the target page. Links to other sites are ignored.
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
    """Yield the fault of a link, if it has one.

    Args:
        site: The built site.
        file: The HTML file that contains the link.
        link: The link as written.
        found: The file that the link leads to; None if it does not exist.
        fragment: The link's part after `#`; may be empty.
    """
    if found is None:
        yield f"{file}: {link} leads to no built file"
    elif fragment and found.endswith(".html"):
        wanted = unquote(fragment)
        if wanted != "top" and wanted not in site.page(found).ids:
            yield f"{file}: {link} leads to no id of {found}"


def _find_page(site: BuiltSite, document: DocumentRecord) -> tuple[BuiltPage | None, list[str]]:
    """Return the built page of a document (None if it does not exist) and the page's faults."""
    url = document["url"]
    file = site.find_file(urlsplit(url).path)
    if file is None or not file.endswith(".html"):
        return None, [f"{url} is not a page of the build"]
    page = site.page(file)
    faults = []
    canonical = page.canonical if urlsplit(url).netloc else _without_host(page.canonical)
    # Docusaurus does not percent-encode special characters in the canonical link.
    if canonical not in {url, unquote(url)}:
        faults.append(
            f"its citation is {url}, but the canonical link is {page.canonical or 'missing'}"
        )
    repeated = [name for name, count in Counter(page.ids).items() if count > 1]
    faults += [f"{file} contains the id {name} {page.ids.count(name)} times" for name in repeated]
    title = document["title"]
    if _has_made_title(page, document) and page.headings[0].text != title:
        faults.append(f"the page shows the title {title!r} as {page.headings[0].text!r}")
    return page, faults


def _without_host(url: str) -> str:
    """Return the URL without scheme and host."""
    parts = urlsplit(url)
    return url.removeprefix(f"{parts.scheme}://{parts.netloc}")


def _has_made_title(page: BuiltPage, document: DocumentRecord) -> bool:
    """Return True if Docusaurus generated the h1, because the document does not start with one."""
    written = sum(heading["level"] == 1 for heading in document["headings"])
    shown = sum(heading.level == 1 for heading in page.headings)
    return shown > written and page.headings[0].is_title


def _align_headings(
    document: DocumentRecord, page: BuiltPage | None
) -> tuple[list[BuiltHeading | None], list[BuiltHeading]]:
    """Pair the headings of a document with the headings of its page, in order.

    The pairing is a sequence alignment, so that one missing or additional heading does not shift
    the pairs after it.

    Returns:
        The page's heading for each heading of the document (None if it is missing on the page), and
        the headings that only the page has.
    """
    if page is None:
        return [None] * len(document["headings"]), []
    own = page.headings[_has_made_title(page, document) :]
    wanted = [(item["level"], item["text"], item["anchor"]) for item in document["headings"]]
    found = [(item.level, item.text, item.id) for item in own]
    shown: list[BuiltHeading | None] = []
    additional: list[BuiltHeading] = []
    for _, start, end, first, last in SequenceMatcher(
        None, wanted, found, autojunk=False
    ).get_opcodes():
        pairs = min(end - start, last - first)
        shown += own[first : first + pairs]
        shown += [None] * (end - start - pairs)
        additional += own[first + pairs : last]
    return shown, additional


def _is_same(heading: HeadingRecord, built: BuiltHeading | None) -> bool:
    """Return True if both headings have the same level, text and id."""
    wanted = (heading["level"], heading["text"], heading["anchor"])
    return built is not None and wanted == (built.level, built.text, built.id)


def _describe_difference(heading: HeadingRecord, built: BuiltHeading | None) -> str:
    """Return the fault message for a heading that differs from the page's heading."""
    wanted = f"h{heading['level']} {heading['text']!r} with id {heading['anchor']}"
    return f"line {heading['line']} is {wanted}, but the page shows {_describe(built)}"


def _describe(heading: BuiltHeading | None) -> str:
    """Return a heading as text for a fault message, "none" for None."""
    return f"h{heading.level} {heading.text!r} with id {heading.id}" if heading else "none"


def _check_chunk(chunk: ChunkRecord, cited: _CitedPage) -> Iterator[str]:
    """Yield the faults of a chunk's citation: wrong address, anchor, heading text or position."""
    document, ids = cited.document, cited.page.ids
    anchor = chunk["anchor"]
    address, _, fragment = chunk["url"].partition("#")
    if address != document["url"]:
        yield f"the chunk is cited as {address}, but its document as {document['url']}"
    if (unquote(fragment) or None) != anchor:
        yield f"{chunk['url']} does not end in the anchor {anchor}"
    if anchor is not None and ids.count(anchor) != 1:
        yield f"{ids.count(anchor)} elements have the id {anchor}"
    place = _find_place(chunk, document)
    if place is None:
        if anchor is not None:
            yield f"is before the first heading, but has the anchor {anchor}"
        return
    heading = cited.shown[place]
    wanted = (chunk["heading_level"], chunk["section_heading"], anchor)
    # A heading without text (for example only an image) is cited with the title of the page.
    if heading is None or wanted != (heading.level, heading.text or chunk["title"], heading.id):
        citation = f"h{wanted[0]} {wanted[1]!r} with id {anchor}"
        yield f"cites {citation}, but its section's heading on the page is {_describe(heading)}"


def _split_sections(page: BuiltPage) -> list[_Section]:
    """Return the sections of a page, each with its heading's id and its words.

    The first section is the text before the first heading; its id is None.
    """
    sections: list[tuple[str | None, str]] = [(None, page.texts[0])]
    for heading, text in zip(page.headings, page.texts[1:], strict=True):
        sections.append((heading.id, text))
    return [(anchor, _read_words(text)) for anchor, text in sections]


def _read_words(text: str) -> frozenset[str]:
    """Return the distinct words of a text in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def _check_text(chunk: ChunkRecord, sections: Sequence[_Section]) -> Iterator[str]:
    """Yield a fault if the chunk's words are not in the section that the chunk cites.

    It is a fault if too many of the words are missing there, or if another section of the page
    contains more of them. Line numbers are not used, so this check is independent of the others.
    """
    words = _read_words(_FENCE.sub(r"\g<title>", _DIAGRAM.sub("", chunk["text"])))
    counts = [(len(words & shown), anchor) for anchor, shown in sections]
    own = max((count for count, anchor in counts if anchor == chunk["anchor"]), default=0)
    most, elsewhere = max(counts, key=lambda item: item[0])
    if len(words) - own > max(_HIDDEN_SHARE * len(words), _HIDDEN_WORDS):
        yield f"only {own} of its {len(words)} words are below {chunk['anchor'] or 'the title'}"
    if own < most:
        yield f"{own} of its words are below its own heading, but {most} below {elsewhere}"


def _find_place(chunk: ChunkRecord, document: DocumentRecord) -> int | None:
    """Return the index, in the document's headings, of the section that the chunk starts in.

    None if the chunk starts before the first heading. All headings of a partial stand in the line
    that imports it; of these it is the one with the chunk's anchor.
    """
    headings = document["headings"]
    above = [at for at, heading in enumerate(headings) if heading["line"] <= chunk["start_line"]]
    if not above:
        return None
    line = headings[above[-1]]["line"]
    same = [at for at in above if headings[at]["line"] == line]
    own = [at for at in same if headings[at]["anchor"] == chunk["anchor"]]
    return (own or same)[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the citations of a chunks file, print faults and counts, and return the exit code."""
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
