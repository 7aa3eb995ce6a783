"""Tests of the reports with a real question log, a real index and the real local model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.errors import QuestionLogError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline.evaluation.feedback import describe_unanswered, read_log
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
    found: Any = describe_unanswered(settings, read_log(settings))
    rows = {row["question"]: row for row in found["groups"]}
    assert (found["unanswered_count"], found["grouped_count"]) == (4, 4)
    fog = rows.pop(ASKED[0])
    assert (fog["asked"], fog["other wordings"]) == (2, ASKED[1])
    pages = fog["nearest sections"].split("; ")
    assert re.fullmatch(r"Laser Scanners.* \((0\.\d\d|1\.00)\)", pages[0])
    assert len(set(pages)) == len(pages)
    long = next(question for question in rows if question.startswith("fog "))
    assert set(rows) == {ASKED[2], long}
    assert rows[long]["nearest sections"] == ""  # a search accepts no question of this length


def test_a_log_that_is_switched_off_is_not_read(tmp_path: Path) -> None:
    assert read_log(make_settings(tmp_path, question_log_days=0)) is None


def test_a_damaged_log_stays_in_its_place_and_is_one_clear_error(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    settings.state_dir.mkdir(parents=True)
    (settings.state_dir / DATABASE_NAME).write_bytes(b"no database " * 1000)
    with pytest.raises(
        QuestionLogError, match=r"cannot be read: .*not a database.*backup"
    ) as caught:
        read_log(settings)
    assert str(tmp_path) not in caught.value.public_message
    assert not list(settings.state_dir.glob("*.damaged-*"))
