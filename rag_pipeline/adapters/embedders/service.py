"""What all embedding services have in common: batches in flight, retries, checked unit rows.

Belongs here: everything between a list of texts and a service's single request. Does not belong
here: a vendor's client, limits and errors.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.retrying import call_with_retries
from rag_pipeline.core.errors import EmbeddingDimensionError, EmbeddingError
from rag_pipeline.core.vectors import EmbeddingUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.vectors import EmbeddingModel, FloatMatrix

IN_FLIGHT: Final = 8
"""Requests at one time over all callers of an embedder; issue of the main job, point 5."""

PASSAGE_WAIT_S: Final = 60.0
"""Longest single wait while documents are embedded: rate limits are counted by the minute."""

QUERY_WAIT_S: Final = 2.0
"""Longest single wait while somebody waits for an answer."""


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """A service's answer to one request.

    Attributes:
        rows: A vector per text, in the order of the texts, as the service sent them.
        tokens: What it charges for.
    """

    rows: Sequence[Sequence[float] | np.ndarray]
    tokens: int


class BatchRunner:
    """Sends batches of texts through one request function, at most `IN_FLIGHT` at a time.

    Args:
        model: Whose dimension every row must have.
        sleep: Takes seconds; called between tries.
    """

    def __init__(self, model: EmbeddingModel, sleep: Callable[[float], None]) -> None:
        self._model = model
        self._sleep = sleep
        self._slots = BoundedSemaphore(IN_FLIGHT)

    def run(
        self,
        batches: Sequence[Sequence[str]],
        request: Callable[[Sequence[str]], BatchAnswer],
        *,
        longest_wait_s: float,
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed batches and join their rows in order.

        Args:
            batches: None of them empty. No batch gives shape (0, dim) and no request.
            request: Called from several threads; raises errors of this package.
            longest_wait_s: Bound on one wait between tries.

        Raises:
            EmbeddingServiceError: A batch failed three times; batches not yet begun are dropped.
            EmbeddingDimensionError: A row is missing or has another length than the model's.
        """

        def run_batch(batch: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
            with self._slots:
                answer, retries = call_with_retries(
                    lambda: request(batch), longest_wait_s=longest_wait_s, sleep=self._sleep
                )
            rows = normalize_rows(answer.rows, len(batch), self._model)
            return rows, EmbeddingUsage(1 + retries, retries, answer.tokens)

        start = time.perf_counter()
        parts = [np.zeros((0, self._model.dim), dtype=np.float32)]
        usage = EmbeddingUsage()
        pool = ThreadPoolExecutor(max_workers=max(1, min(IN_FLIGHT, len(batches))))
        try:
            for rows, cost in pool.map(run_batch, batches):
                parts.append(rows)
                usage += cost
        finally:
            pool.shutdown(cancel_futures=True)
        seconds = time.perf_counter() - start
        return np.concatenate(parts), usage + EmbeddingUsage(seconds=seconds)


def split_batches(
    texts: Sequence[str], token_counts: Sequence[int], *, max_texts: int, max_tokens: int
) -> list[list[str]]:
    """Cut texts into batches in order, bounded by count and tokens; a longer text stands alone."""
    batches: list[list[str]] = []
    batch_tokens = 0
    for text, tokens in zip(texts, token_counts, strict=True):
        full = not batches or len(batches[-1]) >= max_texts or batch_tokens + tokens > max_tokens
        if full:
            batches.append([])
            batch_tokens = 0
        batches[-1].append(text)
        batch_tokens += tokens
    return batches


def cut_to_tokens(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """The longest convenient beginning of a text that has at most `max_tokens` by `count`."""
    tokens = count(text)
    while tokens > max_tokens:
        text = text[: len(text) * max_tokens // tokens]
        tokens = count(text)
    return text


def normalize_rows(
    rows: Sequence[Sequence[float] | np.ndarray], text_count: int, model: EmbeddingModel
) -> FloatMatrix:
    """Check a service's vectors and bring them to unit length.

    Returns:
        float32, shape (text_count, model.dim).

    Raises:
        EmbeddingDimensionError: Another number of rows, or a row of another length.
        EmbeddingError: A value is no finite number, or a row is all zeros.
    """
    if len(rows) != text_count:
        raise EmbeddingDimensionError(model.model, f"{text_count} vectors", f"{len(rows)} vectors")
    try:
        vectors = [np.asarray(row, dtype=np.float64) for row in rows]
    except (TypeError, ValueError, OverflowError) as error:
        message = f"embedding model {model.model} returned values that are no numbers"
        raise EmbeddingError(f"{message}. Check the service behind it") from error
    for vector in vectors:
        if vector.shape != (model.dim,):
            found = f"{vector.size} dimensions" if vector.ndim == 1 else "no vector"
            raise EmbeddingDimensionError(model.model, f"{model.dim} dimensions", found)
    matrix = np.array(vectors).reshape(text_count, model.dim)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        message = f"embedding model {model.model} returned a vector of zeros or with NaN"
        raise EmbeddingError(f"{message}. Check the service behind it")
    unit: FloatMatrix = (matrix / lengths).astype(np.float32)
    return unit
