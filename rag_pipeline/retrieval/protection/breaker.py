"""Giving up in time: a circuit breaker, and a time limit for a call."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.core.errors import AnswerTimeoutError, RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")

_MAX_RUNNING: Final = 32
"""Calls under way at once, including calls that were given up on: a hung service cannot fill the
process with threads.
"""


class CircuitBreaker:
    """Passes calls on until a service has failed several times in a row.

    Closed: calls pass. Open: calls fail at once. After `reset_s` one call at a time is let through
    as a probe: its success closes the breaker, its failure opens it for another `reset_s`. Only
    transient errors and timeouts count: a damaged point or a wrong key says nothing about the
    service's health.

    Args:
        failures: Failures in a row that open it, 1 or more.
        reset_s: Seconds until a probe.
        refuse: Builds the error of a refused call from the seconds until the next probe.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        failures: int,
        reset_s: float,
        refuse: Callable[[float], RagPipelineError],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._reset_s = reset_s
        self._refuse = refuse
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """`closed`, `open` or `half-open`."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "half-open" if self._wait_s() <= 0 else "open"

    def call(self, action: Callable[[], _Result]) -> _Result:
        """Run an action, or refuse it while the breaker is open; raises as `passing`."""
        with self.passing():
            return action()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Let a block pass, or refuse it while the breaker is open.

        Raises:
            RagPipelineError: The block's own error, or the refusal with `retry_after_s`.
        """
        is_probe = self._enter()
        failed: bool | None = None  # nothing is known of an interrupted call
        try:
            yield
            failed = False
        except Exception as error:
            failed = isinstance(error, AnswerTimeoutError) or (
                isinstance(error, RagPipelineError) and error.transient
            )
            raise
        finally:
            self._leave(failed=failed, is_probe=is_probe)

    def _enter(self) -> bool:
        with self._lock:
            if self._opened_at is None:
                return False
            wait_s = self._wait_s()
            if wait_s > 0 or self._probing:
                error = self._refuse(max(wait_s, 0.0))
                error.retry_after_s = max(wait_s, 0.0)
                raise error
            self._probing = True
            return True

    def _leave(self, *, failed: bool | None, is_probe: bool) -> None:
        with self._lock:
            if is_probe:
                self._probing = False
            elif self._opened_at is not None:
                return  # begun before the breaker opened: it says nothing of the service now
            if failed is None:
                return
            if not failed:
                self._failed, self._opened_at = 0, None
                return
            self._failed += 1
            if self._failed >= self._failures:
                self._opened_at = self._clock()

    def _wait_s(self) -> float:
        opened_at = self._opened_at if self._opened_at is not None else self._clock()
        return opened_at + self._reset_s - self._clock()


def run_within(
    seconds: float,
    action: Callable[[], _Result],
    on_timeout: Callable[[float], RagPipelineError],
) -> _Result:
    """Run an action in another thread and wait for it at most some seconds.

    A thread cannot be stopped: an action that was given up on ends by the adapters' own time
    limits, and it never keeps the process alive.

    Raises:
        RagPipelineError: The error that `on_timeout` builds from the seconds, or the action's own.
    """
    running = _running
    if not running.acquire(timeout=max(seconds, 0.0)):
        raise on_timeout(seconds)
    future: Future[_Result] = Future()
    context = contextvars.copy_context()  # so that traces and loggers of the caller go on

    def run() -> None:
        try:
            future.set_result(context.run(action))
        except BaseException as error:  # noqa: BLE001  # handed on to the waiting caller
            future.set_exception(error)
        finally:
            running.release()

    try:
        tasks = _idle.pop()
    except IndexError:
        tasks = SimpleQueue()
        threading.Thread(target=_work, args=(tasks,), name="retrieval-call", daemon=True).start()
    tasks.put(run)
    try:
        return future.result(timeout=max(seconds, 0.0))
    except FutureTimeoutError:
        if future.done():  # the action's own TimeoutError
            raise
        raise on_timeout(seconds) from None


_running = threading.BoundedSemaphore(_MAX_RUNNING)
_idle: Final[list[SimpleQueue[Callable[[], None]]]] = []
"""The tasks of threads that have none: starting a thread costs a query five times as much."""


def _work(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()
        _idle.append(tasks)


def _begin_anew() -> None:
    """Forget the calls of the parent process: their threads do not exist in a forked one."""
    global _running  # noqa: PLW0603  # one for the process
    _running = threading.BoundedSemaphore(_MAX_RUNNING)
    _idle.clear()


os.register_at_fork(after_in_child=_begin_anew)
