"""Tests that an ingestion says what changed on a site, and never loses pages by mistake."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.end_to_end.command import (
    API,
    CONFIG,
    Command,
    Outcome,
    assert_one_line,
    write_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SITE = ("ingest", "--site", ".", "--json")
PAGES = "For this, 3 pages are indexed again with an unchanged text: "


@pytest.fixture
def repository(command: Command) -> Iterator[None]:
    """A repository that contains the site and the folders beside it."""
    (command.root.parent / ".git").mkdir()
    yield
    (command.root.parent / ".git").rmdir()


def write_page(command: Command, *places: str) -> None:
    """Write a page with one sentence at each place below the site."""
    for place in places:
        path = command.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Call\n\nCall a joint.\n", encoding="utf-8")


def test_each_changed_setting_of_the_site_is_reported_with_its_pages_and_embeds_nothing(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run(*SITE).json["warnings"] == []
    config = CONFIG
    for old, new, changed in (
        ("/m/", "/n/", "SITE_BASE_URL was https://e.org/m/ and is https://e.org/n/"),
        ("e.org", "f.org", "SITE_BASE_URL was https://e.org/n/ and is https://f.org/n/"),
        ("{}]", "{docs: {routeBasePath: '/'}}]", "SITE_ROUTE_BASE_PATH was docs and is /"),
        ("url:", "trailingSlash: true, url:", "SITE_TRAILING_SLASH was open and is true"),
        (
            "url:",
            "markdown: {format: 'detect'}, url:",
            "SITE_MARKDOWN_FORMAT was mdx and is detect",
        ),
    ):
        config = config.replace(old, new)
        write_config(command, config)
        report = run(*SITE).json
        first, second = report["warnings"]
        assert first == f"The site changed: {changed}"
        assert second.startswith(PAGES)
        assert (report["docs_processed"], report["texts_embedded"]) == (3, 0)
    assert run(*SITE).json["warnings"] == []


def test_each_change_of_the_sources_is_reported_with_its_pages_and_embeds_only_new_texts(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run(*SITE).json["warnings"] == []
    write_page(command, "api/call.md")
    write_config(command, CONFIG.replace("presets", f"{API}, presets"))
    report = run(*SITE).json
    assert report["warnings"][0] == "The site changed: api is new"
    assert report["warnings"][2] == "For this, 1 page is new: api/call.md"
    assert report["texts_embedded"] == 1
    shutil.copytree(command.root / "docs", command.root / "versioned_docs" / "version-1.0")
    (command.root / "versions.json").write_text(json.dumps(["1.0"]), encoding="utf-8")
    report = run(*SITE).json
    setting, current, added, again, new = report["warnings"]
    assert setting == "The site changed: SITE_ROUTE_BASE_PATH was docs and is docs/next"
    assert current.startswith("The site changed: of docs@current, route_base_path was docs and is")
    assert added == "The site changed: docs@1.0 is new"
    assert again.startswith(PAGES)
    assert new.startswith("For this, 3 pages are new: versioned_docs/version-1.0/")
    assert (report["docs_processed"], report["docs_unchanged"]) == (6, 1)
    assert report["texts_embedded"] == 0
    french = "i18n/fr/docusaurus-plugin-content-docs/current"
    locales = "i18n: {defaultLocale: 'en', locales: ['en', 'fr']}"
    write_page(command, f"{french}/intro.md")
    write_config(command, CONFIG.replace("presets", f"{API}, {locales}, presets"))
    report = run(*SITE).json
    named = "The site changed: api:fr, docs@1.0:fr, docs@current:fr are new"
    assert named in report["warnings"]
    assert any(" and 2 more" in line for line in report["warnings"])
    shutil.rmtree(command.root / "versioned_docs")
    (command.root / "versions.json").unlink()
    report = run(*SITE).json
    gone = "The site changed: docs@1.0:en, docs@1.0:fr are not part of it any more"
    assert gone in report["warnings"]
    assert any(line.startswith("For this, 6 pages are removed: ") for line in report["warnings"])
    assert (report["docs_deleted"], report["texts_embedded"]) == (6, 0)
    write_config(command, CONFIG)
    report = run(*SITE).json
    assert report["docs_deleted"] == 5
    assert report["texts_embedded"] == 0
    assert run("audit").code == 0
    assert run(*SITE).json["warnings"] == []


def test_pages_that_an_option_of_the_site_leaves_out_are_reported(
    command: Command, run: Callable[..., Outcome]
) -> None:
    write_page(command, "docs/old/call.md")
    assert run(*SITE).json["docs_discovered"] == 4
    write_config(command, CONFIG.replace("{}]", "{docs: {exclude: ['old/**']}}]"))
    report = run(*SITE).json
    assert "The site changed: of docs, exclude was not set and is old/**" in report["warnings"]
    assert "For this, 1 page is removed: old/call.md" in report["warnings"]
    assert report["docs_deleted"] == 1
    write_config(command, CONFIG)
    report = run(*SITE).json
    assert "For this, 1 page is new: old/call.md" in report["warnings"]
    assert report["texts_embedded"] == 0


def test_a_settings_file_that_is_older_than_a_change_of_the_site_is_noted(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run("init").code == 0
    assert run("ingest", "--json").json["warnings"] == []
    shutil.copytree(command.root / "docs", command.root / "versioned_docs" / "version-1.0")
    (command.root / "versions.json").write_text(json.dumps(["1.0"]), encoding="utf-8")
    (warning,) = run("ingest", "--json").json["warnings"]
    assert warning.startswith(
        "rag-pipeline.toml differs from docusaurus.config.js in site_route_base_path, source "
        "docs@current, source docs@1.0. If the site was changed, write the file again with"
    )
    assert run("init", "--yes").code == 0
    assert run("ingest", "--json").json["docs_discovered"] == 6
    assert run("ingest", "--json").json["warnings"] == []


@pytest.mark.usefixtures("repository")
def test_a_docs_folder_that_is_a_link_has_the_same_pages_as_the_folder_itself(
    command: Command, run: Callable[..., Outcome]
) -> None:
    docs, real = command.root / "docs", command.root.parent / "real"
    write_page(command, "other/_part.mdx")
    page = "import Part from './_part.mdx'\n\n# Page\n\n<Part />\n"
    (command.root / "other" / "page.mdx").write_text(page, encoding="utf-8")
    docs.rename(real)
    docs.symlink_to(real)
    (real / "other").symlink_to(command.root / "other")
    assert run("init").code == 0
    assert run("init", "--check").code == 0
    report = run(*SITE).json
    assert (report["docs_discovered"], report["failures"], report["warnings"]) == (4, [], [])
    chunks = run("search", "Call a joint.", "--json").json["chunks"]
    urls = {chunk["citation"]["url"].partition("#")[0] for chunk in chunks}
    assert "https://e.org/m/docs/other/page" in urls
    docs.unlink()
    real.rename(docs)
    report = run(*SITE).json
    assert (report["docs_unchanged"], report["docs_deleted"]) == (4, 0)


@pytest.mark.usefixtures("repository")
def test_lost_sources_outside_the_site_are_noticed(
    command: Command, run: Callable[..., Outcome]
) -> None:
    outside = command.root.parent / "shared"
    outside.mkdir()
    (outside / "call.md").write_text("# Call\n\nCall a joint.\n", encoding="utf-8")
    plugin = API.replace("path: 'api'", "path: '../shared'")
    write_config(command, CONFIG.replace("presets", f"{plugin}, presets"))
    assert run(*SITE).json["docs_discovered"] == 4
    for arguments in (("ingest",), ("audit",), ("audit", "--repair"), ("validate",)):
        outcome = run(*arguments)
        assert_one_line(outcome, 2, "SOURCES", "api/call.md", "rag-pipeline init", "--rebuild")
    report = run(*SITE).json
    assert (report["docs_unchanged"], report["docs_deleted"]) == (4, 0)
    (outside / "call.md").unlink()
    (outside / "other.md").write_text("# Other\n\nA joint.\n", encoding="utf-8")
    assert run(*SITE).json["docs_deleted"] == 1
    assert run("ingest", "--rebuild", "--json").json["docs_discovered"] == 3
    assert run("audit").code == 0
    validated = run("validate", "--json")
    assert validated.json["findings"] == [], validated


def test_a_site_that_is_not_read_completely_loses_no_source(
    command: Command, run: Callable[..., Outcome]
) -> None:
    write_page(command, "api/call.md", "blog/2026-01-01-news.md")
    write_config(command, CONFIG.replace("presets", f"{API}, presets"))
    assert run(*SITE).json["docs_discovered"] == 5
    computed = API.replace("'api'", "find()")
    write_config(command, CONFIG.replace("presets", f"{computed}, presets"))
    outcome = run(*SITE)
    assert outcome.code == 2
    last = outcome.err.splitlines()[-1]
    assert "the site was not read completely" in last
    assert "the index has pages of api, which would be removed" in last
    assert "--rebuild" in last
    assert run("ingest", "--json", SOURCES="[]").json["docs_deleted"] == 2
