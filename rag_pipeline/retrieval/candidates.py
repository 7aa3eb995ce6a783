"""The search stage: find candidate points for each question and complete their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.protocols.stores import Channel, PointFilter
from rag_pipeline.core.text.terms import find_distinct_terms
from rag_pipeline.retrieval.ranking import Candidate, Distribution, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.ranking import FusionWeights
    from rag_pipeline.retrieval.search import Search

DEPTH: Final = 100
"""Number of points requested from each of the dense and BM25 channels (ADR 28)."""

NEAR_SHARE: Final = 0.64
"""Number of near candidates for each point that is requested from a channel.

Only near candidates are compared with the question by windows, and only they can become hits. To
compare all of them would take longer than the rest of the search (ADR 28).
"""

_FIELDS: Final = (
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
    "is_latest",
    "is_default_locale",
)
"""Payload fields that ranking reads for each candidate; the other fields are read only for hits."""

_MARKER_WORDS: Final = 1  # the `##` before a heading in its chunk's text counts as a word


def gather_candidates(
    index: VectorIndex,
    searches: Sequence[Search],
    depth: int,
    places: PlaceCache,
    weights: FusionWeights,
) -> None:
    """Find the candidate points of each search and score each of them in every channel.

    The points found are the `depth` best by dense vector and the `depth` best by BM25. The best of
    them in both channels together are near and become candidates. Windows (vectors of four words)
    score only these. The far points only count in the statistics of the scores.

    All searches take three round trips to the store: one for the best points, one for the missing
    scores of near points, and one for the places in the book that are not cached yet.

    Args:
        index: The collection to search.
        searches: Searches with vectors; `scores`, `candidates`, `far` and `exhausted` are set.
        depth: Number of points to request from each channel, at least 1.
        places: A cache of the document, section and position of each point.
        weights: The weights of vectors and BM25, by which near points are chosen.

    Raises:
        StoreUnavailableError: The store is unreachable, timed out or is locked by another process.
        PayloadError: A stored point has a missing or invalid payload field.
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
    near = [(search, sorted(_find_near(search, depth, weights))) for search in searches]

    gaps = [
        (search, channel, missing)
        for search, point_ids in near
        for channel in search.channels
        if (missing := _find_missing(point_ids, search.scores[channel]))
    ]
    found = index.search_many(
        [
            search.ask(channel, len(missing), PointFilter(point_ids=missing))
            for search, channel, missing in gaps
        ]
    )
    for (search, channel, _), hits in zip(gaps, found, strict=True):
        search.scores[channel].update(hits)

    placed = places.look_up(index, sorted({pid for _, point_ids in near for pid in point_ids}))
    for search, point_ids in near:
        places_of_near = [placed[point_id] for point_id in point_ids if point_id in placed]
        search.candidates = _describe(places_of_near, search.scores)


def _find_near(search: Search, depth: int, weights: FusionWeights) -> list[PointId]:
    """Return the points that are best in both channels together; set `far` and `exhausted`.

    A point that is missing from the hits of a channel counts there with the highest score that it
    can have: the score of the last hit, or 0 for BM25 if all points with a term were found.
    """
    union = sorted(set().union(*search.scores.values()))
    count = max(1, round(NEAR_SHARE * depth)) if search.windowed else len(union)
    totals = [0.0] * len(union)
    for channel, weight in ((Channel.DENSE, weights.semantic), (Channel.BM25, weights.bm25)):
        scores = search.scores.get(channel, {})
        distribution = Distribution.of(scores.values())
        most = 0.0 if len(scores) < depth else min(scores.values())
        placed = distribution.place([scores.get(point_id, most) for point_id in union])
        totals = [total + weight * own for total, own in zip(totals, placed, strict=True)]
    order = sorted(zip([-total for total in totals], union, strict=True))
    near = [point_id for _, point_id in order[:count]]
    kept = set(near)
    search.far = {
        channel: [score for point_id, score in scores.items() if point_id not in kept]
        for channel, scores in search.scores.items()
    }
    search.exhausted = len(search.scores[Channel.DENSE]) < depth and len(near) == len(union)
    return near


class PlaceCache:
    """A cache of the place of each point in the book: its document, section and position.

    Args:
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            Each point is then read only once. If False, each look-up reads the store again.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # A tuple that is replaced as a whole, so that no thread combines one collection with the
        # places of another.
        self._read: tuple[VectorIndex | None, dict[PointId, Place]] = (None, {})

    def look_up(self, index: VectorIndex, point_ids: Sequence[PointId]) -> dict[PointId, Place]:
        """Return the document, section and position of each point id.

        Ids that the store does not have are left out. The result is the whole cache, so it may also
        contain points that were looked up before.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        cached_index, cached = self._read
        known = cached if self._lasting and index is cached_index else {}
        missing = [point_id for point_id in point_ids if point_id not in known]
        if missing:
            payloads = index.fetch_fields(missing, _FIELDS)
            read = {pid: _read_place(pid, payload) for pid, payload in payloads.items()}
            known = {**known, **read}
            self._read = (index, known)
        return known


def section_of(doc_path: str, anchor: str | None, heading: str) -> str:
    """Return a section's key, which is unique over all documents: `doc_path#anchor`.

    Without an anchor, the key ends with the heading of the section.
    """
    return f"{doc_path}#{anchor or heading}"


def _find_missing(
    point_ids: Sequence[PointId], scores: Mapping[PointId, float]
) -> tuple[PointId, ...]:
    return tuple(point_id for point_id in point_ids if point_id not in scores)


def _describe(
    places: Sequence[Place], scores: Mapping[Channel, Mapping[PointId, float]]
) -> tuple[Candidate, ...]:
    by_dense = scores[Channel.DENSE]
    by_windows, by_bm25 = (scores.get(channel, {}) for channel in (Channel.WINDOWS, Channel.BM25))
    candidates = []
    for place in places:
        point_id = place.point_id
        dense = by_dense.get(point_id, 0.0)
        windows, bm25 = by_windows.get(point_id, dense), by_bm25.get(point_id, 0.0)
        candidates.append(Candidate(place, dense, windows, bm25))
    return tuple(candidates)


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
