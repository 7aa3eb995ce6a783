"""Reading candidates from a store: each retriever's best, then every candidate's missing scores.

Belongs here: what is asked of a `VectorIndex`, in as few round trips as it allows. Does not belong
here: what the scores mean (ranking).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter
from rag_pipeline.retrieval.ranking import Candidate, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, QuestionVectors, SparseVector

DEPTH: Final = 30
"""Candidates asked of each retriever; 50 find the same and take longer, see docs/adr/0018."""

_FIELDS: Final = (
    "doc_path",
    "anchor",
    "section_heading",
    "chunk_index",
    "content_hash",
    "word_count",
)
"""What ranking needs of a candidate's payload; the rest is read of hits alone."""

_MARKER_WORDS: Final = 1  # `##` stands before a heading in its chunk's text


@dataclass(frozen=True, slots=True)
class Search:
    """One question as stores are asked it.

    Attributes:
        vectors: Of the question.
        sparse: Its terms; may be empty.
        where: Which points count at all.
        windowed: Whether the collection has windows of words beside whole chunks.
    """

    vectors: QuestionVectors
    sparse: SparseVector
    where: PointFilter
    windowed: bool


@dataclass(frozen=True, slots=True)
class Pool:
    """What was found for one search.

    Attributes:
        candidates: Union of the retrievers' best, by ascending point id.
        exhausted: True where the store holds no further candidate.
    """

    candidates: tuple[Candidate, ...]
    exhausted: bool


def gather_candidates(
    index: VectorIndex, searches: Sequence[Search], depth: int, places: PlaceCache
) -> list[Pool]:
    """Find the `depth` best whole chunks by each retriever, and score all of them by all channels.

    Windows find nothing by themselves: comparing each token of a question with every window of the
    book would take longer than all else.

    All searches together cost three round trips: the best, the missing scores, and where those
    stand whose place is not known yet.

    Raises:
        StoreUnavailableError: Not reached, not in time, or held by another process.
        PayloadError: A point does not keep the payload contract.
    """
    asked = [
        (at, channel)
        for at, search in enumerate(searches)
        for channel in _channels(search)
        if channel is not Channel.WINDOWS
    ]
    found = index.search_many(
        [_channel_query(searches[at], channel, depth, searches[at].where) for at, channel in asked]
    )
    scores: list[dict[Channel, dict[PointId, float]]] = [{} for _ in searches]
    exhausted = [True] * len(searches)
    for (at, channel), hits in zip(asked, found, strict=True):
        scores[at][channel] = dict(hits)
        if channel is not Channel.BM25 and len(hits) >= depth:
            exhausted[at] = False
    unions = [sorted(set().union(*by_channel.values())) for by_channel in scores]
    _fill_missing(index, searches, unions, scores)
    known = places.look_up(index, sorted(set().union(*unions)))
    return [
        Pool(tuple(_candidate(known[pid], pid, found) for pid in union if pid in known), done)
        for union, found, done in zip(unions, scores, exhausted, strict=True)
    ]


class PlaceCache:
    """Where points stand, remembered while nobody else can change the collection.

    Args:
        lasting: Whether the collection cannot change while it is open, as the embedded one; then a
            point is read once. Else every query reads anew.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # One reference, replaced whole: threads see a collection with its own places or another.
        self._read: tuple[VectorIndex | None, dict[PointId, Place]] = (None, {})

    def look_up(self, index: VectorIndex, point_ids: Sequence[PointId]) -> dict[PointId, Place]:
        """Places of points, and perhaps of others; ids that are not there are left out."""
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
    """Name of a section, unique over all documents."""
    return f"{doc_path}#{anchor or heading}"


def _fill_missing(
    index: VectorIndex,
    searches: Sequence[Search],
    unions: Sequence[Sequence[PointId]],
    scores: Sequence[dict[Channel, dict[PointId, float]]],
) -> None:
    gaps: list[tuple[int, Channel]] = []
    queries: list[ChannelQuery] = []
    for at, (search, union) in enumerate(zip(searches, unions, strict=True)):
        for channel in _channels(search):
            known = scores[at].setdefault(channel, {})
            missing = tuple(pid for pid in union if pid not in known)
            if missing:
                gaps.append((at, channel))
                where = PointFilter(point_ids=missing)
                queries.append(_channel_query(search, channel, len(missing), where))
    for (at, channel), hits in zip(gaps, index.search_many(queries), strict=True):
        scores[at][channel].update(hits)


def _channels(search: Search) -> tuple[Channel, ...]:
    channels = [Channel.DENSE]
    if search.windowed:
        channels.append(Channel.WINDOWS)
    if search.sparse.indices:
        channels.append(Channel.BM25)
    return tuple(channels)


def _channel_query(
    search: Search, channel: Channel, limit: int, where: PointFilter
) -> ChannelQuery:
    vectors: dict[Channel, FloatVector | FloatMatrix | SparseVector] = {
        Channel.DENSE: search.vectors.dense,
        Channel.WINDOWS: search.vectors.tokens,
        Channel.BM25: search.sparse,
    }
    return ChannelQuery(channel, vectors[channel], limit, where)


def _candidate(
    place: Place, point_id: PointId, scores: Mapping[Channel, Mapping[PointId, float]]
) -> Candidate:
    dense = scores[Channel.DENSE].get(point_id, 0.0)
    windows = scores.get(Channel.WINDOWS)
    bm25 = scores.get(Channel.BM25)
    return Candidate(
        place,
        dense,
        windows.get(point_id, dense) if windows else dense,
        bm25.get(point_id, 0.0) if bm25 else 0.0,
    )


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
