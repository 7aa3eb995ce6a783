"""The table of contents of the book, the text of its sections, and the values of its filters.

All of it is read from the index, so it shows what questions can find.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rag_pipeline.core.errors import QueryError, SectionMissingError, StoreError
from rag_pipeline.core.models import ContentType, SiteSettings
from rag_pipeline.core.payload import FILTERS, read_metadata, read_text
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.site.docusaurus import find_site_path
from rag_pipeline.retrieval.hits import join_pieces
from rag_pipeline.retrieval.models import name_edition
from rag_pipeline.retrieval.open_index import (
    COUNTED_IN_ALL,
    ContentsPage,
    OpenIndex,
    Outline,
    Piece,
)
from rag_pipeline.retrieval.queries import ANY_VALUE, Query, QueryFilters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.sources import Edition
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.retriever import Retriever


GLOSSARY: Final = re.compile(r"\bgloss?a[ir]", re.IGNORECASE)
"""Matches the name of a glossary in several languages: glossaire, Glossar, glosario."""

_BRACKETS: Final = re.compile(r"\(([^()]*)\)")
_FORMULA: Final = re.compile(r"(?<![\\$])\$([^$\n]{1,20})\$(?!\$)")  # longer ones are not symbols
_WORD: Final = re.compile(r"[^\W_]+")
_SHORT: Final = 3  # letters of a word that keeps its last one, such as `bus`
_MAX_TERM_WORDS: Final = 6


@dataclass(frozen=True, slots=True)
class SectionText:
    """The text of a section with its subsections, or of a whole page, as Markdown.

    Attributes:
        title: Title of the page.
        section: Heading of the section; the title for a whole page.
        url: Address of the section or page on the site.
        doc_path: Path of the document below the docs folder.
        text: The text as it is in the book, after cleaning.
        module: May be empty.
        chapter: May be empty.
        version: The version as the site names it; empty for the latest version.
        locale: The language; empty for the default language.
        content_type: Kind of the content, such as prose, code or quiz.
    """

    title: str
    section: str
    url: str
    doc_path: str
    text: str
    module: str
    chapter: str
    version: str = ""
    locale: str = ""
    content_type: str = ContentType.PROSE.value


def read_contents(
    retriever: Retriever,
    module: str | None = None,
    url: str | None = None,
    *,
    version: str | None = None,
    locale: str | None = None,
) -> tuple[ContentsPage, ...]:
    """Return the pages of the book in their order, with the headings of each page.

    Args:
        retriever: A retriever over the collection.
        module: Return only the pages of this module, such as `module-1`. None returns all pages.
            A module that does not exist has no pages.
        url: Return only the page at this address, which is read as by `read_section`. An anchor is
            ignored.
        version: Return the pages of this version, such as `2.0`, and with `*` of all versions.
            None returns the latest version. It has no effect together with `url`.
        locale: Return the pages in this language, in the same way.

    Raises:
        StoreError: The collection is missing or built with another model, or the store failed or
            exceeded the time limit.
    """
    site = retriever.options.site
    path = None if url is None else _find_path(url, site)
    pages: tuple[ContentsPage, ...] = retriever.read_index(OpenIndex.read_outline).pages
    if url is None:
        pages = tuple(page for page in pages if _is_shown(page.edition, version, locale))
    else:
        found = _find_page(pages, path, site)
        pages = () if found is None else (found,)
    return tuple(page for page in pages if module in (None, page.module))


def _is_shown(edition: Edition, version: str | None, locale: str | None) -> bool:
    """Return True if a page belongs to a version and a language. None is the default one."""
    in_version = edition.is_latest if version is None else version in (ANY_VALUE, edition.version)
    if locale is None:
        return in_version and edition.is_default_locale
    return in_version and locale in (ANY_VALUE, edition.locale)


def count_filter_values(retriever: Retriever) -> dict[str, dict[str, int]]:
    """Return the number of chunks for each value of each filter: `{"modules": {"module-1": 12}}`.

    The names are those of the attributes of `QueryFilters`. Values are in natural order, and empty
    values are left out. Sources, versions and languages are missing if no page has one. Modules,
    chapters, types and tags are counted in the latest version and the default language.

    Raises:
        StoreError: The collection is missing or built with another model, or the store failed or
            exceeded the time limit.
    """
    values = retriever.read_index(OpenIndex.read_outline).values
    return {name: dict(counts) for name, counts in values.items()}


def explain_filters(
    read_index: Callable[[Callable[[OpenIndex], Outline]], Outline],
    filters: QueryFilters | None,
    *,
    as_options: bool = False,
) -> list[str]:
    """Return a sentence for each filter value that no page of the book has, at most three.

    It names the nearest value that occurs. The list is empty if the index cannot be read.

    Args:
        read_index: The method of a retriever that runs an action on its open collection.
        filters: Filters that found nothing.
        as_options: Name the filters as options of the command line, such as `--module`.
    """
    given = {one: getattr(filters, one.name) or () for one in FILTERS.values()} if filters else {}
    if filters is None or not any(given.values()):
        return []
    try:
        known = read_index(OpenIndex.read_outline).values
    except StoreError:
        return []
    is_whole = not (filters.versions or filters.locales)
    told: list[str] = []
    for declared, values in given.items():
        if ANY_VALUE in values or (declared.name not in COUNTED_IN_ALL and not is_whole):
            continue  # the counts are those of the latest version in the default language
        of_book = known.get(declared.name, {})
        for value in values:
            if value not in of_book and len(told) < 3:  # the nearest of all values is looked for
                near = difflib.get_close_matches(value, of_book, n=1, cutoff=0.5)
                advice = f" Did you mean {near[0]}?" if near else ""
                label = declared.flags[0] if as_options else declared.name
                told.append(f"{label} {value}: no page has this value.{advice}")
    return told


def retrieve_explained(retriever: Retriever, query: Query) -> tuple[RetrievalResult, list[str]]:
    """Return the passages for a query and, if there are none, what `explain_filters` tells.

    Raises:
        RagPipelineError: As described for `Retriever.retrieve`.
    """
    result = retriever.retrieve(query)
    told = [] if result.chunks else explain_filters(retriever.read_index, query.filters)
    return result, told


def read_section(retriever: Retriever, url: str) -> SectionText:
    """Return the text of the section at a URL, or of the whole page if the URL has no anchor.

    The text of a section includes its subsections.

    Args:
        retriever: A retriever over the collection.
        url: Address on the site, with or without host, base URL and trailing slash. The path of a
            document, such as `module-1/intro.md`, and the address of a page's Markdown file, as
            in `llms.txt`, are accepted too.

    Raises:
        SectionMissingError: The book has no page or section at the URL.
        StoreError: The collection is missing or built with another model, or the store failed or
            exceeded the time limit.
    """
    site = retriever.options.site
    wanted = _find_path(url, site)
    anchor = unquote(url.encode("utf-8", "replace").decode().strip().partition("#")[2])

    def read(opened: OpenIndex) -> SectionText:
        page = _find_page(opened.read_outline().pages, wanted, site)
        if page is None:
            raise SectionMissingError(url)
        return _join_section(page, _cut_section(_read_page(opened, page), anchor), url, anchor)

    return retriever.read_index(read)


def find_entries(retriever: Retriever, text: str, limit: int = 3) -> tuple[SectionText, ...]:
    """Return the entries of the book's glossaries for the terms and symbols in a text.

    An entry is a section of a page whose title or file name contains "glossary", also in other
    languages. It belongs to a text that contains its heading, or a formula that the entry contains.
    Entries with the longest headings come first, then those with a formula of the text.

    Args:
        retriever: A retriever over the collection.
        text: Markdown, such as a selected passage.
        limit: The most entries to return.

    Raises:
        StoreError: The collection is missing or built with another model, or the store failed or
            exceeded the time limit.
    """
    words = _list_words(text)
    runs = {
        words[at : at + size]
        for size in range(1, _MAX_TERM_WORDS + 1)
        for at in range(len(words) - size + 1)
    }
    symbols = _find_symbols(text)

    def read(opened: OpenIndex) -> tuple[SectionText, ...]:
        found: list[tuple[int, SectionText]] = []
        for page in opened.read_outline().pages:
            stem = posixpath.basename(page.doc_path).rpartition(".")[0]
            is_glossary = any(GLOSSARY.search(name) for name in (stem, page.title))
            if not is_glossary or not _is_shown(page.edition, None, None):
                continue
            for piece in _read_page(opened, page):
                heading = piece[0].section_heading if piece[0].anchor else ""
                # `Intersection over union (IoU)` has two names, and both together are a third.
                forms = [heading, _BRACKETS.sub(" ", heading), *_BRACKETS.findall(heading)]
                names = runs.intersection(map(_list_words, forms))
                length = max(map(len, names), default=0)
                if length or symbols & _find_symbols(piece[1]):
                    entry = _join_section(page, [piece], piece[0].url, piece[0].anchor or page.url)
                    found.append((length, entry))
        found.sort(key=lambda scored: -scored[0])
        return tuple(entry for _, entry in found[:limit])

    return retriever.read_index(read)


def _list_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without the mark of a plural."""
    words = (word.casefold() for word in _WORD.findall(text))
    return tuple(word.removesuffix("s") if len(word) > _SHORT else word for word in words)


def _find_symbols(text: str) -> frozenset[str]:
    """Return the short formulas of a text without blanks, such as `z_c`."""
    found = ("".join(tex.split()) for tex in _FORMULA.findall(text))
    return frozenset(tex for tex in found if tex and not tex.isdigit())


def _read_page(opened: OpenIndex, page: ContentsPage) -> list[Piece]:
    """Return the chunks of a page in their order."""
    points = opened.store.scroll(PointFilter.any_of(doc_path=[page.doc_path]))
    pieces = [(read_metadata(p.payload), read_text(p.payload)) for p in points]
    return sorted(pieces, key=lambda piece: piece[0].chunk_index)


def _find_path(url: str, site: SiteSettings) -> str | None:
    """Return the path of an address below the site, without its anchor; None if it is outside."""
    if not isinstance(url, str):
        raise QueryError(f"the address must be a string, not {url!r:.40}")
    return find_site_path(url.encode("utf-8", "replace").decode().strip().partition("#")[0], site)


def _find_page(
    pages: Sequence[ContentsPage], path: str | None, site: SiteSettings
) -> ContentsPage | None:
    """Return the page with a path below the site, or whose document or Markdown file has it.

    The Markdown file of the page `docs/robots` is `docs/robots.md` or `docs/robots/index.md`. A
    page or document with exactly this path comes first.
    """
    if path is None:
        return None
    wanted = [path]
    if path.endswith(".md"):
        stem = path.removesuffix(".md")
        wanted += [stem, re.sub(r"(^|/)index$", "", stem)]
    named = [(page, {find_site_path(page.url, site), page.doc_path}) for page in pages]
    return next((page for name in wanted for page, names in named if name in names), None)


def _cut_section(pieces: Sequence[Piece], anchor: str) -> list[Piece]:
    """Return the chunks of a section and its subsections; all chunks for an empty anchor."""
    if not anchor:
        return list(pieces)
    found: list[Piece] = []
    for metadata, text in pieces:
        level = metadata.heading_level
        if metadata.anchor == anchor or (found and level > found[0][0].heading_level):
            found.append((metadata, text))
        elif found:
            break
    return found


def _join_section(
    page: ContentsPage, pieces: Sequence[Piece], url: str, anchor: str
) -> SectionText:
    if not pieces:
        raise SectionMissingError(url, page.url)
    first = pieces[0][0]
    version, locale = name_edition(first)
    return SectionText(
        title=page.title,
        section=first.section_heading if anchor else page.title,
        url=first.url if anchor else page.url,
        doc_path=page.doc_path,
        text=join_pieces(pieces)[0],
        module=page.module,
        chapter=page.chapter,
        version=version,
        locale=locale,
        content_type=first.content_type,
    )
