"""The search stage: each retriever's best points, then the scores and places they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.protocols.stores import Channel, PointFilter
from rag_pipeline.retrieval.ranking import Candidate, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.search import Search

DEPTH: Final = 30
"""Candidates asked of each retriever; 50 find the same and take longer (docs/adr/0018)."""

_FIELDS: Final = (
    "doc_path",
    "anchor",
    "section_heading",
    "chunk_index",
    "content_hash",
    "word_count",
)
"""Payload fields that ranking needs of a candidate; the other fields are read only for hits."""

_MARKER_WORDS: Final = 1  # `##` stands before a heading in its chunk's text


def gather_candidates(
    index: VectorIndex, searches: Sequence[Search], depth: int, places: PlaceCache
) -> None:
    """Find the `depth` best whole chunks by each retriever, and score all of them by all channels.

    Sets `scores`, `candidates` and `exhausted` of each search. Windows find nothing by themselves:
    comparing each token of a question with every window of the book would take longer than all
    else.

    All searches together cost three round trips: the best, the missing scores, and the places of
    points that are not known yet.

    Raises:
        StoreUnavailableError: Not reached, not in time, or held by another process.
        PayloadError: A point does not keep the payload contract.
    """
    best: list[tuple[Search, Channel]] = [
        (search, channel)
        for search in searches
        for channel in search.channels
        if channel is not Channel.WINDOWS
    ]
    found = index.search_many(
        [search.ask(channel, depth, search.where) for search, channel in best]
    )
    for search in searches:
        search.scores = {channel: {} for channel in search.channels}
    for (search, channel), hits in zip(best, found, strict=True):
        search.scores[channel] = dict(hits)
    unions = [(search, sorted(set().union(*search.scores.values()))) for search in searches]
    for search in searches:
        search.exhausted = len(search.scores[Channel.DENSE]) < depth

    gaps = [
        (search, channel, missing)
        for search, union in unions
        for channel in search.channels
        if (missing := tuple(pid for pid in union if pid not in search.scores[channel]))
    ]
    found = index.search_many(
        [
            search.ask(channel, len(missing), PointFilter(point_ids=missing))
            for search, channel, missing in gaps
        ]
    )
    for (search, channel, _), hits in zip(gaps, found, strict=True):
        search.scores[channel].update(hits)

    placed = places.look_up(index, sorted({point_id for _, union in unions for point_id in union}))
    for search, union in unions:
        search.candidates = tuple(
            _describe(placed[point_id], search.scores) for point_id in union if point_id in placed
        )


class PlaceCache:
    """The places of points in the book, remembered while nobody else can change the collection.

    Args:
        lasting: True when the collection cannot change while it is open, like the embedded store;
            then each point is read once. Otherwise every query reads again.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # One reference, replaced as a whole: no thread sees one collection with another's places.
        self._read: tuple[VectorIndex | None, dict[PointId, Place]] = (None, {})

    def look_up(self, index: VectorIndex, point_ids: Sequence[PointId]) -> dict[PointId, Place]:
        """Return the places of points, and perhaps of others; missing points are left out."""
        of_index, remembered = self._read
        known = remembered if self._lasting and index is of_index else {}
        missing = [point_id for point_id in point_ids if point_id not in known]
        if missing:
            payloads = index.fetch_fields(missing, _FIELDS)
            read = {pid: _read_place(pid, payload) for pid, payload in payloads.items()}
            known = {**known, **read}
            self._read = (index, known)
        return known


def section_of(doc_path: str, anchor: str | None, heading: str) -> str:
    """Return a name for a section, unique over all documents."""
    return f"{doc_path}#{anchor or heading}"


def _describe(place: Place, scores: Mapping[Channel, Mapping[PointId, float]]) -> Candidate:
    dense = scores[Channel.DENSE].get(place.point_id, 0.0)
    windows = scores.get(Channel.WINDOWS, {}).get(place.point_id, dense)
    bm25 = scores.get(Channel.BM25, {}).get(place.point_id, 0.0)
    return Candidate(place, dense, windows, bm25)


def _read_place(point_id: PointId, payload: Payload) -> Place:
    doc_path, heading, content_hash = (
        _read_text(point_id, payload, name)
        for name in ("doc_path", "section_heading", "content_hash")
    )
    chunk_index, word_count = (
        _read_number(point_id, payload, name) for name in ("chunk_index", "word_count")
    )
    anchor = payload.get("anchor")
    section = section_of(doc_path, str(anchor) if anchor else None, heading)
    is_bare = word_count <= len(heading.split()) + _MARKER_WORDS
    bare_heading = heading if is_bare else None
    return Place(point_id, doc_path, section, chunk_index, content_hash, bare_heading)


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
