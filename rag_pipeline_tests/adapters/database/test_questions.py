"""Tests of the question log, each with an SQLite file and with a Postgres server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.database.questions import SqlQuestionLog, open_question_log
from rag_pipeline.core.errors import QuestionLogError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline_tests.adapters.database.databases import (
    NOW,
    make_log_settings,
    make_logged,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from rag_pipeline.core.settings import Settings


@pytest.fixture(params=["sqlite", "postgres"])
def log_settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings with an empty question log in each kind of database."""
    if request.param == "sqlite":
        return make_log_settings(tmp_path)
    request.getfixturevalue("engine")  # empties the database
    return make_log_settings(tmp_path, question_log_url=request.getfixturevalue("address"))


def open_log(settings: Settings) -> SqlQuestionLog:
    """Return the log that the settings name."""
    log = open_question_log(settings)
    assert isinstance(log, SqlQuestionLog)
    return log


@pytest.fixture
def log(log_settings: Settings) -> Iterator[SqlQuestionLog]:
    """An empty question log."""
    with open_log(log_settings) as opened:
        yield opened


def test_an_answer_is_read_as_it_was_written_also_by_another_process(
    log: SqlQuestionLog, log_settings: Settings
) -> None:
    answers = [
        make_logged("a1", model="m", search_question="node ROS"),
        make_logged("a2", question=None, sources=(), confidence=None),
    ]
    log.add_answers(answers)
    with open_log(log_settings) as other:
        assert other.read_answers() == answers


def test_texts_that_a_database_refuses_are_stored_in_a_readable_form(log: SqlQuestionLog) -> None:
    log.add_answers([make_logged(question="a\0b\ud800c 🤖 'quoted' -- %s")])
    assert log.read_answers()[0].question == "a\ufffdb?c 🤖 'quoted' -- %s"


def test_a_second_answer_with_the_same_id_replaces_the_first_and_keeps_its_rating(
    log: SqlQuestionLog,
) -> None:
    log.add_answers([make_logged(), make_logged(kind="refused")])
    assert log.add_rating(Rating("a1", NOW, 5))
    log.add_answers([make_logged(kind="reply")])
    assert [one.kind for one in log.read_answers()] == ["reply"]
    assert len(log.read_ratings()) == 1


def test_a_later_rating_replaces_an_earlier_one(log: SqlQuestionLog) -> None:
    log.add_answers([make_logged()])
    assert log.add_rating(Rating("a1", NOW, 5, ("helpful",)))
    later = Rating("a1", NOW + timedelta(minutes=1), 1, ("wrong_section",), "It is another node.")
    assert log.add_rating(later)
    assert log.read_ratings() == [later]


def test_an_unknown_answer_cannot_be_rated(log: SqlQuestionLog) -> None:
    assert not log.add_rating(Rating("unknown", NOW, 5))
    assert log.read_ratings() == []


def test_answers_and_their_ratings_are_read_from_the_oldest_answer_on(log: SqlQuestionLog) -> None:
    old = make_logged("old", asked_at=NOW - timedelta(days=2))
    log.add_answers([make_logged("new"), old])
    log.add_rating(Rating("old", NOW, 1))
    log.add_rating(Rating("new", NOW, 2))
    assert [one.answer_id for one in log.read_answers()] == ["old", "new"]
    assert [one.answer_id for one in log.read_ratings()] == ["old", "new"]


def test_deleting_removes_answers_with_their_ratings(log: SqlQuestionLog) -> None:
    log.add_answers([make_logged("a1"), make_logged("a2"), make_logged("b", conversation_id="c2")])
    for answer_id in ("a1", "a2", "b"):
        log.add_rating(Rating(answer_id, NOW, 3))
    assert log.delete(answer_id="b") == 1
    assert log.delete(answer_id="b") == 0
    assert log.delete(conversation_id="c1") == 2
    assert log.read_answers() == log.read_ratings() == []
    with pytest.raises(ValueError, match="either"):
        log.delete()


def test_expired_answers_are_deleted_when_the_log_is_opened(log_settings: Settings) -> None:
    old = make_logged("old", asked_at=NOW - timedelta(days=91))
    with open_log(log_settings) as first:
        first.add_answers([old, make_logged("new")])
        first.add_rating(Rating("old", NOW, 3))
    with open_log(log_settings) as second:
        assert [one.answer_id for one in second.read_answers()] == ["new"]
        assert second.read_ratings() == []


def test_several_openings_at_once_create_the_tables_once(log_settings: Settings) -> None:
    logs = [open_log(log_settings) for _ in range(6)]

    def write(number: int) -> None:
        for turn in range(5):
            logs[number].add_answers([make_logged(f"{number}-{turn}")])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    assert len(logs[0].read_answers()) == 30
    for one in logs:
        one.close()


def test_the_logs_of_two_books_in_one_database_are_separate(
    address: str, engine: Engine, tmp_path: Path
) -> None:
    del engine  # which has emptied the database
    logs = [
        open_log(make_log_settings(tmp_path, database_url=address, state_name=name))
        for name in ("one", "two")
    ]
    logs[0].add_answers([make_logged("a1")])
    assert not logs[1].add_rating(Rating("a1", NOW, 5))
    assert (logs[1].delete(answer_id="a1"), logs[1].read_answers()) == (0, [])
    assert logs[0].read_answers() == [make_logged("a1")]
    for log in logs:
        log.close()


@pytest.mark.parametrize("way", ["deletion", "retention"])
def test_deleted_and_expired_questions_are_erased_from_all_files(tmp_path: Path, way: str) -> None:
    settings = make_log_settings(tmp_path)
    with open_log(settings) as log:
        asked_at = NOW - timedelta(days=0 if way == "deletion" else 91)
        log.add_answers([make_logged("a1", question="my private question", asked_at=asked_at)])
        log.add_rating(Rating("a1", NOW, 1, (), "my private note"))
        log.add_answers([make_logged("a2", question="another question")])
        if way == "deletion":
            log.delete(answer_id="a1")
            found = read_all(settings)  # also while the log is open
        else:
            log.close()
            with open_log(settings) as later:
                later.read_answers()
                found = read_all(settings)
    for stored in (found, read_all(settings)):
        assert b"my private" not in stored
        assert b"another question" in stored


def read_all(settings: Settings) -> bytes:
    """Return the bytes of all files of the database."""
    return b"".join(path.read_bytes() for path in settings.state_dir.glob(f"{DATABASE_NAME}*"))


def test_an_unreachable_postgres_is_named_without_the_password(tmp_path: Path) -> None:
    url = "postgresql://tutor:hidden-word@127.0.0.1:1/robotutor"  # pragma: allowlist secret
    log = open_log(make_log_settings(tmp_path, question_log_url=url))
    with pytest.raises(QuestionLogError) as caught:
        log.add_answers([replace(make_logged(), question="private")])
    for shown in (str(caught.value), repr(caught.value.__cause__)):
        assert "hidden-word" not in shown
        assert "private" not in shown
