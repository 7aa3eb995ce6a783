"""Tests of `golden-entry --from-log`: a golden-set entry for a question that a reader asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline_tests.adapters.database.databases import make_logged
from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line

if TYPE_CHECKING:
    from collections.abc import Callable


def write_log(command: Command, **values: object) -> None:
    """Log one answer with the id a1 for the book of the command."""
    settings = load_settings(docs_dir=command.root / "docs", data_dir=command.root / "data")
    log = open_question_log(settings)
    assert log is not None
    log.add_answers([make_logged(**values)])
    log.close()
    assert (settings.state_dir / DATABASE_NAME).is_file()


def test_a_logged_question_becomes_an_entry_with_the_sections_that_were_cited(
    call: Callable[..., Outcome], command: Command
) -> None:
    page = "# Balance\n\n## Support polygon\n\nThe area between the feet.\n"
    command.book.write("balance.md", page)
    sources = ("/book/docs/balance#support-polygon", "/book/docs/removed#a")
    write_log(command, question="When does a robot fall over?", sources=sources)
    told = call("golden-entry", "--from-log", "a1", SITE_BASE_URL="/book/")
    assert told.code == 0, told
    assert told.json["entry"] == {
        "id": "when-does-a-robot-fall",
        "question": "When does a robot fall over?",
        "category": "fact",
        "all_of": False,
        "expected": [{"doc_path": "balance.md", "section_heading": "Support polygon"}],
        "split": told.json["entry"]["split"],
    }
    assert "Check each of them" in told.json["warnings"][0]
    shown = call("golden-entry", "--from-log", "a1", "--json", SITE_BASE_URL="/book/")
    assert shown.json == told.json


def test_an_unknown_or_unlogged_question_is_one_clear_error(
    call: Callable[..., Outcome], command: Command
) -> None:
    write_log(command, question=None)
    assert_one_line(call("golden-entry", "--from-log", "a2"), 2, "no answer 'a2'")
    assert_one_line(call("golden-entry", "--from-log", "a1"), 2, "not logged", "LOG_QUESTIONS")
    off = call("golden-entry", "--from-log", "a1", QUESTION_LOG_DAYS="0")
    assert_one_line(off, 2, "QUESTION_LOG_DAYS")


def test_a_broken_log_is_one_clear_error(call: Callable[..., Outcome], command: Command) -> None:
    write_log(command)
    settings = load_settings(docs_dir=command.root / "docs", data_dir=command.root / "data")
    (settings.state_dir / DATABASE_NAME).write_bytes(b"no database " * 1000)
    for extra in ("-wal", "-shm"):
        (settings.state_dir / f"{DATABASE_NAME}{extra}").unlink(missing_ok=True)
    told = call("golden-entry", "--from-log", "a1")
    assert_one_line(told, 1, "the question log cannot be read", "not a database", "backup")
    assert str(command.root) not in told.err
    assert not list(settings.state_dir.glob("*.damaged-*"))


def test_an_answer_id_is_required(call: Callable[..., Outcome]) -> None:
    assert_one_line(call("golden-entry"), 2, "--from-log")
