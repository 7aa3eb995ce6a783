"""The scope of a question: the versions and languages of the site that it searches.

A question searches the latest version in the default language, unless it has other filters or was
asked on a page of another version or language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.sources import DEFAULT_EDITION
from rag_pipeline.retrieval.filters import Scope, build_point_filter
from rag_pipeline.retrieval.open_index import EDITION_FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.sources import Edition
    from rag_pipeline.retrieval.open_index import OpenIndex
    from rag_pipeline.retrieval.queries import Query
    from rag_pipeline.retrieval.search import Search

_NAMING: Final = {"version": "of version {0}", "locale": "in {1}"}


def limit_to_scopes(
    opened: OpenIndex, searches: Sequence[Search], site: SiteSettings
) -> list[Search]:
    """Return the searches with their scopes, to which their filters and parts are limited."""
    marks = opened.find_marks()
    if not marks:
        return list(searches)
    limited = []
    for search in searches:
        url = search.query.source_url
        read_at = DEFAULT_EDITION if url is None else opened.find_edition(site, url)
        scope = choose_scope(search.query, marks, read_at)
        parts = tuple(_limit(part, scope) for part in search.parts)
        limited.append(replace(_limit(search, scope), parts=parts))
    return limited


def _limit(search: Search, scope: Scope) -> Search:
    return replace(search, where=_join(search.where, scope.where), scope=scope)


def choose_scope(query: Query, marks: frozenset[str], read_at: Edition) -> Scope:
    """Return the scope of a question about a site with versions or languages.

    Filters by document decide alone. Filters by version or language come next, then the page on
    which the question was asked, and then the latest version in the default language.

    Args:
        query: The question with its filters.
        marks: Those of `is_latest` and `is_default_locale` that points of the collection have.
        read_at: The version and language of the page on which the question was asked.
    """
    filters = query.filters
    if filters is not None and filters.doc_paths:
        return Scope()
    given = dict(build_point_filter(filters).fields)
    is_free = filters is None or not (filters.versions or filters.locales)
    fields: list[tuple[str, tuple[str, ...]]] = []
    without: list[str] = []
    named: list[str] = []
    for name, mark in EDITION_FIELDS.items():
        value = getattr(read_at, name)
        if name in given:
            fields.append((name, given[name]))
        elif filters is not None and getattr(filters, f"{name}s"):
            continue  # all are allowed
        elif is_free and value and not getattr(read_at, mark):
            fields.append((name, (value,)))
            named.append(_NAMING[name].format(read_at.version_label or value, value))
        elif mark in marks:
            without.append(mark)
    notice = f"Only the pages {' '.join(named)} were searched, because you asked on one of them."
    where = PointFilter(tuple(fields), without=tuple(without))
    return Scope(where, notice if named else None)


def _join(where: PointFilter, scope: PointFilter) -> PointFilter:
    """Return a filter for points that match the filter of a query and that of its scope."""
    fields = dict(where.fields) | dict(scope.fields)
    return PointFilter(tuple(fields.items()), where.point_ids, scope.without)
