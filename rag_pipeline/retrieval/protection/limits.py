"""Time limits, circuit breakers and log lines around every path to a store or a model.

A `Retriever` carries one `Protection`; searches, the service and answers go through it. Retries
belong to the adapters: a second round of retries here would multiply their waits.
"""

from __future__ import annotations

from contextlib import contextmanager
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

_Result = TypeVar("_Result")

MAX_BATCH: Final = 100
"""Questions that `ServiceLimits.batch_s` is meant for; more questions have more time."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Bounds of time and failure; the defaults are those of the validation plan.

    Attributes:
        query_s: Limit for one query, embedding and search together.
        batch_s: Limit for one batch of up to 100 queries.
        breaker_failures: Transient failures in a row after which calls fail at once.
        breaker_reset_s: Seconds until the service is tried again.
    """

    query_s: float = 10.0
    batch_s: float = 30.0
    breaker_failures: int = 5
    breaker_reset_s: float = 30.0


class Protection:
    """Limits and circuit breakers of the services behind a retriever, and its log.

    Args:
        limits: None for the defaults.
        log_questions: True to log the questions' text, not only its length.

    Attributes:
        embedding: The breaker of the embedding service.
        store: The breaker of the vector store.
        chat_model: The breaker of the model that writes answers; it has a time limit of its own.
    """

    def __init__(self, limits: ServiceLimits | None = None, *, log_questions: bool = False) -> None:
        self.limits = limits or ServiceLimits()
        self._log_questions = log_questions
        bounds = (self.limits.breaker_failures, self.limits.breaker_reset_s)
        self.embedding = CircuitBreaker(*bounds, _refuse_embedding)
        self.store = CircuitBreaker(*bounds, _refuse_store)
        self.chat_model = CircuitBreaker(*bounds, _refuse_chat_model)

    @contextmanager
    def watch(
        self, name: str, questions: Sequence[str], limit_s: float | None = None
    ) -> Iterator[Operation]:
        """Log one line when the block ends, whether it succeeds, fails or is aborted.

        Args:
            name: Of the operation.
            questions: As asked.
            limit_s: None for that of one query or of a batch.
        """
        if limit_s is None and len(questions) <= 1:
            limit_s = self.limits.query_s
        elif limit_s is None:
            limit_s = self.limits.batch_s * max(1.0, len(questions) / MAX_BATCH)
        operation = Operation(name, list(questions), limit_s)
        try:
            yield operation
        except Exception as error:
            write_line(operation, error, with_questions=self._log_questions)
            raise
        except BaseException:  # Ctrl-C, or a reader that closes its answer
            operation.status = "aborted"
            write_line(operation, with_questions=self._log_questions)
            raise
        write_line(operation, with_questions=self._log_questions)

    def embed(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run the embedding step of an operation.

        Raises:
            EmbeddingTimeoutError: It did not end within the operation's limit.
            EmbeddingServiceError: The breaker is open.
        """
        with operation.measure("embed"):
            left_s = operation.limit_s - operation.elapsed_ms / 1000
            return self.embedding.call(lambda: run_within(left_s, action, _embedding_timeout))

    def search(self, operation: Operation, action: Callable[[], _Result]) -> _Result:
        """Run the search step of an operation.

        Raises:
            StoreTimeoutError: It did not end within the operation's limit.
            StoreUnavailableError: The breaker is open.
        """
        with operation.measure("search"):
            return self.read_store(action, operation.limit_s - operation.elapsed_ms / 1000)

    def read_store(self, action: Callable[[], _Result], limit_s: float | None = None) -> _Result:
        """Run an action that reads the store, within the limit of one query by default.

        Raises:
            StoreTimeoutError: It did not end within the limit.
            StoreUnavailableError: The breaker is open.
        """
        bound_s = self.limits.query_s if limit_s is None else limit_s
        return self.store.call(lambda: run_within(bound_s, action, _store_timeout))


def _embedding_timeout(limit_s: float) -> EmbeddingTimeoutError:
    return EmbeddingTimeoutError(
        f"the question was not embedded within {max(limit_s, 0):.3g} s. Try again later"
    )


def _store_timeout(limit_s: float) -> StoreTimeoutError:
    return StoreTimeoutError(
        f"the vector store did not answer within {max(limit_s, 0):.3g} s. Try again later, or ask "
        "for fewer results"
    )


def _refuse_embedding(wait_s: float) -> EmbeddingServiceError:
    return EmbeddingServiceError(
        f"the embedding service failed several times and is left alone for {wait_s:.0f} s"
    )


def _refuse_store(wait_s: float) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the vector store failed several times and is left alone for {wait_s:.0f} s"
    )


def _refuse_chat_model(wait_s: float) -> AnswerServiceError:
    return AnswerServiceError(
        f"the answer service failed several times and is left alone for {wait_s:.0f} s"
    )
