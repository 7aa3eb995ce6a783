"""The outline of the book: its pages in order, their sections, and the values of the filters."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.payload import (
    FILTERS,
    LATE_INDEXES,
    ChunkMetadata,
    read_edition,
)
from rag_pipeline.core.sources import DEFAULT_EDITION, Edition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FOLDER_POSITION: Final = 50.0  # the index does not know the positions of folders in the sidebar
_INDEX_STEMS: Final = ("index", "readme")
COUNTED_IN_ALL: Final = frozenset(
    FILTERS[field].name for field in FILTERS.keys() & {"doc_path", *LATE_INDEXES}
)
"""Filters whose values are counted in all versions and languages, not only those by default."""

_EDITION_FILTERS: Final = frozenset(FILTERS[field].name for field in FILTERS.keys() & LATE_INDEXES)
_NUMBER: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class ContentsSection:
    """A section of a page: its heading, its URL with the anchor, and its level, 2 to 6."""

    heading: str
    url: str
    level: int


@dataclass(frozen=True, slots=True)
class ContentsPage:
    """A page of the book with its sections in reading order.

    Attributes:
        url: Address of the page on the site, without an anchor.
        doc_path: Path of the document below the docs folder.
        module: May be empty.
        chapter: May be empty.
        sections: The sections whose headings have an id; empty if there are none.
        edition: The source, version and language of the page.
    """

    title: str
    url: str
    doc_path: str
    module: str
    chapter: str
    sections: tuple[ContentsSection, ...]
    edition: Edition = DEFAULT_EDITION


@dataclass(frozen=True, slots=True)
class Outline:
    """The pages of the book in their order, and the number of chunks for each filter value.

    Attributes:
        pages: All pages in the order of the book.
        values: Number of chunks by name of the filter, then by its value. Filters by source,
            version and language are missing if no chunk has a value. Modules, chapters, types and
            tags are counted in the latest version and the default language.
    """

    pages: tuple[ContentsPage, ...]
    values: Mapping[str, Mapping[str, int]]


def outline_book(chunks: Iterable[ChunkMetadata]) -> Outline:
    """Return the pages that the chunks belong to, and how often each filter value occurs.

    In each folder, `index`, `readme` or a page with the name of the folder comes first. Then come
    the pages with a position in the sidebar below 50, the other pages, the subfolders, and the
    pages with a higher position. Equal positions are ordered by name, with numbers by their value:
    `9` comes before `10`.

    Args:
        chunks: All chunks of the book, in any order.
    """
    documents: dict[str, list[ChunkMetadata]] = {}
    counts: dict[str, Counter[str]] = {declared.name: Counter() for declared in FILTERS.values()}
    for chunk in chunks:
        documents.setdefault(chunk.doc_path, []).append(chunk)
        is_default = chunk.is_latest and chunk.is_default_locale
        for field, declared in FILTERS.items():
            if not is_default and declared.name not in COUNTED_IN_ALL:
                continue
            value = getattr(chunk, field) or ()
            counts[declared.name].update(filter(None, [value] if isinstance(value, str) else value))
    ordered = sorted(documents.values(), key=lambda document: _order_page(document[0]))
    values = {
        name: {value: found[value] for value in sorted(found, key=_order_name)}
        for name, found in counts.items()
        if found or name not in _EDITION_FILTERS
    }
    return Outline(tuple(map(_describe_page, ordered)), values)


def _describe_page(chunks: Sequence[ChunkMetadata]) -> ContentsPage:
    first = chunks[0]
    sections: dict[str, ContentsSection] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        if chunk.anchor:
            section = ContentsSection(chunk.section_heading, chunk.url, chunk.heading_level)
            sections.setdefault(chunk.anchor, section)
    return ContentsPage(
        title=first.title,
        url=first.url.partition("#")[0],
        doc_path=first.doc_path,
        module=first.module,
        chapter=first.chapter,
        sections=tuple(sections.values()),
        edition=read_edition(first),
    )


_Order = tuple[tuple[float, tuple[tuple[int, str], ...]], ...]


def _order_page(chunk: ChunkMetadata) -> _Order:
    *folders, name = chunk.doc_path.split("/")
    stem, position = name.rpartition(".")[0], chunk.sidebar_position
    if stem.lower() in {*_INDEX_STEMS, *(folder.lower() for folder in folders[-1:])}:
        place = float("-inf")
    else:
        place = _FOLDER_POSITION - 1 if position is None else position
    return (
        *((_FOLDER_POSITION, _order_name(folder)) for folder in folders),
        (place, _order_name(stem)),
    )


def _order_name(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key in which numbers are compared by value: `9` comes before `10`."""
    parts = _NUMBER.split(name.casefold())
    numbers = [int(part[:18]) if at % 2 else -1 for at, part in enumerate(parts)]
    return tuple(zip(numbers, parts, strict=True))
