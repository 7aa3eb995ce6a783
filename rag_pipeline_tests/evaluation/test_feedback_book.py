"""Tests of the reports with a real question log, a real index and the real local model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.ids import DocId, hash_text
from rag_pipeline.core.models import DiscoveredDoc, SiteSettings
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import (
    LogEntries,
    describe_unanswered,
    draft_entry,
    group_unanswered,
    read_log,
)
from rag_pipeline.evaluation.pages import to_text
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.core.settings import Settings

ASKED = (
    "How far can a laser scanner measure in heavy fog?",
    "How far can a laser scanner measure in fog?",
    "What does a robot vacuum cleaner cost?",
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the tiny book with its index, and a log with three unanswered questions."""
    settings = make_settings(tmp_path_factory.mktemp("book"))
    build_collection(settings, make_points(PAGES))
    log = open_question_log(settings)
    assert log is not None
    log.add_answers(
        [
            make_logged(f"a{number}", question=text, kind="refused", level="not_covered")
            for number, text in enumerate(ASKED)
        ]
    )
    log.add_answers([make_logged("long", question="fog " * 3000, level="not_covered")])
    log.add_rating(Rating("a0", NOW, 1))
    log.close()
    return settings


def parse_pages() -> list[ParsedDoc]:
    """Return the parsed documents of the tiny book."""
    return [
        parse_doc(
            DiscoveredDoc(DocId(path), Path(path), hash_text(source), len(source.encode()), 0),
            SiteSettings("/book/"),
            source.encode(),
        )
        for path, source in PAGES.items()
    ]


def test_each_group_names_the_pages_that_a_search_finds(settings: Settings) -> None:
    entries = read_log(settings)
    assert entries is not None
    report = group_unanswered(settings, entries)
    fog, *others = report.clusters
    assert fog.answer_ids == ("a0", "a1")
    assert fog.pages[0].place.startswith("Laser Scanners")
    assert 0 < fog.pages[0].similarity <= 1
    assert len({page.url for page in fog.pages}) == len(fog.pages)
    assert {one.answer_ids for one in others} == {("a2",), ("long",)}
    assert "Laser Scanners" in to_text(describe_unanswered(report))


def test_a_question_that_is_too_long_for_a_search_has_no_nearest_pages(settings: Settings) -> None:
    entries = read_log(settings)
    assert entries is not None
    pages = {one.answer_ids: one.pages for one in group_unanswered(settings, entries).clusters}
    assert pages["long",] == ()


def test_a_drafted_entry_expects_the_sections_that_the_answer_cited() -> None:
    pages = parse_pages()
    page = next(one.document for one in pages if one.document.title == "Laser Scanners")
    rain = next(one for one in page.headings if one.text == "Rain and glass")
    sources = (f"{page.url}#{rain.anchor}", page.url, f"{page.url}/", "/book/removed#a")
    logged = make_logged(
        question="And in rain?", search_question="  Laser scanners: and\nin rain?", sources=sources
    )
    entry = draft_entry(LogEntries((logged,), ()), "a1", pages)
    assert entry["question"] == "Laser scanners: and in rain?"
    assert entry["id"] == "laser-scanners-and-in-rain"
    assert entry["expected"] == [
        {"doc_path": "module-2/2.1-sensors/lidar.md", "section_heading": "Rain and glass"},
        {"doc_path": "module-2/2.1-sensors/lidar.md", "section_heading": "Laser Scanners"},
    ]


def test_a_log_that_is_switched_off_is_not_read(tmp_path: Path) -> None:
    assert read_log(make_settings(tmp_path, question_log_days=0)) is None
