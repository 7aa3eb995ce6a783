"""Time limits, circuit breakers and log lines around all calls of a store or a model.

Each `Retriever` has one `Protection`, which searches, the search service and answers use. Only the
adapters retry calls, because retrying here as well would multiply the waiting times.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.core.errors import (
    AnswerServiceError,
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline.retrieval.protection.breaker import CircuitBreaker, run_within
from rag_pipeline.retrieval.protection.logs import Operation, write_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Observer = Callable[[Operation, Exception | None], None]

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
        self,
        limits: ServiceLimits | None = None,
        *,
        observe: Observer | None = None,
    ) -> None:
        self.limits = limits or ServiceLimits()
        self._observe = observe
        bounds = (self.limits.breaker_failures, self.limits.breaker_reset_s)
        self.embedding = CircuitBreaker(*bounds, _refuse_embedding)
        self.store = CircuitBreaker(*bounds, _refuse_store)
        self.chat_model = CircuitBreaker(*bounds, _refuse_chat_model)

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
        with operation.measure("embed"):
            left_s = operation.limit_s - operation.elapsed_ms / 1000
            return self.embedding.call(lambda: run_within(left_s, action, _embedding_timeout))

    def compare(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run a function that compares a selection with a local model, within the time limit.

        The circuit breaker of the embedding service is not used, because a selection must be
        answered even while that service is down.

        Raises:
            EmbeddingTimeoutError: The function exceeded the time limit of the operation.
        """
        with operation.measure("embed"):
            left_s = operation.limit_s - operation.elapsed_ms / 1000
            return run_within(left_s, action, _embedding_timeout)

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
        return self.store.call(lambda: run_within(bound_s, action, _store_timeout))


def _embedding_timeout(limit_s: float) -> EmbeddingTimeoutError:
    return EmbeddingTimeoutError(
        f"the question could not be embedded within {max(limit_s, 0):.3g} s. Try again later"
    )


def _store_timeout(limit_s: float) -> StoreTimeoutError:
    return StoreTimeoutError(
        f"the vector store did not answer within {max(limit_s, 0):.3g} s. Try again later, or ask "
        "for fewer results"
    )


def _refuse_embedding(wait_s: float) -> EmbeddingServiceError:
    return EmbeddingServiceError(
        "the embedding service failed several times in a row, so calls are paused. Try again in "
        f"{wait_s:.0f} s"
    )


def _refuse_store(wait_s: float) -> StoreUnavailableError:
    return StoreUnavailableError(
        "the vector store failed several times in a row, so calls are paused. Try again in "
        f"{wait_s:.0f} s"
    )


def _refuse_chat_model(wait_s: float) -> AnswerServiceError:
    return AnswerServiceError(
        "the answer service failed several times in a row, so calls are paused. Try again in "
        f"{wait_s:.0f} s"
    )
