"""Embeddings by OpenAI, or by any server that speaks its API.

Belongs here: OpenAI's models, limits, answers and errors. What services share: service_embedding.
"""

from __future__ import annotations

import base64
import time
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.embedders.service import (
    PASSAGE_WAIT_S,
    QUERY_WAIT_S,
    BatchAnswer,
    BatchRunner,
    cut_to_tokens,
    split_batches,
)
from rag_pipeline.adapters.retrying import read_retry_after
from rag_pipeline.adapters.slow_answers import limit_answers
from rag_pipeline.adapters.vendor_text import UNREADABLE, name_host, quote_vendor, separate_login
from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingServiceError,
    RagPipelineError,
)
from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.core.vectors import EmbeddingModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import openai

    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, FloatVector

DEFAULT_MODEL: Final = "text-embedding-3-small"

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

_DIMS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_SHORTENABLE: Final = ("text-embedding-3-small", "text-embedding-3-large")

# Limits of the embeddings endpoint: 8,192 tokens a text, 2,048 texts and 300,000 tokens a request
# (the client's own reference of `embeddings.create`). One token is left as a margin.
_MAX_INPUT_TOKENS: Final = 8191
_MAX_REQUEST_TEXTS: Final = 2048
_MAX_REQUEST_TOKENS: Final = 300_000

_FOREIGN_MARGIN: Final = 1.3  # other tokenizers make more pieces of English than cl100k_base does


class OpenAIEmbedder:
    """An `Embedder` over the embeddings endpoint.

    Args:
        model: Empty for text-embedding-3-small.
        dim: 0 for the model's own; must be named for a model that is not OpenAI's.
        api_key: Sent to the service and to nobody else.
        base_url: Empty for OpenAI itself.
        batch_size: Texts per request, 1 to 2048.
        timeout_s: For one try of one request.
        sleep: Waits between tries.

    Raises:
        ConfigurationError: The model has no such dimension, or none is known.
    """

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
        name = model or DEFAULT_MODEL
        self._model = EmbeddingModel("openai", name, choose_dim(name, dim), _MAX_INPUT_TOKENS)
        self._batch_size = min(batch_size, _MAX_REQUEST_TEXTS)
        self._timeout_s = timeout_s
        self._api_key = api_key
        self._host = name_host(base_url or DEFAULT_BASE_URL)
        self._runner = BatchRunner(self._model, sleep)
        self._address, self._login = separate_login(base_url or DEFAULT_BASE_URL)

    @cached_property
    def _client(self) -> openai.OpenAI:
        import httpx2  # noqa: PLC0415  # comes with the client below
        import openai  # noqa: PLC0415  # half a second that an ingest without new text saves

        http = openai.DefaultHttpxClient(event_hooks=limit_answers(httpx2, self._timeout_s))
        weakref.finalize(self, http.close)  # the vendor's client closes none but its own
        return openai.OpenAI(
            api_key=self._api_key,
            base_url=self._address,
            default_headers=self._login,
            timeout=self._timeout_s,
            max_retries=0,  # ours are counted and reported
            http_client=http,
        )

    @property
    def model(self) -> EmbeddingModel:
        """The model as configured."""
        return self._model

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count cl100k_base tokens, with a margin for models that are not OpenAI's."""
        margin = 1.0 if self._model.model in _DIMS else _FOREIGN_MARGIN
        return [round(count_tokens(text) * margin) for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts, at most 8 requests in flight; see `Embedder.embed_passages`."""
        batches = split_batches(
            texts,
            self.count_tokens(texts),
            max_texts=self._batch_size,
            max_tokens=_MAX_REQUEST_TOKENS,
        )
        return self._runner.run(batches, self._request, longest_wait_s=PASSAGE_WAIT_S)

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question, waiting little between tries."""
        cut = cut_to_tokens(text, self._model.max_input_tokens, lambda t: self.count_tokens([t])[0])
        rows, _ = self._runner.run([[cut]], self._request, longest_wait_s=QUERY_WAIT_S)
        query: FloatVector = rows[0]
        return query

    def _request(self, batch: Sequence[str]) -> BatchAnswer:
        import openai  # noqa: PLC0415  # see _client

        native = _DIMS.get(self._model.model, self._model.dim)
        try:
            response = self._client.embeddings.create(
                model=self._model.model,
                input=list(batch),
                dimensions=openai.omit if self._model.dim == native else self._model.dim,
                encoding_format="base64",  # a fifth of the bytes of decimal numbers
            )
            ordered = sorted(response.data, key=lambda entry: entry.index)
            numbers = [entry.index for entry in ordered]
            rows = [_decode(entry.embedding) for entry in ordered]
            charged = response.usage.prompt_tokens if response.usage else None
            tokens = None if charged is None else int(charged)
        except openai.APIError as error:
            raise self._translate(error) from None  # the vendor's text may show parts of the key
        except UNREADABLE as error:
            message = f"{self._host} did not answer as an embedding service does"
            hint = "Check OPENAI_BASE_URL and EMBEDDING_MODEL"
            raise EmbeddingError(f"{message} ({type(error).__name__}). {hint}") from error
        if len(set(numbers)) < len(numbers):
            message = f"{self._host} gave two vectors of model {self._model.model} one index"
            raise EmbeddingError(f"{message}. Check OPENAI_BASE_URL and the service behind it")
        return BatchAnswer(rows, sum(self.count_tokens(batch)) if tokens is None else tokens)

    def _translate(self, error: openai.APIError) -> RagPipelineError:
        import openai  # noqa: PLC0415  # see _client

        if isinstance(error, openai.APITimeoutError):
            problem = f"did not answer within {self._timeout_s:g} s, three times"
            return EmbeddingServiceError(
                f"the embedding service at {self._host} {problem}. Try again later or raise "
                "EMBEDDING_TIMEOUT_S"
            )
        if isinstance(error, openai.APIStatusError):
            return self._translate_status(error)
        if isinstance(error, openai.APIConnectionError):
            cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            return EmbeddingServiceError(
                f"the embedding service at {self._host} cannot be reached ({cause}). Check the "
                "network and OPENAI_BASE_URL"
            )
        return EmbeddingError(
            f"{self._host} did not answer as an embedding service does "
            f"({type(error).__name__}). Check OPENAI_BASE_URL and EMBEDDING_MODEL"
        )

    def _translate_status(self, error: openai.APIStatusError) -> RagPipelineError:
        status, model = error.status_code, self._model.model
        said = f"HTTP {status}: {quote_vendor(error.message, self._api_key)}"
        if status in {401, 403}:
            problem = f"the embedding service at {self._host} refused it (HTTP {status})"
            return ConfigurationError("OPENAI_API_KEY", problem, "Set a key that may use the model")
        if error.code == "insufficient_quota":
            problem = f"its account at {self._host} has no quota left (HTTP {status})"
            return ConfigurationError("OPENAI_API_KEY", problem, "Add credit or use another key")
        if status in {408, 409, 429} or status >= 500:
            failure = EmbeddingServiceError(
                f"the embedding service at {self._host} failed three times ({said}). Try again "
                "later"
            )
            failure.retry_after_s = read_retry_after(error.response.headers.get("retry-after"))
            return failure
        if status == 404:
            problem = f"the service at {self._host} does not know {model} ({said})"
            return ConfigurationError("EMBEDDING_MODEL", problem, "Check it and OPENAI_BASE_URL")
        return EmbeddingError(
            f"the embedding service at {self._host} refused a request for model {model} ({said}). "
            "Check EMBEDDING_MODEL, EMBEDDING_DIM and EMBEDDING_BATCH_SIZE"
        )


def choose_dim(model: str, dim: int) -> int:
    """The dimension a model will return for EMBEDDING_DIM.

    Raises:
        ConfigurationError: The model has no such dimension, or none is known.
    """
    own = _DIMS.get(model)
    if own is None:
        if dim == 0:
            problem = f"the dimension of {model} is not known"
            raise ConfigurationError(
                "EMBEDDING_DIM", problem, "Set it to the length of its vectors"
            )
        return dim
    if dim > own or (0 < dim < own and model not in _SHORTENABLE):
        problem = f"{model} has {own} dimensions, not {dim}"
        raise ConfigurationError("EMBEDDING_DIM", problem, f"Set it to 0 or {own}")
    return dim or own


def _decode(embedding: list[float] | str) -> list[float] | FloatVector:
    """Read a vector of base64 of little-endian float32; plain numbers stay as they are."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding
