"""Tests of `rag-pipeline export-pages` on a small built site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line
from rag_pipeline_tests.ingestion.site.written_site import WrittenSite

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_pages_are_written_into_the_built_site(
    call: Callable[..., Outcome], command: Command
) -> None:
    site = WrittenSite(command.root / "website")
    site.sidebar = [site.add_page("a.md", "# A\n", "/book/docs/a", title="A")]
    build = site.finish()
    shown = call("export-pages", "--site", str(build))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == f"1 page written as Markdown, llms.txt and llms-full.txt in {build}\n"
    assert (build / "docs" / "a.md").read_text(encoding="utf-8") == "# A\n"
    machine = call("export-pages", "--site", str(build), "--json")
    assert machine.json["files"] == ["docs/a.md", "llms.txt", "llms-full.txt"]


def test_a_page_that_fails_is_reported_with_exit_code_1(
    call: Callable[..., Outcome], command: Command
) -> None:
    site = WrittenSite(command.root / "website")
    site.add_page("a.md", "---\ntitle: [\n---\n", "/book/docs/a")
    site.add_page("b.md", "B.", "/book/docs/b")
    shown = call("export-pages", "--site", str(site.finish()))
    assert shown.code == 1
    assert "FAILED docs/a.md" in shown.out


def test_a_site_that_is_not_built_is_an_error(call: Callable[..., Outcome]) -> None:
    assert_one_line(call("export-pages"), 2, "--site", "contains no built website", "make site")
