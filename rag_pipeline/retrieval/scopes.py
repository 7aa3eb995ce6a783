"""The scope of a question: the versions and languages of the site that it searches.

A question searches the latest version in the default language, unless it has other filters or was
asked on a page of another version or language.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import find_site_path
from rag_pipeline.core.editions import DEFAULT_EDITION
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.retrieval.filters import Scope, build_point_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.editions import Edition
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.outline import OutlineCache
    from rag_pipeline.retrieval.queries import Query
    from rag_pipeline.retrieval.search import Search

_SERVER_AGE_S: Final = 5.0  # the first version of a site on a server is noticed after this time
_NAMING: Final = {"version": "of version {0}", "locale": "in {1}"}
_EDITION_FIELDS: Final = {"version": "is_latest", "locale": "is_default_locale"}
"""The fields of a page's version and language, and those that mark the ones shown by default.

A payload has the second one only if it is false.
"""


class LateFieldCache:
    """A cache of the names of the fields that only some sites have, such as `is_latest`.

    Args:
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            If False, the names are read again after 5 s.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # A tuple that is replaced as a whole, so that no thread combines one collection with the
        # fields of another.
        self._read: tuple[VectorIndex | None, float, frozenset[str]] = (None, 0.0, frozenset())

    def look_up(self, index: VectorIndex) -> frozenset[str]:
        """Return the names of the late fields that points of the collection may have."""
        known, read_at, names = self._read
        now = time.monotonic()
        if known is not index or not (self._lasting or now - read_at < _SERVER_AGE_S):
            names = index.find_late_fields()
            self._read = (index, now, names)
        return names


def set_scopes(
    index: VectorIndex,
    searches: Sequence[Search],
    fields: LateFieldCache,
    outlines: OutlineCache,
    site: SiteSettings,
) -> None:
    """Set the scope of each search and of its parts, and limit its filter to the scope."""
    known = fields.look_up(index).intersection(_EDITION_FIELDS.values())
    if not known:
        return
    for search in searches:
        read_at = find_edition(index, search.query, outlines, site)
        search.scope = choose_scope(search.query, known, read_at)
        for part in (search, *search.parts):
            part.where = _join(part.where, search.scope.where)
            part.scope = search.scope


def find_edition(
    index: VectorIndex, query: Query, outlines: OutlineCache, site: SiteSettings
) -> Edition:
    """Return the version and language of the page on which a question was asked.

    The default edition if the page is not known.
    """
    if query.source_url is None:
        return DEFAULT_EDITION
    wanted = find_site_path(query.source_url.partition("#")[0], site)
    if wanted is None:
        return DEFAULT_EDITION
    pages = outlines.look_up(index).pages
    found = (page.edition for page in pages if find_site_path(page.url, site) == wanted)
    return next(found, DEFAULT_EDITION)


def choose_scope(query: Query, known: frozenset[str], read_at: Edition) -> Scope:
    """Return the scope of a question about a site with versions or languages.

    Filters by document decide alone. Filters by version or language come next, then the page on
    which the question was asked, and then the latest version in the default language.

    Args:
        query: The question with its filters.
        known: Those of `is_latest` and `is_default_locale` that points of the collection have.
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
        elif mark in known:
            without.append(mark)
    notice = f"Only the pages {' '.join(named)} were searched, because you asked on one of them."
    where = PointFilter(tuple(fields), without=tuple(without))
    return Scope(where, notice if named else None)


def _join(where: PointFilter, scope: PointFilter) -> PointFilter:
    """Return a filter for points that match the filter of a query and that of its scope."""
    fields = dict(where.fields) | dict(scope.fields)
    return PointFilter(tuple(fields.items()), where.point_ids, scope.without)
