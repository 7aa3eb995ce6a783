"""Tests of the writer of the question log, with a real SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.errors import QuestionLogError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline.serving import log_writer
from rag_pipeline.serving.log_writer import LogWriter
from rag_pipeline_tests.adapters.database.databases import NOW, make_log_settings, make_logged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.adapters.database.questions import SqlQuestionLog
    from rag_pipeline.core.protocols import LoggedAnswer


def open_log(folder: Path) -> SqlQuestionLog:
    """Return the question log of a book in the folder."""
    log = open_question_log(make_log_settings(folder))
    assert log
    return log


def test_closing_writes_all_queued_answers(tmp_path: Path) -> None:
    failures: list[Exception] = []
    with LogWriter(open_log(tmp_path), failures.append) as writer:
        for number in range(1200):
            writer.record(make_logged(f"a{number}"))
    writer.close()
    log = open_log(tmp_path)
    assert len(log.read_answers()) == 1200
    assert failures == []
    log.close()


def test_a_queued_answer_can_be_rated_and_deleted_at_once(tmp_path: Path) -> None:
    with LogWriter(open_log(tmp_path), lambda _: None) as writer:
        for number in range(50):
            writer.record(make_logged(f"a{number}"))
            assert writer.rate(Rating(f"a{number}", NOW, 5))
        assert not writer.rate(Rating("unknown", NOW, 5))
        assert writer.delete(answer_id="a1") == 1
        assert writer.delete(conversation_id="c1") == 49


def test_a_log_that_cannot_be_written_loses_answers_and_counts_them(tmp_path: Path) -> None:
    state_dir = make_log_settings(tmp_path).state_dir
    state_dir.parent.mkdir(parents=True)
    state_dir.write_text("a file in the way")
    failed = Event()
    with LogWriter(open_log(tmp_path), lambda _: failed.set()) as writer:
        writer.record(make_logged())
        assert failed.wait(30)
        with pytest.raises(QuestionLogError):
            writer.rate(Rating("a1", NOW, 5))


def test_a_locked_log_never_delays_recording(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.add_answers([])
    settings = make_log_settings(tmp_path)
    other = sqlite3.connect(settings.state_dir / DATABASE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    failures: list[Exception] = []
    failed = Event()

    def fail(error: Exception) -> None:
        failures.append(error)
        failed.set()

    writer = LogWriter(log, fail, capacity=1)
    writer.record(make_logged())
    writer.record(make_logged("a2"))
    writer.record(make_logged("a3"))
    assert failed.wait(30)
    other.execute("ROLLBACK")
    other.close()
    writer.close()
    assert all(isinstance(one, QuestionLogError) for one in failures)
    writer.record(make_logged("late"))
    assert "full or closed" in str(failures[-1])


class WatchedLog:
    """A question log that tells when its writer begins to write answers."""

    def __init__(self, log: SqlQuestionLog) -> None:
        self._log = log
        self.began = Event()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any method of the log
        """Return the method of the log."""
        return getattr(self._log, name)

    def add_answers(self, answers: Sequence[LoggedAnswer]) -> None:
        """Tell if there are answers, then store them."""
        if answers:
            self.began.set()
        self._log.add_answers(answers)


def test_a_rating_fails_while_the_log_is_locked_and_its_answer_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = WatchedLog(open_log(tmp_path))
    log.add_answers([])
    path = make_log_settings(tmp_path).state_dir / DATABASE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer = LogWriter(cast("SqlQuestionLog", log), lambda _: None)
        writer.record(make_logged("first"))
        assert log.began.wait(30)
        writer.record(make_logged("second"))
        with monkeypatch.context() as patch:
            patch.setattr(log_writer, "_CLOSE_S", 0.01)
            with pytest.raises(QuestionLogError, match="is busy"):
                writer.rate(Rating("first", NOW, 5))
        with pytest.raises(QuestionLogError, match="locked"):
            writer.rate(Rating("second", NOW, 5))
        other.execute("ROLLBACK")
    assert writer.rate(Rating("second", NOW, 4))
    writer.close()


def test_an_answer_that_is_deleted_while_it_is_written_is_not_logged(tmp_path: Path) -> None:
    with LogWriter(open_log(tmp_path), lambda _: None) as writer:
        assert writer.delete(answer_id="a1") == 0
        for answer_id in ("a1", "a2"):
            writer.record(make_logged(answer_id))
    log = open_log(tmp_path)
    assert [one.answer_id for one in log.read_answers()] == ["a2"]
    log.close()


def test_only_pages_of_the_book_are_stored_as_sources_of_a_selection(tmp_path: Path) -> None:
    pages = {"/book/a#about-me-4711": "/book/a"}
    with LogWriter(open_log(tmp_path), lambda _: None, find_page=pages.get) as writer:
        sources = ("/book/a#about-me-4711", "/book/my-name-is-4711")
        for mode in ("normal", "selected_text_only"):
            writer.record(replace(make_logged(mode), mode=mode, sources=sources))
    log = open_log(tmp_path)
    found = {one.mode: one.sources for one in log.read_answers()}
    assert found == {"normal": sources, "selected_text_only": ("/book/a",)}
    log.close()
