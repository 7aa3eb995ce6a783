"""An open collection, with everything that searches have read from it so far."""

from __future__ import annotations

import statistics
import time
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.payload import read_metadata, read_text
from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.site.docusaurus import find_site_path
from rag_pipeline.core.sources import DEFAULT_EDITION
from rag_pipeline.core.text.terms import find_distinct_terms
from rag_pipeline.retrieval.outline import Outline, outline_book
from rag_pipeline.retrieval.ranking import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload, SiteSettings
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols import SparseEncoder, VectorIndex
    from rag_pipeline.core.sources import Edition
    from rag_pipeline.retrieval.search import Search

Piece = tuple["ChunkMetadata", str]
"""The metadata and the text of a chunk."""

MAX_CACHED_CHUNKS: Final = 2_048
"""Largest number of chunks in the cache, about 20 MB. The chunks read first are dropped first."""

MAX_PARTS: Final = 8
"""Number of parts of a collection, such as versions, whose weights are cached beside a new one."""

EDITION_FIELDS: Final = {"version": "is_latest", "locale": "is_default_locale"}
"""The fields of a page's version and language, and those that mark the ones shown by default.

A payload has the second one only if it is false.
"""

_OUTLINE_AGE_S: Final = 30.0  # a page edited on a server shows up after this time
_MARKS_AGE_S: Final = 5.0  # the first version of a site on a server is noticed after this time
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
            Each value is then read only once. If False, places, chunks and weights are read again
            for each search, and the outline when the number of chunks has changed or after 30 s.

    Attributes:
        store: The open collection.
    """

    def __init__(self, store: VectorIndex, encoder: SparseEncoder, *, lasting: bool) -> None:
        self.store = store
        self._encoder = encoder
        self._lasting = lasting
        self._places: dict[PointId, Place] = {}
        self._chunks: dict[PointId, Piece] = {}
        self._weights: dict[PointFilter, tuple[int, dict[str, float]]] = {}
        self._unrelated: tuple[int, tuple[float, float]] | None = None
        self._outline: tuple[int, float, Outline] | None = None
        self._editions: tuple[Outline, dict[tuple[str, ...], Edition]] | None = None
        self._marks: tuple[float, frozenset[str]] | None = None

    def find_places(self, point_ids: Sequence[PointId]) -> dict[PointId, Place]:
        """Return the place of each point in the book; it may also contain other points.

        Ids that the store does not have are left out.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        known = self._places if self._lasting else {}
        missing = [point_id for point_id in point_ids if point_id not in known]
        if missing:
            payloads = self.store.fetch_fields(missing, _PLACE_FIELDS)
            read = {pid: _read_place(pid, payload) for pid, payload in payloads.items()}
            self._places = known = {**known, **read}
        return known

    def find_chunks(self, point_ids: Sequence[PointId]) -> dict[PointId, Piece]:
        """Return the metadata and text of each point id; ids that the store lacks are left out.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        known = self._chunks if self._lasting else {}
        found = {point_id: known[point_id] for point_id in point_ids if point_id in known}
        missing = [point_id for point_id in point_ids if point_id not in found]
        if missing:
            read = {
                point.point_id: (read_metadata(point.payload), read_text(point.payload))
                for point in self.store.fetch(missing)
            }
            found |= read
            self._chunks = dict(islice(chain(read.items(), known.items()), MAX_CACHED_CHUNKS))
        return found

    def weigh(
        self, terms: Sequence[str], corpus: PointFilter = ALL_POINTS
    ) -> tuple[int, dict[str, float]]:
        """Return the number of chunks in a part of the collection, and the weight of each term.

        The weight of a term is the highest BM25 score that any chunk has for this term alone. That
        is the term's inverse document frequency times a factor of up to 2.2, which grows with the
        term's frequency in the chunk. Terms that occur in no chunk are left out. The weights may
        include terms that were looked up before.
        """
        parts = self._weights if self._lasting else {}
        count, known = parts.get(corpus) or (self.store.count(corpus), {})
        missing = [term for term in terms if term not in known]
        if missing or corpus not in parts:
            # The score of a term's best chunk is its weight, so one result for each term is enough.
            hits = self.store.search_many(
                [
                    ChannelQuery(Channel.BM25, vector, 1, corpus, corpus)
                    for vector in self._encoder.encode_terms(missing)
                ]
            )
            found = {term: best[0][1] for term, best in zip(missing, hits, strict=True) if best}
            known = {**known, **found}
            kept = {part: parts[part] for part in [*parts][-MAX_PARTS:] if part != corpus}
            self._weights = {**kept, corpus: (count, known)}
        return count, known

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
        known = self._unrelated
        count = known[0] if known and self._lasting else self.store.count()
        if known is None or known[0] != count:
            hits = self.store.search_many(
                [search.ask(Channel.DENSE, 1, PointFilter()) for search in searches]
            )
            best = [found[0][1] for found in hits if found]
            if not best:
                return None
            known = (count, (statistics.fmean(best), statistics.pstdev(best)))
            self._unrelated = known
        return known[1]

    def read_outline(self) -> Outline:
        """Return the pages of the book in their order, with their sections.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        known, now = self._outline, time.monotonic()
        if known is not None and (
            self._lasting or (now - known[1] < _OUTLINE_AGE_S and self.store.count() == known[0])
        ):
            return known[2]
        chunks = [read_metadata(point.payload) for point in self.store.scroll()]
        outline = outline_book(chunks)
        self._outline = (len(chunks), now, outline)
        return outline

    def find_marks(self) -> frozenset[str]:
        """Return those of `is_latest` and `is_default_locale` that points may have."""
        known, now = self._marks, time.monotonic()
        if known is not None and (self._lasting or now - known[0] < _MARKS_AGE_S):
            return known[1]
        names = self.store.find_late_fields().intersection(EDITION_FIELDS.values())
        self._marks = (now, names)
        return names

    def find_edition(self, site: SiteSettings, url: str) -> Edition:
        """Return the version and language of the page at an address.

        If the index does not have the page, such as a list of pages that the site generates, the
        pages below the longest part of its path decide. If pages of several editions are there, it
        is the one that readers get by default.
        """
        path = find_site_path(url.partition("#")[0].partition("?")[0], site)
        if path is None:
            return DEFAULT_EDITION
        outline, known = self.read_outline(), self._editions
        if known is None or known[0] is not outline:
            self._editions = known = (outline, _list_editions(outline, site))
        parts = tuple(path.split("/"))
        ends = range(len(parts), -1, -1)
        found = (known[1][parts[:end]] for end in ends if parts[:end] in known[1])
        return next(found, DEFAULT_EDITION)


def section_of(doc_path: str, anchor: str | None, heading: str) -> str:
    """Return a section's key, which is unique over all documents: `doc_path#anchor`.

    Without an anchor, the key ends with the heading of the section.
    """
    return f"{doc_path}#{anchor or heading}"


def _list_editions(outline: Outline, site: SiteSettings) -> dict[tuple[str, ...], Edition]:
    """Return the edition of each page, and of each folder of the site, by the parts of its path."""
    pages: dict[tuple[str, ...], Edition] = {}
    folders: dict[tuple[str, ...], Edition] = {}
    for page in outline.pages:
        path, own = find_site_path(page.url, site), page.edition
        if path is None:
            continue
        parts = tuple(path.split("/"))
        pages[parts] = own
        for end in range(len(parts)):
            other = folders.get(parts[:end])
            if other is None or _rank_edition(own) > _rank_edition(other):
                folders[parts[:end]] = own
    return folders | pages


def _rank_edition(edition: Edition) -> tuple[bool, bool]:
    return edition.is_default_locale, edition.is_latest


def _read_place(point_id: PointId, payload: Payload) -> Place:
    doc_path, heading, content_hash = (
        _read_text(point_id, payload, name)
        for name in ("doc_path", "section_heading", "content_hash")
    )
    chunk_index, word_count = (
        _read_number(point_id, payload, name) for name in ("chunk_index", "word_count")
    )
    anchor = payload.get("anchor")
    common_path = payload.get("common_path")
    page = f"{payload.get('source') or ''}/{common_path}" if common_path else doc_path
    section = section_of(page, str(anchor) if anchor else None, heading)
    is_bare = word_count <= len(heading.split()) + _MARKER_WORDS
    bare_heading = heading if is_bare else None
    is_default = all(payload.get(mark, True) for mark in ("is_latest", "is_default_locale"))
    title = str(payload.get("title") or "")
    path = payload.get("heading_breadcrumb")
    return Place(
        point_id,
        page,
        section,
        chunk_index,
        content_hash,
        bare_heading,
        is_default,
        word_count,
        find_distinct_terms(" ".join([title, *map(str, path if isinstance(path, list) else ())])),
        find_distinct_terms(heading or title),
    )


def _read_number(point_id: PointId, payload: Payload, name: str) -> int:
    value = payload.get(name)
    if not isinstance(value, int):
        raise PayloadError(f"{point_id:016x}", name, value)
    return value


def _read_text(point_id: PointId, payload: Payload, name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str):
        raise PayloadError(f"{point_id:016x}", name, value)
    return value
