"""Time limits, circuit breakers and log lines around all calls of a store or a model.

Each `Retriever` has one `Protection`, which searches, the search service and answers use. Only the
adapters retry calls, because retrying here as well would multiply the waiting times.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from rag_pipeline.core.errors import (
    AnswerServiceError,
    AnswerTimeoutError,
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    RagPipelineError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline.retrieval.logs import Operation, write_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


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
        refusal: The class of the error of a refused call.
        service: Name of the service in its message.
        clock: Returns a time in seconds that never decreases.
    """

    def __init__(
        self,
        failures: int,
        reset_s: float,
        refusal: type[RagPipelineError],
        service: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._reset_s = reset_s
        self._refusal = refusal
        self._service = service
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

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Return a context manager that runs its block, or refuses it while the breaker is open.

        Raises:
            RagPipelineError: The block's own error, or the refusal with `retry_after_s`.
        """
        with self._lock:
            is_probe = self._opened_at is not None
            wait_s = max(self._wait_s(), 0.0)
            if is_probe and (wait_s > 0 or self._probing):
                refusal = self._refusal(
                    f"the {self._service} failed several times in a row, so calls are paused. Try "
                    f"again in {wait_s:.0f} s"
                )
                refusal.retry_after_s = wait_s
                raise refusal
            self._probing = self._probing or is_probe
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
            with self._lock:
                # A call from before the breaker opened says nothing about the service now.
                counts = is_probe or self._opened_at is None
                self._probing = self._probing and not is_probe
                if counts and failed:
                    self._failed += 1
                    if self._failed >= self._failures:
                        self._opened_at = self._clock()
                elif counts and failed is False:
                    self._failed, self._opened_at = 0, None

    def _wait_s(self) -> float:
        """Return the seconds until a probe may pass; 0 or less if a call may pass now."""
        return 0.0 if self._opened_at is None else self._opened_at + self._reset_s - self._clock()


def run_within(seconds: float, action: Callable[[], _Result], late: RagPipelineError) -> _Result:
    """Run an action in another thread and wait at most `seconds` for its result.

    A thread cannot be stopped, so an action that exceeds the limit continues until the adapter's
    own timeout ends it. It does not keep the process alive.

    Args:
        seconds: The time limit. If 32 actions are running already, it includes the wait for one of
            them to end.
        action: The function to run. It sees the context variables of the caller.
        late: The error to raise after a timeout.

    Raises:
        RagPipelineError: `late`, or an error of the action.
    """
    deadline = time.monotonic() + seconds
    running = _running
    if not running.acquire(timeout=max(seconds, 0.0)):
        raise late
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
        raise late from None


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


Observer: TypeAlias = "Callable[[Operation, Exception | None], None]"

_Result = TypeVar("_Result")

MAX_BATCH: Final = 100
"""Number of questions that `ServiceLimits.batch_s` is meant for; more questions get more time."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Time limits of queries, and thresholds of the circuit breakers of store and models.

    Attributes:
        query_s: Seconds for one query, embedding and search together.
        batch_s: Seconds for one batch of up to 100 queries.
        breaker_failures: Number of transient failures in a row after which calls to the failing
            store or model are refused.
        breaker_reset_s: Seconds of refusing until one call is let through to try it again.
    """

    query_s: float = 10.0
    batch_s: float = 30.0
    breaker_failures: int = 5
    breaker_reset_s: float = 30.0


class Protection:
    """The time limits, circuit breakers and log of a retriever.

    Args:
        limits: None for the default limits.
        observe: Called once for each operation that ended, with the error that ended it or None.

    Attributes:
        embedding: The circuit breaker of the embedding service.
        store: The circuit breaker of the vector store.
        chat_model: The circuit breaker of the model that writes answers. The model's time limit is
            set elsewhere, by ANSWER_TIMEOUT_S.
    """

    def __init__(
        self, limits: ServiceLimits | None = None, *, observe: Observer | None = None
    ) -> None:
        self.limits = limits or ServiceLimits()
        self._observe = observe
        bounds = (self.limits.breaker_failures, self.limits.breaker_reset_s)
        self.embedding = CircuitBreaker(*bounds, EmbeddingServiceError, "embedding service")
        self.store = CircuitBreaker(*bounds, StoreUnavailableError, "vector store")
        self.chat_model = CircuitBreaker(*bounds, AnswerServiceError, "answer service")

    def limited_by(self, limits: ServiceLimits) -> Protection:
        """Return a protection with other time limits and the same circuit breakers and observer."""
        other = copy(self)
        other.limits = limits
        return other

    @contextmanager
    def watch(
        self,
        name: str,
        questions: Sequence[str],
        limit_s: float | None = None,
        *,
        only_failures: bool = False,
    ) -> Iterator[Operation]:
        """Yield an `Operation` for the `with` block, and log one line when the block ends.

        The operation carries the time limit and collects the contents of the log line. Pass it to
        `embed` and `search`. The line has the status `error` if the block raises an exception, and
        `aborted` if it is interrupted, for example by Ctrl-C or by closing an answer's stream.

        Args:
            name: Name of the operation, as it appears in the log.
            questions: The questions as they were asked.
            limit_s: Time limit in seconds; None for the limit of one query or of a batch, depending
                on the number of questions.
            only_failures: True reports no success, because another operation continues this one.
        """
        if limit_s is None and len(questions) <= 1:
            limit_s = self.limits.query_s
        elif limit_s is None:
            limit_s = self.limits.batch_s * max(1.0, len(questions) / MAX_BATCH)
        operation = Operation(name, list(questions), limit_s)
        try:
            yield operation
        except Exception as error:
            operation.status = "error"
            self._report(operation, error)
            raise
        except BaseException:  # Ctrl-C, or the caller closed the answer's stream
            operation.status = "aborted"
            self._report(operation)
            raise
        if not only_failures:
            self._report(operation)

    def _report(self, operation: Operation, error: Exception | None = None) -> None:
        write_line(operation, error)
        if self._observe is not None:
            with suppress(Exception):  # metrics must not fail an answer
                self._observe(operation, error)

    def embed(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run a function that embeds questions within the time limit of an operation.

        The time that the operation has already used counts. The function's result is returned.

        Raises:
            EmbeddingTimeoutError: The function exceeded the time limit of the operation.
            EmbeddingServiceError: The circuit breaker is open after repeated failures.
        """
        with self.embedding.passing():
            return self.compare(operation, action)

    def compare(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run a function that compares a selection with a local model, within the time limit.

        The circuit breaker of the embedding service is not used, because a selection must be
        answered even while that service is down.

        Raises:
            EmbeddingTimeoutError: The function exceeded the time limit of the operation.
        """
        with operation.measure("embed"):
            left_s = operation.limit_s - operation.elapsed_ms / 1000
            late = EmbeddingTimeoutError(
                f"the question could not be embedded within {max(left_s, 0):.3g} s. Try again later"
            )
            return run_within(left_s, action, late)

    def search(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run a function that searches the store within the time limit of an operation.

        The time that the operation has already used counts. The function's result is returned.

        Raises:
            StoreTimeoutError: The function exceeded the time limit of the operation.
            StoreUnavailableError: The circuit breaker is open after repeated failures.
        """
        with operation.measure("search"):
            return self.read_store(action, operation.limit_s - operation.elapsed_ms / 1000)

    def read_store(self, action: Callable[[], _Result], limit_s: float | None = None) -> _Result:
        """Run an action that reads the store and return its result.

        Args:
            action: The function to run.
            limit_s: Time limit in seconds; None for the limit of one query.

        Raises:
            StoreTimeoutError: The action exceeded the time limit.
            StoreUnavailableError: The circuit breaker is open after repeated failures.
        """
        bound_s = self.limits.query_s if limit_s is None else limit_s
        late = StoreTimeoutError(
            f"the vector store did not answer within {max(bound_s, 0):.3g} s. Try again later, or "
            "ask for fewer results"
        )
        with self.store.passing():
            return run_within(bound_s, action, late)
