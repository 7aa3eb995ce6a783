"""Base class of the embedders that call a service, and the limits and models of a provider."""

from __future__ import annotations

import logging
import re
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

import numpy as np

from rag_pipeline.adapters.http import Service, call_with_retries, name_host, separate_login
from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
    EmbeddingTooLargeError,
)
from rag_pipeline.core.threads import LeavableThreads
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector

    Purpose: TypeAlias = Literal["document", "query"]
    BatchAnswer: TypeAlias = tuple[Sequence[Sequence[float] | np.ndarray], int | None]

_LOG: Final = logging.getLogger(__name__)

IN_FLIGHT: Final = 8
"""Largest number of requests that one embedder has open at a time, over all its callers."""

LONGEST_WAIT_S: Final = {"document": 60.0, "query": 2.0}
"""Longest single wait: rate limits count per minute, but a reader waits for a question."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An embedding provider: its models, and the limits of one request.

    Attributes:
        name: Name of the provider, as in EMBEDDING_PROVIDER.
        kind: Kind of service in messages, such as "an embedding service".
        default_model: Model that is used if EMBEDDING_MODEL is empty.
        default_url: URL that is used if the URL setting is empty.
        dims: Full dimension of each model, by model name.
        shortenable: Names of the models that can return fewer dimensions.
        max_input_tokens: Largest number of tokens in one text.
        max_request_texts: Largest number of texts in one request.
        max_request_tokens: Largest number of tokens in one request.
        transient_statuses: HTTP statuses below 500 after which a request is retried.
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
        """Return the dimension of the vectors that a model is to return.

        Args:
            model: Name of the model.
            dim: Value of EMBEDDING_DIM; 0 for the model's full dimension.

        Raises:
            ConfigurationError: The model cannot return this dimension, or `dim` is 0 and the
                model's dimension is not known.
        """
        own = self.dims.get(model, dim)
        if own == 0:
            problem = f"the dimension of model {model} is not known"
            remedy = "Set it to the length of the model's vectors"
            raise ConfigurationError("EMBEDDING_DIM", problem, remedy)
        if dim > own or (0 < dim < own and model not in self.shortenable):
            problem = f"model {model} has {own} dimensions, not {dim}"
            raise ConfigurationError("EMBEDDING_DIM", problem, f"Set it to {own}, or to 0")
        return dim or own


_CLEARLY_TOO_LARGE: Final = r"context|too (?:long|large|big|many)|exceed"
_TOO_LARGE: Final = {
    **dict.fromkeys(
        (400, 413, 422), rf"{_CLEARLY_TOO_LARGE}|maximum|max_|token|length|batch size|larger than"
    ),
    500: _CLEARLY_TOO_LARGE,
}
"""Words of services that refuse a request because of its size, by HTTP status."""

_LIMIT: Final = re.compile(
    r"(?:context (?:length|size|window)|n_ctx|less than|at most"
    r"|max(?:imum)?[ _](?:(?:allowed|input|model|context|sequence|token)[ _])*"
    r"(?:length|len|size|tokens?))"
    r"\D{0,30}(\d{2,7})",
    re.IGNORECASE,
)
"""The number of tokens that a service accepts in one text, in its own words."""

_ASKED_FROM: Final = 256  # tokens; the limit of a service is asked only for a longer text
_SPECIAL_TOKENS: Final = 2  # that a model adds to each text
_SHORTEST: Final = 200  # characters; a text that is refused at this length is not cut further


def is_too_large(status: int, text: object) -> bool:
    """Return True if a service's status and own words say that a request is too large for it."""
    words = _TOO_LARGE.get(status)
    return words is not None and re.search(words, str(text), re.IGNORECASE) is not None


def _halve(batch: Sequence[str]) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the halves of a batch, or of its only text; None if the text is short."""
    if len(batch) > 1:
        return batch[: len(batch) // 2], batch[len(batch) // 2 :]
    (text,) = batch
    if len(text) <= _SHORTEST:
        return None
    middle = text.find(" ", len(text) // 2, -1)
    cut = middle if 0 < middle < 2 * len(text) // 3 else len(text) // 2
    return [text[:cut]], [text[cut:]]


class ServiceEmbedder(ABC):
    """Base class of embedders that call a service, with at most `IN_FLIGHT` open requests.

    A subclass sets `provider` and implements `count_tokens` and `_request`.

    Args:
        model: Name of the model. Empty for the provider's default model.
        dim: Dimension of the vectors. 0 means the model's full dimension, and is possible only for
            a model in the provider's list.
        api_key: API key, sent only to the service.
        base_url: URL of the service. Empty for the provider's own URL.
        batch_size: Number of texts per request, limited to what the provider accepts.
        timeout_s: Time limit in seconds for one attempt of one request.
        max_tokens: Largest number of tokens in one text. 0 for the provider's limit.
        query_prefix: Text that the model expects before each question, such as `query: `.
        document_prefix: Text before each text to be found, such as `passage: `.
        sleep: Function that waits the given number of seconds between two attempts.

    Raises:
        ConfigurationError: The model cannot return this dimension, or its dimension is not known.
    """

    provider: ClassVar[Provider]

    def __init__(  # noqa: PLR0913  # one argument for each group of settings
        self,
        *,
        model: str,
        dim: int,
        api_key: str,
        base_url: str,
        batch_size: int,
        timeout_s: float,
        max_tokens: int = 0,
        query_prefix: str = "",
        document_prefix: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        provider = self.provider
        name, url = model or provider.default_model, base_url or provider.default_url
        self._name = name
        self._prefix: dict[Purpose, str] = {"query": query_prefix, "document": document_prefix}
        # Vectors of texts with another prefix are those of another model.
        mark = document_prefix.strip()
        shown = f"{name} ({mark})" if mark else name
        limit = max_tokens or provider.max_input_tokens
        prefixes = [prefix for prefix in self._prefix.values() if prefix]
        used = max(self.count_tokens(prefixes)) if prefixes else 0
        self._model = EmbeddingModel(
            provider.name, shown, provider.choose_dim(name, dim), max(limit - used, 1)
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
        self._has_answered = False
        self._asks_limit = max_tokens == 0
        self._longest = 0

    @property
    def model(self) -> EmbeddingModel:
        """The configured embedding model, with its dimension and token limit."""
        return self._model

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, or an estimate that is not too low."""

    @abstractmethod
    def _request(self, texts: Sequence[str], purpose: Purpose) -> BatchAnswer:
        """Send one request for the vectors of some texts.

        Several threads call this method at the same time.

        Args:
            texts: Texts of one batch.
            purpose: "document" for texts to be found, "query" for a question.

        Returns:
            One vector per text, in the order of the texts, not yet checked or normalized. And the
            number of tokens that the service charges for; None if it does not report it.

        Raises:
            RagPipelineError: The request failed; its `transient` is True if a retry may help.
        """

    def _ask_limit(self) -> int:
        """Return the number of tokens that the service accepts in one text; 0 if it is unknown."""
        return 0

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts in order, with several batches at a time.

        Until the service has answered once, the first text of several batches is sent alone, so
        that a service that hangs is not asked by several threads. If a batch fails after its
        retries, no other batch is sent or retried.

        Returns:
            A float32 matrix of shape (len(texts), model.dim) with rows of unit length, and the
            usage: requests, retries, tokens and seconds.

        Raises:
            EmbeddingError: The service failed, or returned unusable vectors.
            ConfigurationError: The service rejected the key or does not have the model.
        """
        start = time.perf_counter()
        batches = self._split(texts)
        parts = [np.zeros((0, self._model.dim), dtype=np.float32)]
        usage = EmbeddingUsage()
        failures: list[BaseException] = []

        def embed(batch: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
            try:
                return self._embed(batch, "document", failures)
            except BaseException as error:  # an interrupt stops the other threads too
                failures.append(error)
                raise

        alone: list[list[str]] = []
        if len(batches) > 1 and not self._has_answered:
            alone = [[batches[0].pop(0)]]
            batches = [batch for batch in batches if batch]
        try:
            with LeavableThreads(max(1, min(IN_FLIGHT, len(batches)))) as pool:
                for run, group in ((map, alone), (pool.map, batches)):
                    for rows, cost in run(embed, group):
                        parts.append(rows)
                        usage += cost
        except EmbeddingError:
            # The first batch in order may only say that it was not asked, because another failed.
            raise failures[0] from failures[0].__cause__
        seconds = time.perf_counter() - start
        return np.concatenate(parts), usage + EmbeddingUsage(seconds=seconds)

    def embed_query(self, text: str) -> FloatVector:
        """Return the unit vector of a question; what exceeds the token limit is ignored.

        Each wait before a retry is at most 2 s. The errors are those of `embed_passages`.
        """
        tokens = self.count_tokens([text])[0]
        while tokens > self._model.max_input_tokens:
            text = text[: len(text) * self._model.max_input_tokens // tokens]
            tokens = self.count_tokens([text])[0]
        rows, _ = self._embed([text], "query", ())
        query: FloatVector = rows[0]
        return query

    def _embed(
        self, batch: Sequence[str], purpose: Purpose, failures: Sequence[object]
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed one batch with retries; return its vectors, of unit length, and the usage.

        A batch that is too large for the service is sent in halves. So is a text; its vector is
        then the mean over its parts. A limit that the service tells is kept to. No request is sent
        after another thread has added to `failures`.
        """
        halves = _halve(batch) if self._exceeds_limit(batch, purpose) else None
        if halves is None:
            try:
                return self._embed_whole(batch, purpose, failures)
            except EmbeddingTooLargeError as error:
                halves = _halve(batch)
                if halves is None:
                    raise
                self._learn_limit(str(error), batch)
            if len(batch) > 1:
                self._batch_size = min(self._batch_size, max(len(half) for half in halves))
        rows, cost = zip(*(self._embed(half, purpose, failures) for half in halves), strict=True)
        usage = cost[0] + cost[1] + EmbeddingUsage(requests=1)
        if len(batch) > 1:
            return np.concatenate(rows), usage
        shares = [len(half[0]) for half in halves]
        mean = np.average(np.concatenate(rows), axis=0, weights=shares)[np.newaxis]
        return _normalize_rows([*mean], 1, self._model), usage

    def _exceeds_limit(self, batch: Sequence[str], purpose: Purpose) -> bool:
        """Return True if a text of a batch is longer than the service is known to accept."""
        longest = max(self.count_tokens(batch))
        if longest > _ASKED_FROM and self._asks_limit and purpose == "document":
            self._asks_limit = False
            self._longest = self._ask_limit()
        return 0 < self._longest - _SPECIAL_TOKENS < longest

    def _learn_limit(self, words: str, batch: Sequence[str]) -> None:
        """Remember the limit that the service names when it refuses a batch as too large."""
        found = _LIMIT.search(words)
        if found is not None and _SPECIAL_TOKENS < int(found[1]) < max(self.count_tokens(batch)):
            self._asks_limit, self._longest = False, int(found[1])

    def _embed_whole(
        self, batch: Sequence[str], purpose: Purpose, failures: Sequence[object]
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        texts = [self._prefix[purpose] + text for text in batch]

        def request() -> BatchAnswer:
            if failures:
                message = f"{self._service.place} was not asked, because another request failed"
                raise EmbeddingError(message)
            return self._request(texts, purpose)

        with self._slots:
            (vectors, charged), retries = call_with_retries(
                request,
                longest_wait_s=LONGEST_WAIT_S[purpose],
                sleep=self._sleep,
                before_sleep=lambda state: _LOG.log(
                    logging.WARNING if purpose == "document" else logging.DEBUG,
                    "%s. The next try is in %.1f s",
                    state.outcome and state.outcome.exception(),
                    state.upcoming_sleep,
                ),
            )
        self._has_answered = True
        rows = _normalize_rows(vectors, len(batch), self._model)
        tokens = sum(self.count_tokens(texts)) if charged is None else charged
        return rows, EmbeddingUsage(1 + retries, retries, tokens)

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        """Split texts in order into batches, limited by number of texts and of tokens.

        A text that exceeds the token limit by itself gets its own batch.
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
    """Check the vectors of a service and scale them to unit length.

    Returns:
        float32, shape (text_count, model.dim).

    Raises:
        EmbeddingDimensionError: The number of rows or the length of a row is wrong.
        EmbeddingError: A value is not a finite number, or a row is all zeros.
    """
    if len(rows) != text_count:
        raise EmbeddingDimensionError(model.model, f"{text_count} vectors", f"{len(rows)} vectors")
    try:
        vectors = [np.asarray(row, dtype=np.float64) for row in rows]
    except (TypeError, ValueError, OverflowError) as error:
        message = f"embedding model {model.model} returned values that are not numbers"
        raise EmbeddingError(f"{message}. Check the embedding service") from error
    for vector in vectors:
        if vector.shape != (model.dim,):
            found = f"{vector.size} dimensions" if vector.ndim == 1 else "a nested list"
            raise EmbeddingDimensionError(model.model, f"{model.dim} dimensions", found)
    matrix = np.array(vectors).reshape(text_count, model.dim)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        message = f"embedding model {model.model} returned a vector with NaN or only zeros"
        raise EmbeddingError(f"{message}. Check the embedding service")
    unit: FloatMatrix = (matrix / lengths).astype(np.float32)
    return unit
