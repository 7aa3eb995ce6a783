"""Tests of the commands on a book whose site is described by its own docusaurus.config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = "export default {url: 'https://e.org', baseUrl: '/m/', presets: [['classic', {}]]};"
UNSET = {"SITE_BASE_URL": "", "SITE_TRAILING_SLASH": ""}
QUESTION = ("search", "joint", "--json")


@pytest.fixture
def run(command: Command, call: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """A function that runs the command on a book with a docusaurus.config and no site settings."""
    write_config(command, CONFIG)
    return lambda *arguments, **changes: call(*arguments, **(UNSET | changes))


def write_config(command: Command, text: str) -> None:
    """Write the configuration of the book's site."""
    (command.root / "docusaurus.config.js").write_text(text, encoding="utf-8")


def read_urls(outcome: Outcome) -> set[str]:
    """Return the start of each cited address, up to the folder of the docs."""
    return {chunk["citation"]["url"].partition("docs/")[0] for chunk in outcome.json["chunks"]}


def test_citations_lead_to_the_site_of_the_book(run: Callable[..., Outcome]) -> None:
    assert run("ingest").code == 0
    assert read_urls(run(*QUESTION)) == {"https://e.org/m/"}
    assert run("audit").code == 0


def test_a_changed_site_is_noticed_by_a_query_and_changed_by_an_ingest(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run("ingest").code == 0
    changed = {"SITE_BASE_URL": "/new/"}
    assert_one_line(run("search", "joint", **changed), 2, "SITE_BASE_URL=https://e.org/m/", "/new/")
    report = run("ingest", "--json", **changed).json
    assert (report["docs_processed"], report["texts_embedded"]) == (3, 0)
    assert report["chunks_updated"] == 9
    assert read_urls(run(*QUESTION, **changed)) == {"/new/"}
    write_config(command, CONFIG.replace("/m/", "/other/"))
    assert_one_line(run("search", "joint"), 2, "https://e.org/other/", "SITE_BASE_URL=/new/")


def test_a_query_without_the_docs_folder_keeps_the_site_of_the_index(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run("ingest").code == 0
    (command.root / "docs").rename(command.root / "moved")
    assert read_urls(run(*QUESTION)) == {"https://e.org/m/"}


@pytest.mark.parametrize("name", ["ingest", "chunks", "audit", "ingest-doc"])
def test_a_site_that_is_not_stated_literally_stops_the_command(
    command: Command, run: Callable[..., Outcome], name: str
) -> None:
    write_config(command, CONFIG.replace("'/m/'", "read()"))
    arguments = (name, "intro.md") if name == "ingest-doc" else (name,)
    outcome = run(*arguments, "--docs-dir", str(command.root / "docs"))
    assert_one_line(outcome, 2, "docusaurus.config.js", "`baseUrl` is computed in line 1", "SITE_")
