"""Reading candidates from a store: each retriever's best, then every candidate's missing scores.

Belongs here: what is asked of a `VectorIndex`, in as few round trips as it allows. Does not belong
here: what the scores mean (ranking).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.ports import Channel, ChannelQuery, PointFilter
from rag_pipeline.retrieval.ranking import STATISTICS_DEPTH, Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import FloatVector, SparseVector
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.ports import StoredPoint, VectorIndex

DEPTH: Final = STATISTICS_DEPTH
"""Candidates asked of each retriever."""


@dataclass(frozen=True, slots=True)
class Search:
    """One question as stores are asked it.

    Attributes:
        dense: Embedding of the question.
        sparse: Its terms; may be empty.
        where: Which points count at all.
        windowed: Whether the collection has sentence windows beside whole chunks.
    """

    dense: FloatVector
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
    points: Mapping[PointId, StoredPoint]
    exhausted: bool


def gather_candidates(index: VectorIndex, searches: Sequence[Search], depth: int) -> list[Pool]:
    """Find the `depth` best of each retriever and score all of them by every retriever.

    All searches together cost three round trips: the best, the missing scores, the payloads.

    Raises:
        StoreUnavailableError: Not reached, not in time, or held by another process.
        PayloadError: A point does not keep the payload contract.
    """
    asked = [(at, channel) for at, search in enumerate(searches) for channel in _channels(search)]
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
    wanted = sorted(set().union(*unions))
    points = {point.point_id: point for point in index.fetch(wanted)}
    return [
        Pool(
            tuple(_candidate(points[pid], by_channel) for pid in union if pid in points),
            points,
            done,
        )
        for union, by_channel, done in zip(unions, scores, exhausted, strict=True)
    ]


def section_of(metadata: ChunkMetadata) -> str:
    """Name of a chunk's section, unique over all documents."""
    return f"{metadata.doc_path}#{metadata.anchor or metadata.section_heading}"


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
            missing = tuple(pid for pid in union if pid not in scores[at][channel])
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
    vector = search.sparse if channel is Channel.BM25 else search.dense
    return ChannelQuery(channel, vector, limit, where)


def _candidate(point: StoredPoint, scores: Mapping[Channel, Mapping[PointId, float]]) -> Candidate:
    metadata = read_metadata(point.payload)
    point_id = point.point_id
    dense = scores[Channel.DENSE].get(point_id, 0.0)
    return Candidate(
        point_id=point_id,
        doc_path=metadata.doc_path,
        section=section_of(metadata),
        chunk_index=metadata.chunk_index,
        content_hash=metadata.content_hash,
        dense=dense,
        windows=scores.get(Channel.WINDOWS, {}).get(point_id, dense),
        bm25=scores.get(Channel.BM25, {}).get(point_id, 0.0),
    )
