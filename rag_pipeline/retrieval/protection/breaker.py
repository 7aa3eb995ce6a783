"""A circuit breaker for a service, and a time limit for a call."""

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
"""Maximum number of calls that run at once, including calls that have exceeded their time limit.

The maximum prevents a hung service from filling the process with threads.
"""


class CircuitBreaker:
    """A circuit breaker that refuses calls to a service after several failures in a row.

    A closed breaker lets calls pass. An open breaker refuses calls at once. After `reset_s`
    seconds, it lets one call at a time pass as a probe. If the probe succeeds, the breaker closes;
    if it fails, the breaker stays open for another `reset_s` seconds. Only transient errors and
    timeouts count as failures, because a damaged point or a wrong key does not mean that the
    service is down.

    Args:
        failures: Number of failures in a row that open the breaker, 1 or more.
        reset_s: Seconds from opening until a probe may pass.
        refuse: Builds the error of a refused call from the seconds until the next probe.
        clock: Returns a time in seconds that never decreases.
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
        """The state of the breaker: `closed`, `open`, or `half-open` when a probe may pass."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "half-open" if self._wait_s() <= 0 else "open"

    def call(self, action: Callable[[], _Result]) -> _Result:
        """Run an action and return its result, or refuse it while the breaker is open.

        Raises:
            RagPipelineError: The action's own error, or the refusal with `retry_after_s`.
        """
        with self.passing():
            return action()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Return a context manager that runs its block, or refuses it while the breaker is open.

        Raises:
            RagPipelineError: The block's own error, or the refusal with `retry_after_s`.
        """
        is_probe = self._enter()
        failed: bool | None = None  # an interrupted call says nothing about the service
        try:
            yield
            failed = False
        except Exception as error:  # any error is judged and passed on
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
                return  # a call from before the breaker opened says nothing about the service now
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
    """Run an action in another thread and wait at most `seconds` for its result.

    A thread cannot be stopped, so an action that exceeds the limit continues until the adapter's
    own timeout ends it. It does not keep the process alive.

    Args:
        seconds: The time limit. If 32 actions are running already, it includes the wait for one of
            them to end.
        action: The function to run. It sees the context variables of the caller.
        on_timeout: Builds the error to raise after a timeout from the time limit in seconds.

    Raises:
        RagPipelineError: The error that `on_timeout` builds, or an error of the action.
    """
    deadline = time.monotonic() + seconds
    running = _running
    if not running.acquire(timeout=max(seconds, 0.0)):
        raise on_timeout(seconds)
    future: Future[_Result] = Future()
    context = contextvars.copy_context()  # keeps the caller's traces and log context

    def run() -> None:
        try:
            future.set_result(context.run(action))
        except BaseException as error:  # noqa: BLE001  # passed on to the waiting caller
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
        return future.result(timeout=max(deadline - time.monotonic(), 0.0))
    except FutureTimeoutError:
        if future.done():  # the action's own TimeoutError
            raise
        raise on_timeout(seconds) from None


_running = threading.BoundedSemaphore(_MAX_RUNNING)
_idle: Final[list[SimpleQueue[Callable[[], None]]]] = []
"""The task queues of idle threads; a query that reuses a thread saves the cost of starting one."""


def _work(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()
        _idle.append(tasks)


def _reset_after_fork() -> None:
    """Forget the running calls and idle threads, which do not exist in a forked child process."""
    global _running  # noqa: PLW0603  # one count for the whole process
    _running = threading.BoundedSemaphore(_MAX_RUNNING)
    _idle.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
