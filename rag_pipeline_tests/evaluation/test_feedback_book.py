"""Tests of the reports with a real question log, a real index and the real local model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import find_unanswered, group_unanswered, read_log
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings

ASKED = (
    "How far can a laser scanner measure in heavy fog?",
    "How far can a laser scanner measure in fog?",
    "What does a robot vacuum cleaner cost?",
)
LONG = ("fog " * 3000).strip()


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
    log.add_answers([make_logged("long", question=LONG, level="not_covered")])
    log.add_rating(Rating("a0", NOW, 1))
    log.close()
    return settings


def test_each_group_names_the_pages_that_a_search_finds(settings: Settings) -> None:
    entries = read_log(settings)
    assert entries is not None
    fog, *others = group_unanswered(settings, find_unanswered(entries))
    assert [one.answer_id for one in fog.answers] == ["a0", "a1"]
    assert re.fullmatch(r"Laser Scanners.* \((0\.\d\d|1\.00)\)", fog.pages[0])
    assert len(set(fog.pages)) == len(fog.pages)
    assert {one.questions for one in others} == {ASKED[2:], (LONG,)}
    # A search accepts no question of this length.
    assert [one.pages for one in others if one.questions == (LONG,)] == [()]


def test_a_log_that_is_switched_off_is_not_read(tmp_path: Path) -> None:
    assert read_log(make_settings(tmp_path, question_log_days=0)) is None
