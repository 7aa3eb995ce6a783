"""The scope of a question: the versions and languages of the site that it searches.

A question searches the latest version in the default language, unless it has other filters or was
asked on a page of another version or language.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.editions import DEFAULT_EDITION
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.core.site.docusaurus import find_site_path
from rag_pipeline.retrieval.filters import Scope, build_point_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.editions import Edition
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.outline import Outline, OutlineCache
    from rag_pipeline.retrieval.queries import Query
    from rag_pipeline.retrieval.search import Search

_SERVER_AGE_S: Final = 5.0  # the first version of a site on a server is noticed after this time
_NAMING: Final = {"version": "of version {0}", "locale": "in {1}"}
_EDITION_FIELDS: Final = {"version": "is_latest", "locale": "is_default_locale"}
"""The fields of a page's version and language, and those that mark the ones shown by default.

A payload has the second one only if it is false.
"""


class SiteEditions:
    """A cache of what is known about the versions and languages of a site.

    Args:
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            If False, the names of its fields are read again after 5 s.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # Tuples that are replaced as a whole, so that no thread combines one collection with the
        # fields or pages of another.
        self._fields: tuple[VectorIndex | None, float, frozenset[str]] = (None, 0.0, frozenset())
        self._places: tuple[Outline | None, dict[tuple[str, ...], Edition]] = (None, {})

    def find_marks(self, index: VectorIndex) -> frozenset[str]:
        """Return those of `is_latest` and `is_default_locale` that points may have."""
        known, read_at, names = self._fields
        now = time.monotonic()
        if known is not index or not (self._lasting or now - read_at < _SERVER_AGE_S):
            names = index.find_late_fields().intersection(_EDITION_FIELDS.values())
            self._fields = (index, now, names)
        return names

    def find_edition(self, outline: Outline, site: SiteSettings, url: str) -> Edition:
        """Return the version and language of the page at an address.

        If the index does not have the page, such as a list of pages that the site generates, the
        pages below the longest part of its path decide. If pages of several editions are there, it
        is the one that readers get by default.
        """
        path = find_site_path(url.partition("#")[0].partition("?")[0], site)
        if path is None:
            return DEFAULT_EDITION
        known, places = self._places
        if known is not outline:
            places = _list_places(outline, site)
            self._places = (outline, places)
        parts = tuple(path.split("/"))
        ends = range(len(parts), -1, -1)
        found = (places[parts[:end]] for end in ends if parts[:end] in places)
        return next(found, DEFAULT_EDITION)


def _list_places(outline: Outline, site: SiteSettings) -> dict[tuple[str, ...], Edition]:
    """Return the edition of each page, and of each folder of the site, by the parts of its path."""
    pages: dict[tuple[str, ...], Edition] = {}
    folders: dict[tuple[str, ...], Edition] = {}
    for page in outline.pages:
        path, own = find_site_path(page.url, site), page.edition
        if path is None:
            continue
        parts = tuple(path.split("/"))
        pages[parts] = own
        for end in range(len(parts)):
            other = folders.get(parts[:end])
            if other is None or _rank_edition(own) > _rank_edition(other):
                folders[parts[:end]] = own
    return folders | pages


def _rank_edition(edition: Edition) -> tuple[bool, bool]:
    return edition.is_default_locale, edition.is_latest


def set_scopes(
    index: VectorIndex,
    searches: Sequence[Search],
    editions: SiteEditions,
    outlines: OutlineCache,
    site: SiteSettings,
) -> None:
    """Set the scope of each search and of its parts, and limit its filter to the scope."""
    marks = editions.find_marks(index)
    if not marks:
        return
    for search in searches:
        url, read_at = search.query.source_url, DEFAULT_EDITION
        if url is not None:
            read_at = editions.find_edition(outlines.look_up(index), site, url)
        search.scope = choose_scope(search.query, marks, read_at)
        for part in (search, *search.parts):
            part.where = _join(part.where, search.scope.where)
            part.scope = search.scope


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
    for name, mark in _EDITION_FIELDS.items():
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
