"""The rules of Docusaurus for the addresses of the pages of a source: docs, blog posts and pages.

The rules follow the source code of Docusaurus 3.10.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from rag_pipeline.core.site.docusaurus import build_permalink, find_site_path, join_permalink
from rag_pipeline.core.sources import SourceKind, find_place, strips_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.sources import Source

_DATED: Final = re.compile(
    r"(?P<folder>.*)(?P<date>[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2})[-/]?(?P<text>.*?)"
    r"(?:/index)?.mdx?"
)
_POST_END: Final = re.compile(r"(?:/index)?\.mdx?$")
_INDEX_PAGE: Final = re.compile(r"(^|.*/)index\.mdx?", re.IGNORECASE)
_PAGE_END: Final = re.compile(r"\.mdx?$")


def locate_source(site: SiteSettings, source: Source | None) -> SiteSettings:
    """Return the settings for the addresses of a source's pages from those of the site."""
    if source is None:
        return site
    base_url = urljoin(site.base_url, source.base_url)
    return replace(site, base_url=base_url, route_base_path=source.route_base_path)


def find_source_at(sources: Iterable[Source], url: str, site: SiteSettings) -> Source | None:
    """Return the source of the page at an address: the one with the longest route above the page.

    Args:
        sources: The sources of the site.
        url: The address. It can have a query and an anchor.
        site: Base URL of the site.
    """
    path = find_site_path(url.partition("#")[0].partition("?")[0], site)
    if path is None:
        return None
    routes: dict[Source, str] = {}
    for source in sources:
        located = locate_source(site, source)
        route = find_site_path(join_permalink(located, ""), site)
        if route is not None and f"{path}/".startswith(f"{route}/" if route else ""):
            routes[source] = route
    return max(routes, key=lambda source: len(routes[source]), default=None)


def build_doc_permalink(
    doc_id: str,
    site: SiteSettings,
    source: Source | None,
    *,
    front_matter_id: str | None = None,
    slug: str = "",
    strip_numbers: bool = True,
) -> str:
    """Return the address of a document of any source, percent-encoded.

    Args:
        doc_id: Id of the document.
        site: Settings of the site.
        source: The document's source, if the site has several.
        front_matter_id: Value of `id` in the front matter, if any.
        slug: Value of `slug` in the front matter; may be empty.
        strip_numbers: Value of `parse_number_prefixes` in the front matter. A source can keep
            numbers in all its addresses.
    """
    place, located = find_place(source, doc_id), locate_source(site, source)
    if source is not None and source.kind is not SourceKind.DOCS:
        return build_source_permalink(place, located, source.kind, slug)
    return build_permalink(
        place,
        located,
        front_matter_id=front_matter_id,
        slug=slug,
        strip_numbers=strip_numbers and strips_numbers(source),
    )


def build_source_permalink(place: str, site: SiteSettings, kind: SourceKind, slug: str) -> str:
    """Return the address of a blog post or of a page outside of the docs, percent-encoded.

    Args:
        place: Path of the file below the folder of its source.
        site: Base URL, route and trailing slash, from `locate_source`.
        kind: `BLOG`, `PAGES` or `API`. The only page of an `API` source is at its route.
        slug: Value of `slug` in the front matter; may be empty. It is relative to the route.

    Source:
        blogUtils.js of @docusaurus/plugin-content-blog, and urlUtils.js of @docusaurus/utils.
    """
    if kind is SourceKind.API:
        return join_permalink(site, "")
    if not slug:
        slug = _find_post_slug(place) if kind is SourceKind.BLOG else _find_page_slug(place)
    return join_permalink(site, slug)


def name_post(place: str) -> str:
    """Return the name of a blog post's file, without date and extension: its title if it has none.

    For a post without a date, the name includes its folders.
    """
    dated = _DATED.fullmatch(place)
    return dated["text"] if dated else _POST_END.sub("", place)


def _find_post_slug(place: str) -> str:
    dated = _DATED.fullmatch(place)
    if dated is None:
        return _POST_END.sub("", place)
    return f"{dated['date'].replace('-', '/')}/{dated['folder']}{dated['text']}"


def _find_page_slug(place: str) -> str:
    index = _INDEX_PAGE.fullmatch(place)
    return index[1] if index else _PAGE_END.sub("", place)
