"""The base of the embedders that call a service: batches in flight, retries, checked unit rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from rag_pipeline.adapters.http import Service, call_with_retries, name_host, separate_login
from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
)
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector

    Purpose: TypeAlias = Literal["document", "query"]

IN_FLIGHT: Final = 8
"""Requests at one time over all callers of an embedder; issue of the main job, point 5."""

PASSAGE_WAIT_S: Final = 60.0
"""Longest single wait while documents are embedded: rate limits are counted by the minute."""

QUERY_WAIT_S: Final = 2.0
"""Longest single wait while somebody waits for an answer."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A vendor of embeddings: its models, and what one request may contain.

    Attributes:
        name: As in EMBEDDING_PROVIDER.
        kind: What its service should be, for messages.
        default_model: Used if EMBEDDING_MODEL is empty.
        default_url: Used if the address setting is empty.
        dims: Dimension of each of its models.
        shortenable: Models that can return fewer dimensions.
        max_input_tokens: Of one text.
        max_request_texts: Of one request.
        max_request_tokens: Of one request.
        transient_statuses: See `Service`.
    """

    name: str
    kind: str
    default_model: str
    default_url: str
    dims: Mapping[str, int]
    shortenable: tuple[str, ...]
    max_input_tokens: int
    max_request_texts: int
    max_request_tokens: int
    transient_statuses: frozenset[int]

    def choose_dim(self, model: str, dim: int) -> int:
        """Return the dimension of a model's vectors for EMBEDDING_DIM.

        Raises:
            ConfigurationError: The model has no such dimension, or its dimension is not known.
        """
        own = self.dims.get(model, dim)
        if own == 0:
            problem = f"the dimension of {model} is not known"
            mend = "Set it to the length of its vectors"
            raise ConfigurationError("EMBEDDING_DIM", problem, mend)
        if dim > own or (0 < dim < own and model not in self.shortenable):
            problem = f"{model} has {own} dimensions, not {dim}"
            raise ConfigurationError("EMBEDDING_DIM", problem, f"Set it to 0 or {own}")
        return dim or own


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """A service's answer to one request.

    Attributes:
        rows: One vector per text, in the order of the texts, as the service sent them.
        tokens: What the service charges for; None if it does not say.
    """

    rows: Sequence[Sequence[float] | np.ndarray]
    tokens: int | None


class ServiceEmbedder(ABC):
    """An `Embedder` over a service, with at most `IN_FLIGHT` requests at a time.

    Args:
        model: Empty for the provider's default.
        dim: 0 for the model's own; must be given for a model that the provider's list lacks.
        api_key: Sent to the service only.
        base_url: Empty for the provider's own address.
        batch_size: Texts per request; bounded by what the provider accepts.
        timeout_s: For one try of one request.
        sleep: Waits between tries.

    Raises:
        ConfigurationError: The model has no such dimension, or its dimension is not known.
    """

    provider: ClassVar[Provider]

    def __init__(
        self,
        *,
        model: str,
        dim: int,
        api_key: str,
        base_url: str,
        batch_size: int,
        timeout_s: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        provider = self.provider
        name, url = model or provider.default_model, base_url or provider.default_url
        self._model = EmbeddingModel(
            provider.name, name, provider.choose_dim(name, dim), provider.max_input_tokens
        )
        self._address, self._login = separate_login(url)
        self._service = Service(
            "the embedding service",
            provider.kind,
            name_host(url),
            api_key,
            refused_error=EmbeddingError,
            failed_error=EmbeddingServiceError,
            late_error=EmbeddingServiceError,
            key_setting=f"{provider.name.upper()}_API_KEY",
            url_setting=f"{provider.name.upper()}_BASE_URL",
            hint="Check EMBEDDING_MODEL, EMBEDDING_DIM and EMBEDDING_BATCH_SIZE",
            late_hint="Try again later or raise EMBEDDING_TIMEOUT_S",
            model=name,
            model_setting="EMBEDDING_MODEL",
            transient_statuses=provider.transient_statuses,
        )
        self._api_key = api_key
        self._batch_size = min(batch_size, provider.max_request_texts)
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._slots = BoundedSemaphore(IN_FLIGHT)

    @property
    def model(self) -> EmbeddingModel:
        """The model as configured."""
        return self._model

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens; see `Embedder.count_tokens`."""

    @abstractmethod
    def _request(self, texts: Sequence[str], purpose: Purpose) -> BatchAnswer:
        """Send one request, called from several threads; raises errors of this package."""

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts, several batches at a time; see `Embedder.embed_passages`.

        If a batch fails for good, batches that have not begun are dropped.
        """
        start = time.perf_counter()
        batches = self._split(texts)
        parts = [np.zeros((0, self._model.dim), dtype=np.float32)]
        usage = EmbeddingUsage()
        pool = ThreadPoolExecutor(max_workers=max(1, min(IN_FLIGHT, len(batches))))
        try:
            for rows, cost in pool.map(
                lambda batch: self._embed(batch, "document", PASSAGE_WAIT_S), batches
            ):
                parts.append(rows)
                usage += cost
        finally:
            pool.shutdown(cancel_futures=True)
        seconds = time.perf_counter() - start
        return np.concatenate(parts), usage + EmbeddingUsage(seconds=seconds)

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question, with short waits between tries; a longer text is cut."""
        tokens = self.count_tokens([text])[0]
        while tokens > self._model.max_input_tokens:
            text = text[: len(text) * self._model.max_input_tokens // tokens]
            tokens = self.count_tokens([text])[0]
        rows, _ = self._embed([text], "query", QUERY_WAIT_S)
        query: FloatVector = rows[0]
        return query

    def _embed(
        self, batch: Sequence[str], purpose: Purpose, longest_wait_s: float
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed one batch, with retries."""
        with self._slots:
            answer, retries = call_with_retries(
                lambda: self._request(batch, purpose),
                longest_wait_s=longest_wait_s,
                sleep=self._sleep,
            )
        rows = _normalize_rows(answer.rows, len(batch), self._model)
        tokens = sum(self.count_tokens(batch)) if answer.tokens is None else answer.tokens
        return rows, EmbeddingUsage(1 + retries, retries, tokens)

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut texts into batches in order, bounded by count and tokens; a longer text stands
        alone.
        """
        batches: list[list[str]] = []
        batch_tokens = 0
        for text, tokens in zip(texts, self.count_tokens(texts), strict=True):
            is_full = not batches or len(batches[-1]) >= self._batch_size
            if is_full or batch_tokens + tokens > self.provider.max_request_tokens:
                batches.append([])
                batch_tokens = 0
            batches[-1].append(text)
            batch_tokens += tokens
        return batches


def _normalize_rows(
    rows: Sequence[Sequence[float] | np.ndarray], text_count: int, model: EmbeddingModel
) -> FloatMatrix:
    """Check a service's vectors and bring them to unit length.

    Returns:
        float32, shape (text_count, model.dim).

    Raises:
        EmbeddingDimensionError: Another number of rows, or a row of another length.
        EmbeddingError: A value is not a finite number, or a row is all zeros.
    """
    if len(rows) != text_count:
        raise EmbeddingDimensionError(model.model, f"{text_count} vectors", f"{len(rows)} vectors")
    try:
        vectors = [np.asarray(row, dtype=np.float64) for row in rows]
    except (TypeError, ValueError, OverflowError) as error:
        message = f"embedding model {model.model} returned values that are not numbers"
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
