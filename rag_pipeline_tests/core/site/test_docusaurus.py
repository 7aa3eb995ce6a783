"""File names, page addresses and heading ids.

The tests of parsing compare the results with a real build of a site.
"""

from __future__ import annotations

import pytest
from github_slugger import GithubSlugger
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.site.addresses import build_doc_permalink
from rag_pipeline.core.site.docusaurus import (
    HeadingIds,
    link_to_anchor,
    link_within_site,
    make_slug,
    split_custom_id,
    strip_number_prefix,
)


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("01-intro", "intro"),
        ("3 - spaced", "spaced"),
        ("003--double", "double"),
        ("4.dotted", "dotted"),
        ("8_v1", "v1"),
        ("5dots", "5dots"),
        ("6-", "6-"),
        ("1.1-foo", "1.1-foo"),
        ("2021-11-02-post", "2021-11-02-post"),
        ("7-0-zero", "7-0-zero"),
        ("intro", "intro"),
        ("\N{FULLWIDTH DIGIT ONE}-name", "\N{FULLWIDTH DIGIT ONE}-name"),
    ],
)
def test_a_number_prefix_is_stripped_but_a_version_or_date_is_kept(
    name: str, stripped: str
) -> None:
    assert strip_number_prefix(name) == stripped


@pytest.mark.parametrize(
    ("trailing_slash", "url"),
    [(None, "/b/docs/guide/"), (True, "/b/docs/guide/"), (False, "/b/docs/guide")],
)
def test_the_setting_decides_about_the_trailing_slash(
    *, trailing_slash: bool | None, url: str
) -> None:
    site = SiteSettings("/b/", "docs", trailing_slash)
    assert build_doc_permalink("guide/index.md", site, None) == url


def test_the_address_of_the_base_url_keeps_its_trailing_slash() -> None:
    assert (
        build_doc_permalink("index.md", SiteSettings("/b/", "", trailing_slash=False), None)
        == "/b/"
    )
    assert build_doc_permalink("index.md", SiteSettings("/", "", trailing_slash=False), None) == "/"


def test_a_base_url_may_contain_scheme_and_host() -> None:
    site = SiteSettings("https://x.github.io/b/", "docs", trailing_slash=False)
    assert build_doc_permalink("a/b.md", site, None) == "https://x.github.io/b/docs/a/b"


def test_addresses_and_anchors_are_percent_encoded() -> None:
    site = SiteSettings("/", "docs")
    assert build_doc_permalink("a b/\u00e9 #1?.md", site, None) == "/docs/a%20b/%C3%A9%20%231%3F"
    assert link_to_anchor("/docs/a", "\u00fcber-uns") == "/docs/a#%C3%BCber-uns"
    assert link_to_anchor("/docs/a", None) == "/docs/a"


@pytest.mark.parametrize(
    ("slug", "url"),
    [
        ("/x/y", "/docs/x/y"),
        ("x", "/docs/f/x"),
        ("./x/", "/docs/f/x/"),
        ("../x", "/docs/x"),
        ("../../../x", "/docs/x"),
        ("/", "/docs/"),
    ],
)
def test_a_relative_slug_is_resolved_against_the_folder(slug: str, url: str) -> None:
    assert build_doc_permalink("01-f/02-a.md", SiteSettings("/", "docs"), None, slug=slug) == url


def test_number_prefixes_are_kept_on_request() -> None:
    site = SiteSettings("/", "docs")
    assert build_doc_permalink("01-f/02-a.md", site, None, strip_numbers=False) == "/docs/01-f/02-a"


@pytest.mark.parametrize(
    ("heading", "parts"),
    [
        ("Text {#my-id}", ("Text", "my-id")),
        ("Text {# my id }", ("Text", "my id")),
        ("Two {#one} {#two}", ("Two {#one}", "two")),
        ("Text {#my-id} more", ("Text {#my-id} more", None)),
        ("Text {#}", ("Text {#}", None)),
    ],
)
def test_a_custom_id_counts_only_at_the_end_of_a_heading(
    heading: str, parts: tuple[str, str | None]
) -> None:
    assert split_custom_id(heading) == parts


def test_repeated_headings_get_the_next_number_that_is_not_taken() -> None:
    ids = HeadingIds()
    texts = ["Foo", "foo", "Foo-1", "FOO", "Foo", "constructor", "__proto__"]
    assert [ids.next_id(2, text, None) for text in texts] == [
        "foo",
        "foo-1",
        "foo-1-1",
        "foo-2",
        "foo-3",
        "constructor",
        "__proto__",
    ]


def test_a_level_1_heading_has_no_id_but_counts_as_a_repeat() -> None:
    ids = HeadingIds()
    assert ids.next_id(1, "Foo", None) is None
    assert ids.next_id(2, "Foo", None) == "foo-1"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12))
def test_slugs_equal_those_of_github_slugger(text: str) -> None:
    assert make_slug(text) == GithubSlugger().slug(text)


@given(st.lists(st.sampled_from(["a", "A", "a-1", "a 1", "a-1-1", ""]), max_size=12))
def test_ids_of_repeated_headings_equal_those_of_github_slugger(texts: list[str]) -> None:
    ids, slugger = HeadingIds(), GithubSlugger()
    assert [ids.next_id(2, text, None) for text in texts] == [
        slugger.slug(text) or None for text in texts
    ]


@pytest.mark.parametrize(
    ("base_url", "url", "link"),
    [
        ("/book/", "/book/docs/a?x=1#b", "/book/docs/a?x=1#b"),
        ("/book/", "/book", "/book"),
        ("/book/", "https://any.org/book/docs/a#b", "/book/docs/a#b"),
        ("/my book/", "/my%20book/docs/a", "/my%20book/docs/a"),
        ("/", "https://any.org", "/"),
        ("/", "/docs/a", "/docs/a"),
        ("https://x.org/book/", "https://X.org/book/docs/a#b", "https://X.org/book/docs/a#b"),
        ("https://x.org/book/", "/book/docs/a", "/book/docs/a"),
        ("https://x.org/", "https://x.org", "https://x.org"),
        ("/book/", "/bookshop/a", None),
        ("/book/", "/book/../a", None),
        ("/book/", "/book/%2e%2e/a", None),
        ("/book/", "/other", None),
        ("/book/", "//evil.org/book/a", None),
        ("/", "//evil.org/a", None),
        ("/", "https://any.org//evil.org/a", None),
        ("/", "/%2Fevil.org", None),
        ("/", "/\\evil.org", None),
        ("/", "/%5Cevil.org", None),
        ("/", "/\t/evil.org", None),
        ("/", "javascript:alert(1)", None),
        ("/", "https:/evil.org/a", None),
        ("/", "https://[x", None),
        ("https://x.org/book/", "https://evil.org/book/a", None),
        ("https://x.org/book/", "https://x.org@evil.org/book/a", None),
        ("https://x.org/book/", "https://x.org/other", None),
    ],
)
def test_a_link_cannot_leave_the_site(base_url: str, url: str, link: str | None) -> None:
    assert link_within_site(url, SiteSettings(base_url)) == link
