"""Filters in the form of the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import qdrant_edge as edge

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.stores import PointFilter


def build_filter(where: PointFilter) -> Any:  # noqa: ANN401  # the engine's classes have no usable types
    """Return a filter in the form of the engine, or None if it matches every point."""
    must: list[Any] = [
        edge.FieldCondition(key=key, match=edge.MatchAny(any=list(values)))
        for key, values in where.fields
    ]
    if where.point_ids is not None:
        must.append(edge.HasIdCondition({int(point_id) for point_id in where.point_ids}))
    # The engine reads a boolean value of a condition as a number, so it cannot match `false`.
    must += [edge.IsEmptyCondition(key) for key in where.without]
    return edge.Filter(must=must) if must else None


def count_within(corpus: Any) -> Any:  # noqa: ANN401  # the engine's classes have no usable types
    """Return the search parameters that count documents with a term only in a part of the store."""
    return None if corpus is None else edge.SearchParams(idf=edge.IdfParams(corpus=corpus))
