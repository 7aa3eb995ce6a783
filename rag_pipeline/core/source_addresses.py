"""The rules of Docusaurus for the addresses of the pages of a source: docs, blog posts and pages.

The rules follow the source code of Docusaurus 3.10.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from rag_pipeline.core.docusaurus import join_permalink
from rag_pipeline.core.sources import SourceKind

if TYPE_CHECKING:
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


def build_source_permalink(place: str, site: SiteSettings, kind: SourceKind, slug: str) -> str:
    """Return the address of a blog post or of a page outside of the docs, percent-encoded.

    Args:
        place: Path of the file below the folder of its source.
        site: Base URL, route and trailing slash, from `locate_source`.
        kind: `BLOG` or `PAGES`.
        slug: Value of `slug` in the front matter; may be empty. It is relative to the route.

    Source:
        blogUtils.js of @docusaurus/plugin-content-blog, and urlUtils.js of @docusaurus/utils.
    """
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
