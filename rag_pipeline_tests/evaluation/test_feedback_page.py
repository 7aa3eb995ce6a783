"""Tests of the page for authors about the question log."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.cli.app import app
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import (
    LogEntries,
    NearPage,
    QuestionCluster,
    UnansweredReport,
    render_page,
)
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HOSTILE = '<script>alert(1)</script>" onload="x'


class Checker(HTMLParser):
    """A parser that collects the tags of a page, and checks that each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def make_report(*clusters: QuestionCluster) -> UnansweredReport:
    """Return a report of questions that are grouped like this."""
    reasons = {key: 1 for cluster in clusters for key in cluster.by_reason}
    return UnansweredReport(9, 9, reasons, clusters)


def test_the_page_shows_levels_groups_sections_and_notes() -> None:
    answers = (
        make_logged("a", level="not_covered"),
        make_logged("b"),
        make_logged("c", level="closest_passages"),
        make_logged("d", kind="reply"),
    )
    ratings = (Rating("b", NOW, 1, ("wrong_section",), "It is about cars."),)
    cluster = QuestionCluster(
        tuple(f"How far is {number}?" for number in range(12)),
        tuple("abcdefghijklm"),
        {"not_covered": 12, "new_reason": 1},
        (NearPage("Lidar > Range", "https://book.example.org/lidar#range", 0.61),),
    )
    page = render_page(LogEntries(answers, ratings), make_report(cluster), "Tutor")
    shown = Checker(page)
    assert {"table", "h2", "a"} <= set(shown.tags)
    assert "script" not in shown.tags
    assert '<th scope="row">not fully answered</th><td data-label="value">2</td>' in page
    for text in (
        "How far is 7?",
        "and 4 more wordings",
        "13 times",
        "new_reason",
        "It is about cars.",
    ):
        assert text in page
    assert "How far is 8?" not in page
    assert "https://book.example.org/lidar#range" in shown.links
    assert "https://book.example.org/page#a" in shown.links
    assert all(link.startswith("https://") for link in shown.links)


def test_all_texts_are_escaped_and_only_complete_addresses_are_links() -> None:
    answer = make_logged(
        "a", question=HOSTILE, level=HOSTILE, sources=("javascript:alert(1)", HOSTILE, "/docs/a")
    )
    cluster = QuestionCluster(
        (HOSTILE, f"{HOSTILE} 2"), ("a",), {HOSTILE: 1}, (NearPage(HOSTILE, "javascript:1", 0.5),)
    )
    entries = LogEntries((answer,), (Rating("a", NOW, 1, (HOSTILE,), HOSTILE),))
    shown = Checker(render_page(entries, make_report(cluster), HOSTILE, HOSTILE))
    assert "script" not in shown.tags
    assert shown.handlers == []
    assert shown.links == []
    Checker(render_page(entries, None, HOSTILE, HOSTILE))


def test_a_log_without_questions_is_a_page_that_says_so() -> None:
    page = render_page(LogEntries((), ()), make_report(), "Tutor")
    Checker(page)
    assert "There are no questions yet" in page


def test_a_book_without_problems_says_so() -> None:
    page = render_page(LogEntries((make_logged(),), ()), UnansweredReport(0, 1, {}, ()), "Tutor")
    assert "Every question was answered" in page
    assert "No answer was rated 1 or 2" in page


def test_the_command_writes_the_page_with_and_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("docs_dir", "data_dir", "site_base_url"):
        monkeypatch.setenv(name.upper(), str(getattr(settings, name)))
    log = open_question_log(settings)
    assert log is not None
    question = "How far can a laser scanner measure in fog?"
    log.add_answers([make_logged("a", question=question, level="not_covered")])
    log.close()
    target = tmp_path / "out" / "page.html"
    without = CliRunner().invoke(app, ["report-feedback", "--html", str(target)])
    assert without.exit_code == 0, without.output
    assert str(target) in without.output
    assert "could not be grouped" in target.read_text()
    build_collection(settings, make_points(PAGES))
    found = CliRunner().invoke(app, ["report-feedback", "--json"])
    assert '"unanswered_count": 1' in found.output
    page = (settings.state_dir / "feedback.html").read_text()
    assert question in page
    assert "Laser Scanners" in page
    monkeypatch.setenv("QUESTION_LOG_DAYS", "0")
    assert CliRunner().invoke(app, ["report-feedback"]).exit_code == 1
