"""The filters of a query: checked, and translated into a store's filter.

Which payload field a filter restricts is declared in core.payload.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.payload import FILTERS
from rag_pipeline.core.protocols.stores import PointFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TOP_K: Final = 5


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """Any of the values of each field, all fields together; None or empty does not restrict.

    Attributes:
        modules: Such as `module-1`.
        chapters: Such as `1.1-introduction-to-physical-ai`.
        content_types: Of prose, code, table, lab, quiz, assessment.
        tags: Tags from the documents' front matter.
        top_k: Number of results, 1 to 100.
    """

    modules: Sequence[str] | None = None
    chapters: Sequence[str] | None = None
    content_types: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    top_k: int = DEFAULT_TOP_K


def check_filters(filters: object) -> None:
    """Check the type of every filter, and the values of filters that allow only some.

    Raises:
        QueryError: A filter is not usable; the message names it.
    """
    if not isinstance(filters, QueryFilters):
        raise QueryError(f"filters must be QueryFilters, not {filters!r:.40}")
    for field, declared in FILTERS.items():
        values = getattr(filters, declared.name)
        if values is None:
            continue
        is_list = isinstance(values, Collection) and not isinstance(values, str)
        if not is_list or not all(isinstance(value, str) for value in values):
            raise QueryError(f"filter {declared.name} must be a list of texts, not {values!r:.40}")
        unknown = [value for value in values if declared.values and value not in declared.values]
        if unknown:
            label, allowed = field.replace("_", " "), ", ".join(declared.values)
            raise QueryError(f"{label} {unknown[0]!r:.40} is unknown. Use one of {allowed}")


def build_point_filter(filters: QueryFilters | None) -> PointFilter:
    """Translate checked filters. A value that no chunk has matches nothing."""
    if filters is None:
        return PointFilter()
    return PointFilter.any_of(
        **{field: _clean(getattr(filters, declared.name)) for field, declared in FILTERS.items()}
    )


def _clean(values: Sequence[str] | None) -> list[str]:
    """Sort the distinct values. JSON can contain halves of surrogate pairs, which no page has."""
    return sorted({value.encode("utf-8", "replace").decode() for value in values or ()})
