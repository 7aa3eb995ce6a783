"""Tests of the setting SOURCES: reading, writing, and what is wrong with a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.site.addresses import (
    describe_source,
    locate_source,
    place_entries,
    read_sources,
)
from rag_pipeline.core.sources import Source, SourceKind, find_source

DOCS = {"name": "docs", "folder": "docs", "prefix": "", "route_base_path": "docs"}
FRENCH = {
    "name": "docs",
    "folder": "i18n/fr/docs/current",
    "fallback": "docs",
    "route_base_path": "docs",
    "base_url": "fr/",
    "locale": "fr",
    "is_default_locale": False,
}


def test_entries_of_a_file_are_read_and_written_again(tmp_path: Path) -> None:
    sources = read_sources(place_entries([DOCS, FRENCH], tmp_path)) or ()
    assert [describe_source(source, tmp_path) for source in sources] == [DOCS, FRENCH]
    assert sources[1].prefix == "i18n/fr/docs/current/"
    assert sources[1].fallback == tmp_path / "docs"
    assert [str(source) for source in sources] == ["docs", "docs:fr"]


def test_the_environment_has_the_sources_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCES", json.dumps([DOCS, FRENCH]))
    sources = load_settings().sources or ()
    assert [source.folder for source in sources] == [Path("docs"), Path("i18n/fr/docs/current")]
    monkeypatch.setenv("SOURCES", "")
    assert load_settings().sources is None


def test_the_longest_prefix_decides_the_source_of_a_document() -> None:
    entries = [DOCS, DOCS | {"name": "api", "prefix": "api/", "route_base_path": "api"}]
    docs, api = read_sources(entries) or ()
    assert find_source((docs, api), "api/a.md") is api
    assert find_source((docs, api), "other/api/a.md") is docs
    assert find_source((api,), "a.md") is None


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [("", "https://e.org/m/"), ("fr/", "https://e.org/m/fr/"), ("/f/", "https://e.org/f/")],
)
def test_the_base_url_of_a_locale_is_relative_to_that_of_the_site(
    base_url: str, expected: str
) -> None:
    source = Source(name="docs", folder=Path("d"), prefix="", base_url=base_url)
    assert locate_source(SiteSettings("https://e.org/m/"), source).base_url == expected


WRONG = {
    "no JSON": ("[", "not valid JSON"),
    "no list": ("{}", "not a list of sources"),
    "no mapping": ('["docs"]', "source 1 is not a mapping"),
    "no name": ('[{"folder": "docs"}]', "source 1 lacks `name`"),
    "unknown key": ('[{"name": "a", "folder": "a", "path": "b"}]', "a has the unknown key `path`"),
    "wrong type": ('[{"name": "a", "folder": "a", "is_latest": "no"}]', "not true or false"),
    "no patterns": ('[{"name": "a", "folder": "a", "exclude": "b"}]', "not a list of texts"),
    "large pattern": ('[{"name": "a", "folder": "a", "exclude": ["{1..5000}"]}]', "alternatives"),
    "unknown kind": ('[{"name": "a", "folder": "a", "kind": "b"}]', "It is docs, blog, pages"),
    "outside the site": ('[{"name": "a", "folder": "../a"}]', 'outside the site.*prefix = "a/"'),
    "open prefix": ('[{"name": "a", "folder": "a", "prefix": "b"}]', 'Write prefix = "b/"'),
    "same name": (json.dumps([DOCS, DOCS]), "docs .* and docs .* have the same name"),
    "same ids": (json.dumps([DOCS, DOCS | {"name": "api"}]), "have the same `prefix`"),
    "same address": (
        json.dumps([DOCS, DOCS | {"name": "api", "prefix": "api/"}]),
        "docs .* and api .* have the same address /docs. Give one of them another",
    ),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_one_message(
    monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    monkeypatch.setenv("SOURCES", value)
    with pytest.raises(ConfigurationError, match=f"(?s)^SOURCES: .*{message}"):
        load_settings()


def test_a_blog_and_pages_may_have_the_address_of_the_docs() -> None:
    blog = {"name": "blog", "folder": "blog", "kind": "blog"}
    sources = read_sources([DOCS | {"route_base_path": "/"}, blog]) or ()
    assert [source.kind for source in sources] == [SourceKind.DOCS, SourceKind.BLOG]
    assert [source.route_base_path for source in sources] == ["", ""]
