"""From what a caller filters by to what a store understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.protocols.stores import PointFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.retrieval.models import QueryFilters


def build_point_filter(filters: QueryFilters | None) -> PointFilter:
    """Translate checked filters; a value that no chunk has simply matches nothing."""
    if filters is None:
        return PointFilter()
    return PointFilter(
        modules=_sorted(filters.modules),
        chapters=_sorted(filters.chapters),
        content_types=_sorted(filters.content_types),
        tags=_sorted(filters.tags),
    )


def _sorted(values: Sequence[str] | None) -> tuple[str, ...]:
    # Halves of surrogate pairs, as JSON can bring them, stand in no page and pass no store.
    return tuple(sorted({value.encode("utf-8", "replace").decode() for value in values or ()}))
