"""The filters of queries as filters of the store."""

from __future__ import annotations

from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.retrieval import QueryFilters
from rag_pipeline.retrieval.queries import build_point_filter


def test_filters_by_source_version_and_language_restrict_the_fields_of_these_names() -> None:
    filters = QueryFilters(sources=["api"], versions=["2.0", "1.0"], locales=["fr"])
    assert build_point_filter(filters) == PointFilter(
        (("source", ("api",)), ("version", ("1.0", "2.0")), ("locale", ("fr",)))
    )


def test_a_star_allows_every_version_and_language_but_is_an_ordinary_tag() -> None:
    filters = QueryFilters(versions=["*"], locales=["fr", "*"], tags=["*"])
    assert build_point_filter(filters) == PointFilter((("tags", ("*",)),))
