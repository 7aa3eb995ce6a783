"""Tests that the built site has a Markdown file of each page, in the order of its navigation."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline_tests.site.proof import BuiltSite

pytestmark = pytest.mark.site

GENERATED_LISTS: Final = re.compile(r"docs/tags(/|$)")
"""Lists of pages by tag, which have no Markdown source."""

CODE: Final = re.compile(r"^([ \t]*)(`{3,}|~{3,}).*?^[ \t]*\2|`[^`\n]*`", re.DOTALL | re.MULTILINE)


class _NextLink(HTMLParser):
    """Reader of the link to the next page at the end of a page."""

    href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and "pagination-nav__link--next" in (values.get("class") or ""):
            self.href = values.get("href")


def follow_next_links(site: BuiltSite, first: str) -> Iterator[str]:
    """Yield the path of a page and of the pages after it, below the site's base URL."""
    path: str | None = first
    while path is not None:
        name = unquote(path).removeprefix(site.base_path).strip("/")
        yield name
        reader = _NextLink()
        reader.feed((site.folder / f"{name}.html").read_text(encoding="utf-8"))
        path = reader.href


def listed_pages(site: BuiltSite) -> list[str]:
    """Return the pages that `llms.txt` lists, without `.md`, below the site's base URL."""
    text = (site.folder / "llms.txt").read_text(encoding="utf-8")
    targets = re.findall(r"^- \[.*?(?<!\\)\]\((\S+?)\.md\)", text, re.MULTILINE)
    return [unquote(urlsplit(target).path).removeprefix(site.base_path) for target in targets]


def test_each_page_of_the_sitemap_has_a_markdown_file(built_site: BuiltSite) -> None:
    sitemap = (built_site.folder / "sitemap.xml").read_text(encoding="utf-8")
    found = re.findall(r"<loc>(.*?)</loc>", sitemap)
    names = [unquote(urlsplit(url).path).removeprefix(built_site.base_path) for url in found]
    pages = [name for name in names if name.startswith("docs/")]
    pages = [name.strip("/") for name in pages if not GENERATED_LISTS.match(name)]
    assert len(pages) > 100
    assert [name for name in pages if not (built_site.folder / f"{name}.md").is_file()] == []
    assert set(listed_pages(built_site)) == set(pages)


def test_the_index_has_the_order_in_which_readers_turn_the_pages(built_site: BuiltSite) -> None:
    listed = listed_pages(built_site)
    assert listed == list(follow_next_links(built_site, listed[0]))


def test_the_links_of_the_markdown_files_lead_to_pages_and_anchors(built_site: BuiltSite) -> None:
    links = [
        (file.relative_to(built_site.folder).as_posix(), target)
        for file in sorted(built_site.folder.rglob("*.md"))
        for target in re.findall(r"\]\((/[^)\s]*)", CODE.sub("", file.read_text(encoding="utf-8")))
    ]
    assert len(links) > 100
    assert [link for link in links if not leads_to_a_place(built_site, link[1])] == []


def leads_to_a_place(site: BuiltSite, target: str) -> bool:
    """Return True if the file of an address exists, and the anchor on its page if it has one."""
    path, _, anchor = target.partition("#")
    file = site.find_file(path)
    return file is not None and (not anchor or unquote(anchor) in site.page(file).ids)
