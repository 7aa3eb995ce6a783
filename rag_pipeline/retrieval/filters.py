"""The filters of a query: their validation and their translation into a store's filter.

The payload field that each filter restricts is declared in core.payload.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.payload import FILTERS, LATE_INDEXES
from rag_pipeline.core.protocols import ALL_POINTS, PointFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TOP_K: Final = 5
MAX_FILTER_VALUES: Final = 50
ANY_VALUE: Final = "*"
"""Value of the filters by version and language that allows all. No version has this name."""


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """Restrictions on the chunks that a query can find, and the number of results.

    A chunk must have one of the given values in every filtered field. A field that is None or
    empty does not restrict the search. A field can have at most 50 values.

    Attributes:
        modules: Names of modules, such as `module-1`.
        chapters: Names of chapters, such as `1.1-introduction-to-physical-ai`.
        content_types: Any of prose, code, table, lab, quiz, assessment and api.
        tags: Tags from the front matter of documents.
        top_k: Number of results, 1 to 100. `Query.top_k` takes precedence.
        doc_paths: Paths of documents below the docs folder, such as `module-1/intro.md`.
        sources: Parts of the site, such as `docs`, `api` or `blog`.
        versions: Names of versions, such as `current` or `2.0`; `*` for all versions.
        locales: Names of languages, such as `fr`; `*` for all languages.
    """

    modules: Sequence[str] | None = None
    chapters: Sequence[str] | None = None
    content_types: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    top_k: int = DEFAULT_TOP_K
    doc_paths: Sequence[str] | None = None
    sources: Sequence[str] | None = None
    versions: Sequence[str] | None = None
    locales: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The versions and languages that a question searches.

    Attributes:
        where: The filter by version and language; it matches all points of a site without them.
        notice: A hint for the reader if the page of the question decided the scope.
    """

    where: PointFilter = ALL_POINTS
    notice: str | None = None


def check_filters(filters: object) -> None:
    """Check that each filter is a list of at most 50 strings, and that content types are known.

    Raises:
        QueryError: A filter is invalid; the message names the filter.
    """
    if not isinstance(filters, QueryFilters):
        raise QueryError(f"filters must be a QueryFilters object, not {filters!r:.40}")
    for field, declared in FILTERS.items():
        values = getattr(filters, declared.name)
        if values is None:
            continue
        is_list = isinstance(values, Collection) and not isinstance(values, str)
        if not is_list or not all(isinstance(value, str) for value in values):
            raise QueryError(
                f"filter {declared.name} must be a list of strings, not {values!r:.40}"
            )
        if len(values) > MAX_FILTER_VALUES:
            raise QueryError(
                f"filter {declared.name} has {len(values):,} values, but the limit is "
                f"{MAX_FILTER_VALUES}. Use fewer values, or leave the filter out"
            )
        unknown = [value for value in values if declared.values and value not in declared.values]
        if unknown:
            label, allowed = field.replace("_", " "), ", ".join(declared.values)
            raise QueryError(f"{label} {unknown[0]!r:.40} is unknown. Use one of {allowed}")


def build_point_filter(filters: QueryFilters | None) -> PointFilter:
    """Translate checked query filters into the store's filter.

    If `filters` is None, the result matches all chunks. A value that no chunk has matches nothing.
    """
    if filters is None:
        return PointFilter()
    return PointFilter.any_of(
        **{
            field: _clean(getattr(filters, declared.name), any_allowed=field in LATE_INDEXES)
            for field, declared in FILTERS.items()
        }
    )


def _clean(values: Sequence[str] | None, *, any_allowed: bool) -> list[str]:
    """Return the distinct values of a filter in sorted order; an empty list for no restriction.

    Unpaired surrogates, which can come from JSON, are replaced by `?`. No chunk contains them.
    """
    if any_allowed and values and ANY_VALUE in values:
        return []
    return sorted({value.encode("utf-8", "replace").decode() for value in values or ()})
