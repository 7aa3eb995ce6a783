"""Tests of the commands on a book whose site is described by its own docusaurus.config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.end_to_end.command import (
    CONFIG,
    Command,
    Outcome,
    assert_one_line,
    read_urls,
    write_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = ("search", "joint", "--json")


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
