"""The writer of the question log, which never delays or fails an answer."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from dataclasses import replace
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import QuestionLogError, describe_kind
from rag_pipeline.core.models import Closing
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.adapters.database.questions import SqlQuestionLog
    from rag_pipeline.core.protocols import LoggedAnswer, Rating

_BATCH: Final = 500
_TRIES: Final = 3
_PAUSE_S: Final = 0.2  # before the second try; twice as long before the third
_IDLE_S: Final = 3600.0  # an idle log deletes its expired answers about as often
_CLOSE_S: Final = 5.0
_KEPT_DELETIONS: Final = 10_000
_LOGGER: Final = logging.getLogger(__name__)


class LogWriter(Closing):
    """Writes answers to the question log in a thread of its own.

    Answers wait in a queue. If the log is locked, full or broken, or the queue is full, answers are
    dropped and `on_failure` is called. Several threads can share a writer.

    Args:
        log: The question log. The writer closes it.
        on_failure: Function that is called with the error once for each loss, from any thread.
        capacity: Most answers that wait to be written.
        find_page: Returns the address of the page of the book that an address leads to, or None.
            The address of a selection comes from the client, so only that of the page is stored.
    """

    def __init__(
        self,
        log: SqlQuestionLog,
        on_failure: Callable[[Exception], None],
        capacity: int = 10_000,
        find_page: Callable[[str], str | None] | None = None,
    ) -> None:
        self._find_page = find_page or (lambda _: None)
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._log = log
        self._on_failure = on_failure
        self._capacity = capacity
        self._waiting: deque[LoggedAnswer] = deque()
        self._batch: list[LoggedAnswer] = []
        self._changed = Condition()
        self._flushing = Lock()  # a second rating of an answer waits until the answer is written
        self._is_closed = self._has_lost = False
        self._thread = Thread(target=self._run, name="question-log", daemon=True)
        self._thread.start()

    def record(self, answer: LoggedAnswer) -> None:
        """Queue an answer and return at once. Never raises."""
        with self._changed:
            if {answer.answer_id, answer.conversation_id} & self._deleted.keys():
                return  # deleted while it was still being written
            has_room = not self._is_closed and len(self._waiting) < self._capacity
            if has_room:
                self._waiting.append(answer)
                self._changed.notify_all()
        if not has_room:
            self._lose(QuestionLogError("the queue of the question log is full or closed"))

    def rate(self, rating: Rating) -> bool:
        """Store a rating and return True, or return False if the answer is unknown.

        If the answer is still queued, it is written first.

        Raises:
            QuestionLogError: The log cannot be written.
        """
        self._flush(lambda one: one.answer_id == rating.answer_id)
        return self._log.add_rating(rating)

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Delete one answer or all answers of a conversation; return their number.

        Raises:
            QuestionLogError: The log cannot be written.
        """
        if deleted_id := answer_id or conversation_id:
            with self._changed:  # before the log is read, or a queue could be missed
                self._deleted[deleted_id] = None
                while len(self._deleted) > _KEPT_DELETIONS:
                    self._deleted.popitem(last=False)
        self._flush(
            lambda one: one.answer_id == answer_id or one.conversation_id == conversation_id
        )
        return self._log.delete(answer_id=answer_id, conversation_id=conversation_id)

    def close(self) -> None:
        """Write the queued answers, for at most 5 seconds, and close the log.

        A second call does nothing.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._log.close()

    def _flush(self, is_wanted: Callable[[LoggedAnswer], bool]) -> None:
        """Wait until the thread wrote the batch in progress, then write the wanted answers.

        Raises:
            QuestionLogError: The log cannot be written, or the thread still waits for it.
        """
        with self._flushing:
            with self._changed:
                is_done = self._changed.wait_for(
                    lambda: not any(is_wanted(one) for one in self._batch), _CLOSE_S
                )
                if not is_done:
                    raise QuestionLogError("the question log is busy. Try again in some seconds")
                wanted = [one for one in self._waiting if is_wanted(one)]
                if not wanted:
                    return
                self._waiting = deque(one for one in self._waiting if not is_wanted(one))
            try:
                self._add(wanted)
            except Exception:  # any error of the log: the answers go back into the queue
                with self._changed:
                    self._waiting.extendleft(reversed(wanted))
                    self._changed.notify_all()
                raise

    def _add(self, answers: Sequence[LoggedAnswer]) -> None:
        """Store answers without text that a client chose as the source of a selection."""
        kept = [
            replace(
                one, sources=tuple(dict.fromkeys(filter(None, map(self._find_page, one.sources))))
            )
            if one.mode == Mode.SELECTED_TEXT_ONLY
            else one
            for one in answers
        ]
        self._log.add_answers(kept)

    def _run(self) -> None:
        is_open = True
        self._write([])  # opens the log, so that a broken one is noticed at the start
        while is_open:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed, _IDLE_S)
                self._batch = [
                    self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))
                ]
                is_open = bool(self._batch) or not self._is_closed
            if is_open:
                self._write(self._batch)
            with self._changed:
                self._batch = []
                self._changed.notify_all()

    def _write(self, answers: Sequence[LoggedAnswer]) -> None:
        """Write a batch with retries. After the last failure, the batch is dropped."""
        for attempt in range(_TRIES):
            try:
                self._add(answers)
            except Exception as error:  # noqa: BLE001  # the thread must go on
                if attempt == _TRIES - 1 or self._is_closed:
                    for _ in range(max(1, len(answers))):
                        self._lose(error)
                    return
                time.sleep(_PAUSE_S * 2**attempt)
            else:
                return

    def _lose(self, error: Exception) -> None:
        """Report a lost entry. The first one is logged too."""
        self._on_failure(error)
        if not self._has_lost:
            self._has_lost = True
            _LOGGER.warning("the question log lost an entry (%s)", describe_kind(error))
