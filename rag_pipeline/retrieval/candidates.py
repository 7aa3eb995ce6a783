"""The search stage: find candidate points for each question and complete their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols import Channel, ChannelQuery, PointFilter
from rag_pipeline.retrieval.ranking import Candidate, Distribution, FusionWeights
from rag_pipeline.retrieval.search import Search, group_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.retrieval.open_index import OpenIndex

DEPTH: Final = 150
"""Number of points requested from each of the dense and BM25 channels (ADR 87)."""

NEAR_SHARE: Final = 0.64
"""Number of near candidates for each point that is requested from a channel.

Only near candidates are compared with the question by windows, and only they can become hits. To
compare all of them would take longer than the rest of the search (ADR 28).
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search stage found for a question.

    Attributes:
        candidates: The near points with their scores in every channel, by ascending point id.
        far: By channel, the scores of the points that are too far to be candidates.
        exhausted: True if the store has no candidates besides those found.
        parts: The same for each sub-question of a compound question.
    """

    candidates: tuple[Candidate, ...]
    far: Mapping[Channel, Sequence[float]]
    exhausted: bool
    parts: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstHits:
    """The best points of some searches and of their parts.

    Attributes:
        searches: The searches.
        asked: The searches, and then the parts of all of them.
        depth: Number of points that were requested from each channel.
        scores: The scores of the best points of each search and part, by channel.
        weights: The weights of terms, by the part of the collection in which they were weighed.
    """

    searches: Sequence[Search]
    asked: Sequence[Search]
    depth: int
    scores: Sequence[dict[Channel, dict[PointId, float]]]
    weights: Mapping[PointFilter, Mapping[str, float]]


def find_best(
    opened: OpenIndex,
    searches: Sequence[Search],
    depth: int,
    others: Sequence[ChannelQuery] = (),
) -> tuple[FirstHits, list[list[tuple[PointId, float]]]]:
    """Find the best points of each search and of its parts, and weigh its terms, in one request.

    Args:
        opened: The collection to search.
        searches: Searches with vectors.
        depth: Number of points to request from each channel, at least 1.
        others: Further queries for the same request.

    Returns:
        The best points, and the hits of the further queries.

    Raises:
        StoreUnavailableError: The store is unreachable, timed out or is locked by another process.
    """
    asked = [*searches, *(part for search in searches for part in search.parts)]
    best = [
        (at, channel)
        for at, search in enumerate(asked)
        for channel in search.channels
        if channel is not Channel.WINDOWS
    ]
    terms: dict[PointFilter, set[str]] = {}
    for search in searches:
        terms.setdefault(search.corpus, set()).update(search.words)
    queries = [asked[at].ask(channel, depth, asked[at].where) for at, channel in best]
    hits, weights = opened.search_and_weigh([*queries, *others], terms)
    scores: list[dict[Channel, dict[PointId, float]]] = [
        {channel: {} for channel in search.channels} for search in asked
    ]
    for (at, channel), own in zip(best, hits, strict=False):  # the further queries follow
        scores[at][channel] = dict(own)
    return FirstHits(searches, asked, depth, scores, weights), hits[len(best) :]


def gather_candidates(opened: OpenIndex, first: FirstHits, weights: FusionWeights) -> list[Found]:
    """Find the candidate points of each search and of its parts, scored in every channel.

    The points found are the `depth` best by dense vector and the `depth` best by BM25. The best of
    them in both channels together are near and become candidates. Windows (vectors of four words)
    score only these. The far points only count in the statistics of the scores.

    The missing scores and the places of near points are read in one request. The windows of a whole
    question are compared word by word, so that its vectors are sent once.

    Args:
        opened: The collection to search.
        first: The best points of the searches.
        weights: The weights of vectors and BM25, by which near points are chosen.

    Raises:
        StoreUnavailableError: The store is unreachable, timed out or is locked by another process.
        PayloadError: A stored point has a missing or invalid payload field.
    """
    asked, scores = first.asked, first.scores
    groups = [group_tokens(search.text, search.vectors) for search in first.searches]
    groups += [[[*range(len(part.vectors.tokens))]] for part in asked[len(groups) :]]
    # The far scores are those of the first request, so they are read before the gaps are filled.
    nears = [
        _find_near(own, search.windowed, first.depth, weights)
        for search, own in zip(asked, scores, strict=True)
    ]
    gaps = [
        (at, channel, PointFilter(point_ids=missing), rows)
        for at, (near, _, _) in enumerate(nears)
        for channel in asked[at].channels
        if (missing := tuple(pid for pid in sorted(near) if pid not in scores[at][channel]))
        for rows in (groups[at] if channel is Channel.WINDOWS else [()])
    ]
    hits, places = opened.search_and_place(
        [
            asked[at].ask(channel, len(missing.point_ids or ()), missing, rows)
            for at, channel, missing, rows in gaps
        ],
        sorted({pid for near, _, _ in nears for pid in near}),
    )
    tokens: list[dict[PointId, list[float]]] = [{} for _ in asked]
    for (at, channel, _, rows), own in zip(gaps, hits, strict=True):
        if channel is not Channel.WINDOWS:
            scores[at][channel].update(own)
            continue
        for point_id, cosine in own:
            cosines = tokens[at].setdefault(point_id, [0.0] * len(asked[at].vectors.tokens))
            for row in rows:
                cosines[row] = cosine
    found = []
    for (near, far, exhausted), scored, by_token in zip(nears, scores, tokens, strict=True):
        candidates = []
        for point_id in sorted(places.keys() & near):
            dense = scored[Channel.DENSE].get(point_id, 0.0)
            bm25 = scored.get(Channel.BM25, {}).get(point_id, 0.0)
            by_row = tuple(by_token.get(point_id, ()))
            windows = math.fsum(by_row) / len(by_row) if by_row else dense
            candidates.append(Candidate(places[point_id], dense, windows, bm25, by_row))
        found.append(Found(tuple(candidates), far, exhausted))
    left = iter(found)
    whole = [next(left) for _ in first.searches]
    return [
        replace(own, parts=tuple(next(left) for _ in search.parts))
        for search, own in zip(first.searches, whole, strict=True)
    ]


def _find_near(
    scores: Mapping[Channel, Mapping[PointId, float]],
    windowed: bool,  # noqa: FBT001  # from the search
    depth: int,
    weights: FusionWeights,
) -> tuple[list[PointId], dict[Channel, list[float]], bool]:
    """Return the points that are best in both channels together, the far scores, and `exhausted`.

    A point that is missing from the hits of a channel counts there with the highest score that it
    can have: the score of the last hit, or 0 for BM25 if all points with a term were found.
    """
    union = sorted(set().union(*scores.values()))
    count = max(1, round(NEAR_SHARE * depth)) if windowed else len(union)
    totals = [0.0] * len(union)
    for ranked_by, weight in ((Channel.DENSE, weights.semantic), (Channel.BM25, weights.bm25)):
        found = scores.get(ranked_by, {})
        distribution = Distribution.of(found.values())
        most = 0.0 if len(found) < depth else min(found.values())
        placed = distribution.place([found.get(point_id, most) for point_id in union])
        totals = [total + weight * own for total, own in zip(totals, placed, strict=True)]
    order = sorted(zip([-total for total in totals], union, strict=True))
    near = [point_id for _, point_id in order[:count]]
    kept = set(near)
    far = {
        channel: [score for point_id, score in found.items() if point_id not in kept]
        for channel, found in scores.items()
    }
    exhausted = len(scores[Channel.DENSE]) < depth and len(near) == len(union)
    return near, far, exhausted
