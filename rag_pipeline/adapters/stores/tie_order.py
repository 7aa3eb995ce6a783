"""Ties by ascending point id, exactly, over engines that cut a list anywhere within a tie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols.stores import ChannelQuery

    Hits = list[tuple[PointId, float]]
    Search = Callable[[Sequence[tuple[ChannelQuery, int]]], list[Hits]]

_MARGIN: Final = 16  # hits asked for beyond the limit; repeated passages are rarely more
_GROWTH: Final = 4


def search_in_tie_order(queries: Sequence[ChannelQuery], search: Search) -> list[Hits]:
    """Run searches so that equal scores are ordered, and cut, by ascending point id.

    An engine returns equal scores in the order of its storage, which differs between a clean build
    and an updated one. So each list is asked for with some more hits, and once more with many more
    where all of those still tie with the last one kept.

    Args:
        queries: Those that cannot match (no terms, no ids) are answered without the engine.
        search: Takes queries with their limits; returns hits by descending score, those of a query
            with several rows by the sum over its rows.
    """
    answers: list[Hits] = [[] for _ in queries]
    limits = {
        number: query.limit + _MARGIN for number, query in enumerate(queries) if _can_match(query)
    }
    while limits:
        found = search([(queries[number], limit) for number, limit in limits.items()])
        cut_through: dict[int, int] = {}
        for (number, asked), hits in zip(limits.items(), found, strict=True):
            limit = queries[number].limit
            if len(hits) == asked and hits[-1][1] == hits[limit - 1][1]:
                cut_through[number] = asked * _GROWTH
            else:
                ordered = sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]
                rows = _count_rows(queries[number])
                if rows > 1:
                    ordered = [(point_id, score / rows) for point_id, score in ordered]
                answers[number] = ordered
        limits = cut_through
    return answers


def _count_rows(query: ChannelQuery) -> int:
    if isinstance(query.vector, SparseVector) or query.vector.ndim == 1:
        return 1
    return len(query.vector)


def _can_match(query: ChannelQuery) -> bool:
    no_terms = isinstance(query.vector, SparseVector) and not query.vector.indices
    return not no_terms and query.where.point_ids != ()
