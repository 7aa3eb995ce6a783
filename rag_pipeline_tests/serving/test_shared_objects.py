"""Tests of the objects that the first process of the service keeps for all its processes."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.serving.api.problems import ProblemError
from rag_pipeline.serving.deletions import Deletions
from rag_pipeline.serving.log_writer import LogWriter
from rag_pipeline.serving.workers import Timely
from rag_pipeline_tests.adapters.question_log.databases import make_logged
from rag_pipeline_tests.serving.test_log_writer import open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_an_answer_that_another_process_deleted_is_not_kept(tmp_path: Path) -> None:
    deletions = Deletions()
    with LogWriter(open_log(tmp_path), lambda _: None, deletions=deletions) as other:
        assert other.delete(answer_id="a1") == 0  # it waits in the queue of the next writer
    with LogWriter(open_log(tmp_path), lambda _: None, deletions=deletions) as writer:
        for answer_id in ("a1", "a2"):
            writer.record(make_logged(answer_id))
    log = open_log(tmp_path)
    assert [one.answer_id for one in log.read_answers()] == ["a2"]
    log.close()


def test_all_answers_of_a_deleted_conversation_are_found() -> None:
    deletions = Deletions()
    deletions.add("c1")
    assert deletions.find([("a1", "c1"), ("a2", "c2"), ("c1", "c3")]) == ["a1", "c1"]


def test_the_oldest_deletions_are_forgotten() -> None:
    deletions = Deletions()
    for number in range(10_001):
        deletions.add(f"a{number}")
    assert deletions.find([("a0", ""), ("a1", ""), ("a10000", "")]) == ["a1", "a10000"]


class Slow:
    """An object with a method that does not return before it is released."""

    def __init__(self) -> None:
        self.released = Event()

    def wait(self) -> bool:
        return self.released.wait()

    def repeat(self, text: str, *, times: int) -> str:
        return text * times

    def fail(self) -> None:
        raise LookupError("no such turn")


def test_a_call_to_a_process_that_hangs_ends_in_time() -> None:
    slow = Slow()
    timely = Timely(slow, 0.05)
    with pytest.raises(ProblemError, match="does not respond") as raised:
        timely.wait()
    slow.released.set()
    assert raised.value.status_code == 503


def test_results_and_errors_are_passed_on() -> None:
    timely = Timely(Slow())
    assert timely.repeat("ab", times=2) == "abab"
    with pytest.raises(LookupError, match="no such turn"):
        timely.fail()
