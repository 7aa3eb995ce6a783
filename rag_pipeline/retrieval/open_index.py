"""An open collection, with everything that searches have read from it so far."""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.payload import (
    FILTERS,
    LATE_INDEXES,
    ChunkMetadata,
    read_edition,
    read_metadata,
    read_text,
)
from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.site.docusaurus import find_site_path
from rag_pipeline.core.sources import DEFAULT_EDITION, Edition
from rag_pipeline.core.text.abbreviations import (
    find_abbreviations,
    find_unshortened,
    find_unspelled,
    mark_question,
)
from rag_pipeline.core.text.terms import find_distinct_terms
from rag_pipeline.core.vectors import SparseVector
from rag_pipeline.retrieval.ranking import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload, SiteSettings
    from rag_pipeline.core.protocols import IndexFacts, SparseEncoder, VectorIndex
    from rag_pipeline.core.text.abbreviations import Abbreviation
    from rag_pipeline.retrieval.search import Search

_Value = TypeVar("_Value")

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


Piece = tuple["ChunkMetadata", str]
"""The metadata and the text of a chunk."""

MAX_CACHED_CHUNKS: Final = 2_048
"""Largest number of chunks in the cache, about 20 MB. The chunks read first are dropped first."""

MAX_PARTS: Final = 8
"""Number of parts of a collection, such as versions, whose weights are cached."""

MAX_VALUES: Final = 64
"""Number of other values that are cached, such as the counts of filters."""

EDITION_FIELDS: Final = {"version": "is_latest", "locale": "is_default_locale"}
"""The fields of a page's version and language, and those that mark the ones shown by default.

A payload has the second one only if it is false.
"""

MAX_TERMS: Final = 50_000
"""Number of terms of a part whose weights are cached. With more, the cache begins anew."""

_READ_AGE_S: Final = 30.0  # a page edited on a server changes outline and weights after this time
_FACTS_AGE_S: Final = 5.0  # the first version of a site on a server is noticed after this time
_SPELLED: Final = 8  # chunks that are read for the abbreviations of a question
_MARKER_WORDS: Final = 1  # the `##` before a heading in its chunk's text counts as a word
_PLACE_FIELDS: Final = (
    "doc_path",
    "anchor",
    "title",
    "section_heading",
    "heading_breadcrumb",
    "chunk_index",
    "content_hash",
    "word_count",
    "source",
    "common_path",
    "is_post",
    *EDITION_FIELDS.values(),
)
"""Payload fields that ranking reads for each candidate; the other fields are read only for hits."""


class OpenIndex:
    """An open collection and a cache of what was read from it.

    Each opening of a collection gets its own object, so nothing of one collection is combined with
    another. Several threads can share it: a cache is only replaced or extended as a whole.

    Args:
        store: The open collection.
        encoder: The BM25 encoder that the collection was built with.
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            Each value is then read only once. If False, places and chunks are read again for each
            search, and the outline and the weights of terms after 30 s.

    Attributes:
        store: The open collection.
    """

    def __init__(self, store: VectorIndex, encoder: SparseEncoder, *, lasting: bool) -> None:
        self.store = store
        self._encoder = encoder
        self._lasting = lasting
        self._places: dict[PointId, Place] = {}
        self._chunks: dict[PointId, Piece] = {}
        self._weights: dict[PointFilter, tuple[float, dict[str, float]]] = {}
        self._values: dict[Hashable, tuple[float, object]] = {}

    def _remember(self, key: Hashable, age_s: float, read: Callable[[], _Value]) -> _Value:
        """Return a cached value; read it if it is missing, or too old and able to change."""
        known, now = self._values.get(key), time.monotonic()
        if known is None or not (self._lasting or now - known[0] < age_s):
            known = now, read()
            kept = [entry for entry in self._values.items() if entry[0] != key]
            self._values = dict([*kept, (key, known)][-MAX_VALUES:])
        return cast("_Value", known[1])

    def search_and_place(
        self, queries: Sequence[ChannelQuery], point_ids: Sequence[PointId]
    ) -> tuple[list[list[tuple[PointId, float]]], dict[PointId, Place]]:
        """Run searches, and return their hits and the place of each point in the book.

        The places may also contain other points. Ids that the store does not have are left out.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        known = self._places if self._lasting else {}
        missing = [point_id for point_id in point_ids if point_id not in known]
        hits, payloads = self.store.search_and_fetch(queries, missing, _PLACE_FIELDS)
        if payloads:
            read = {pid: _read_place(pid, payload) for pid, payload in payloads.items()}
            self._places = known = {**known, **read}
        return hits, known

    def find_chunks(
        self,
        point_ids: Sequence[PointId],
        payloads: Mapping[PointId, Payload] = MappingProxyType({}),
    ) -> dict[PointId, Piece]:
        """Return the metadata and text of each point id; ids that the store lacks are left out.

        Args:
            point_ids: The ids.
            payloads: Payloads that were just read, by id. The store is asked for the others.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        known = self._chunks if self._lasting else {}
        found = {point_id: known[point_id] for point_id in point_ids if point_id in known}
        missing = [point_id for point_id in point_ids if point_id not in found]
        if missing:
            given = {pid: payloads[pid] for pid in missing if pid in payloads}
            others = [point_id for point_id in missing if point_id not in given]
            if others:
                given |= {point.point_id: point.payload for point in self.store.fetch(others)}
            read = {
                point_id: (read_metadata(payload), read_text(payload))
                for point_id, payload in given.items()
            }
            found |= read
            self._chunks = dict(islice(chain(read.items(), known.items()), MAX_CACHED_CHUNKS))
        return found

    def search_and_weigh(
        self, queries: Sequence[ChannelQuery], terms: Mapping[PointFilter, Collection[str]]
    ) -> tuple[list[list[tuple[PointId, float]]], dict[PointFilter, dict[str, float]]]:
        """Run searches, and look up the weights of terms in the same request.

        The weight of a term is the highest BM25 score that any chunk has for this term alone. That
        is the term's inverse document frequency times a factor of up to 2.2, which grows with the
        term's frequency in the chunk.

        Args:
            queries: The searches.
            terms: The terms to weigh, by the part of the collection in which they are weighed.

        Returns:
            The hits of the searches, and the weights of the terms by part. Terms that occur in no
            chunk are left out.
        """
        now, known = time.monotonic(), {}
        for corpus in terms:
            begun_at, own = self._weights.get(corpus, (now, {}))
            is_old = not self._lasting and now - begun_at > _READ_AGE_S
            known[corpus] = (now, {}) if is_old or len(own) > MAX_TERMS else (begun_at, own)
        missing = [
            (corpus, term)
            for corpus, asked in terms.items()
            for term in sorted(asked)
            if term not in known[corpus][1]
        ]
        vectors = self._encoder.encode_terms([term for _, term in missing])
        hits = self.store.search_many(
            [
                *queries,
                # The score of a term's best chunk is its weight, so one result is enough.
                *(
                    ChannelQuery(Channel.BM25, vector, 1, corpus, corpus)
                    for (corpus, _), vector in zip(missing, vectors, strict=True)
                ),
            ]
        )
        found: dict[PointFilter, dict[str, float]] = {}
        for (corpus, term), best in zip(missing, hits[len(queries) :], strict=True):
            found.setdefault(corpus, {})[term] = best[0][1] if best else 0.0
        for corpus, weights in found.items():
            begun_at, own = known[corpus]
            known[corpus] = begun_at, {**own, **weights}
            kept = [entry for entry in self._weights.items() if entry[0] != corpus]
            self._weights = dict([*kept, (corpus, known[corpus])][-MAX_PARTS:])
        return hits[: len(queries)], {
            corpus: {term: own[term] for term in terms[corpus] if own[term] > 0}
            for corpus, (_, own) in known.items()
        }

    def count(self, where: PointFilter = ALL_POINTS) -> int:
        """Return the number of points that match a filter.

        On a server it is up to 30 s old, and approximate while points are written.
        """
        if where == ALL_POINTS and not self._lasting:
            return self._read_facts().point_count
        return self._remember(where, _READ_AGE_S, lambda: self.store.count(where))

    def ask_marks(self, questions: Sequence[str]) -> list[ChannelQuery]:
        """Return the searches for the chunks that spell out abbreviations of questions."""
        asked = []
        for marks in filter(None, map(mark_question, questions)):
            vectors = self._encoder.encode_terms(marks)
            indices = tuple(sorted({index for vector in vectors for index in vector.indices}))
            vector = SparseVector(indices, (1.0,) * len(indices))
            asked.append(ChannelQuery(Channel.BM25, vector, _SPELLED))
        return asked

    def find_abbreviations(
        self, questions: Sequence[str], hits: Sequence[Sequence[tuple[PointId, float]]]
    ) -> list[tuple[Abbreviation, ...]]:
        """Return, for each question, the abbreviations of which it has one form and not the other.

        They are read from the chunks that spell them out, by `choose_abbreviations`.

        Args:
            questions: The questions.
            hits: The results of the searches that `ask_marks` returns.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        chunks = self.find_chunks(sorted({point_id for own in hits for point_id, _ in own}))
        by_short, by_long = choose_abbreviations(chunks.values())
        return [
            (
                *find_unspelled(question, by_short.values()),
                *find_unshortened(question, by_long.values()),
            )
            for question in questions
        ]

    def measure_unrelated(self, searches: Sequence[Search]) -> tuple[float, float] | None:
        """Return the mean and deviation of the highest cosines of questions it does not answer.

        The scale of cosines differs between embedding models. The cosines of unrelated questions
        show which values mean nothing for one model and one book.

        Args:
            searches: Unrelated questions. Without them, or in an empty collection, the result is
                None.
        """
        if not searches:
            return None

        def measure() -> tuple[float, float] | None:
            asked = [search.ask(Channel.DENSE, 1, PointFilter()) for search in searches]
            best = [found[0][1] for found in self.store.search_many(asked) if found]
            return (statistics.fmean(best), statistics.pstdev(best)) if best else None

        return self._remember(("unrelated", self.count()), inf, measure)

    def read_outline(self) -> Outline:
        """Return the pages of the book in their order, with their sections.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        return self._remember(
            ("outline", self.count()),
            _READ_AGE_S,
            lambda: outline_book([read_metadata(point.payload) for point in self.store.scroll()]),
        )

    def find_marks(self) -> frozenset[str]:
        """Return those of `is_latest` and `is_default_locale` that points may have."""
        return self._read_facts().late_fields.intersection(EDITION_FIELDS.values())

    def _read_facts(self) -> IndexFacts:
        return self._remember("facts", _FACTS_AGE_S, self.store.describe)

    def find_edition(self, site: SiteSettings, url: str) -> Edition:
        """Return the version and language of the page at an address.

        If the index does not have the page, such as a list of pages that the site generates, the
        pages below the longest part of its path decide. If pages of several editions are there, it
        is the one that readers get by default.
        """
        path = find_site_path(url.partition("#")[0].partition("?")[0], site)
        if path is None:
            return DEFAULT_EDITION
        editions = self._remember(
            ("editions", self.count()),
            _READ_AGE_S,
            lambda: _list_editions(self.read_outline(), site),
        )
        parts = tuple(path.split("/"))
        ends = range(len(parts), -1, -1)
        found = (editions[parts[:end]] for end in ends if parts[:end] in editions)
        return next(found, DEFAULT_EDITION)


def choose_abbreviations(
    chunks: Iterable[Piece],
) -> tuple[dict[str, Abbreviation], dict[tuple[str, ...], Abbreviation]]:
    """Return the abbreviations that chunks spell out, by short term and by long terms.

    If a form is spelled out in several ways, the most frequent way counts, and of equally frequent
    ways the first one.
    """
    spelled = Counter(
        one
        for metadata, text in chunks
        for one in find_abbreviations("\n".join((*metadata.heading_breadcrumb, text)))
    )
    by_short: dict[str, Abbreviation] = {}
    by_long: dict[tuple[str, ...], Abbreviation] = {}
    for one, _ in spelled.most_common():
        by_short.setdefault(one.short_term, one)
        by_long.setdefault(one.long_terms, one)
    return by_short, by_long


def section_of(doc_path: str, anchor: str | None, heading: str, tabs: Iterable[object] = ()) -> str:
    """Return a section's key, which is unique over all documents: `doc_path#anchor`.

    Without an anchor, the key ends with the heading of the section. Each tab is a section.
    """
    return " > ".join([f"{doc_path}#{anchor or heading}", *map(str, tabs)])


def _list_editions(outline: Outline, site: SiteSettings) -> dict[tuple[str, ...], Edition]:
    """Return the edition of each page, and of each folder of the site, by the parts of its path."""
    pages: dict[tuple[str, ...], Edition] = {}
    folders: dict[tuple[str, ...], list[Edition]] = {}
    for page in outline.pages:
        path, own = find_site_path(page.url, site), page.edition
        if path is None:
            continue
        parts = tuple(path.split("/"))
        pages[parts] = own
        for end in range(len(parts)):
            folders.setdefault(parts[:end], []).append(own)

    def rank(edition: Edition) -> tuple[bool, bool]:
        return edition.is_default_locale, edition.is_latest

    return {parts: max(own, key=rank) for parts, own in folders.items()} | pages


def _read_place(point_id: PointId, payload: Payload) -> Place:
    def read(name: str, kind: type[_Value]) -> _Value:
        value = payload.get(name)
        if not isinstance(value, kind):
            raise PayloadError(f"{point_id:016x}", name, value)
        return value

    doc_path, heading = read("doc_path", str), read("section_heading", str)
    anchor, common_path = payload.get("anchor"), payload.get("common_path")
    page = f"{payload.get('source') or ''}/{common_path}" if common_path else doc_path
    tabs, path = payload.get("tabs"), payload.get("heading_breadcrumb")
    labels = tabs if isinstance(tabs, list) else ()
    title, word_count = str(payload.get("title") or ""), read("word_count", int)
    is_bare = word_count <= len(heading.split()) + _MARKER_WORDS
    return Place(
        point_id,
        page,
        section_of(page, str(anchor) if anchor else None, heading, labels),
        read("chunk_index", int),
        read("content_hash", str),
        heading if is_bare else None,
        all(payload.get(mark, True) for mark in EDITION_FIELDS.values()),
        word_count,
        _find_terms(" ".join([title, *map(str, path if isinstance(path, list) else ())])),
        _find_terms(heading or title),
        bool(payload.get("is_post")),
    )


_find_terms = lru_cache(maxsize=8192)(find_distinct_terms)  # headings, which are read many times
