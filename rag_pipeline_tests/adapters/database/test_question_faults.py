"""Tests of a question log whose SQLite file is locked, full, damaged or not writable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.database.questions import SqlQuestionLog, open_question_log
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError, QuestionLogError
from rag_pipeline_tests.adapters.database.databases import make_log_settings, make_logged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a log in an SQLite file."""
    return make_log_settings(tmp_path)


@pytest.fixture
def log(settings: Settings) -> Iterator[SqlQuestionLog]:
    """The log of the settings, whose file does not exist yet."""
    opened = open_question_log(settings)
    assert isinstance(opened, SqlQuestionLog)
    yield opened
    opened.close()


def test_no_log_is_opened_if_nothing_is_to_be_logged(tmp_path: Path) -> None:
    assert open_question_log(make_log_settings(tmp_path, question_log_days=0)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_log_fails_and_still_deletes(log: SqlQuestionLog) -> None:
    log.add_answers([make_logged()])

    limit = "pragma max_page_count = 1"  # simulates a full disk
    log._database.read(lambda used: list(used.rows(limit)))  # noqa: SLF001  # no test needs more
    with pytest.raises(QuestionLogError, match="full"):
        log.add_answers([make_logged(f"b{number}", question="x" * 5000) for number in range(50)])
    assert log.delete(answer_id="a1") == 1


def test_a_folder_that_cannot_be_written_fails_without_showing_its_path(
    log: SqlQuestionLog, settings: Settings, tmp_path: Path
) -> None:
    settings.data_dir.write_text("a file in the way")
    with pytest.raises(QuestionLogError) as caught:
        log.add_answers([make_logged()])
    assert str(tmp_path) not in str(caught.value)
    log.close()


@pytest.mark.parametrize(
    "url", ["no address", "mysql://user:hidden-word@host/log", "http://host"]
)  # pragma: allowlist secret
def test_an_address_of_no_usable_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="QUESTION_LOG_URL") as caught:
        open_question_log(make_log_settings(tmp_path, question_log_url=url))
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("package", ["sqlalchemy", "alembic", "psycopg"])
def test_a_missing_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(
        "rag_pipeline.core.errors.find_spec",
        lambda name: None if name == package else name,
    )
    with pytest.raises(MissingDependencyError, match=package):
        open_question_log(make_log_settings(tmp_path, question_log_url="postgresql://host/log"))


def test_an_sqlite_file_can_be_named_by_its_address(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "own.sqlite"
    log = open_question_log(make_log_settings(tmp_path, question_log_url=f"sqlite:///{path}"))
    assert log is not None
    log.add_answers([make_logged()])
    assert [one.answer_id for one in log.read_answers()] == ["a1"]
    log.close()
    assert path.is_file()


def test_a_log_is_not_begun_again_in_a_folder_that_was_moved(
    log: SqlQuestionLog, settings: Settings
) -> None:
    log.add_answers([make_logged("a1")])
    folder, moved = settings.state_dir, settings.data_dir / "moved"
    folder.rename(moved)
    with pytest.raises(QuestionLogError, match="No such file"):
        log.add_answers([make_logged("a2")])
    assert not folder.exists()
    moved.rename(folder)
    log.add_answers([make_logged("a2")])
    assert len(log.read_answers()) == 2
    log.close()
