"""Embeddings by Cohere, with its input types for documents and for queries.

Belongs here: Cohere's models, limits, answers and errors. What services share: service_embedding.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx

from rag_pipeline.adapters.embedders.local import LocalEmbedder
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
    MissingDependencyError,
    RagPipelineError,
)
from rag_pipeline.core.vectors import EmbeddingModel

try:
    import cohere
    from cohere.core import ApiError
except ModuleNotFoundError as error:
    raise MissingDependencyError("cohere", "cohere") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, FloatVector

DEFAULT_MODEL: Final = "embed-english-v3.0"

DEFAULT_BASE_URL: Final = "https://api.cohere.com"

_DIMS: Final = {
    "embed-english-v3.0": 1024,
    "embed-multilingual-v3.0": 1024,
    "embed-english-light-v3.0": 384,
    "embed-multilingual-light-v3.0": 384,
}
_MAX_INPUT_TOKENS: Final = 510  # 512 positions, two of them special
_MAX_REQUEST_TEXTS: Final = 96  # the client's own reference of `embed`
_MAX_REQUEST_TOKENS: Final = 96 * 512
_MARGIN: Final = 1.1  # over the word pieces of MiniLM, which Cohere's tokenizer is close to


class CohereEmbedder:
    """An `Embedder` over Cohere's embed endpoint.

    Args:
        model: Empty for embed-english-v3.0.
        dim: 0 for the model's own; must be named for a model not known here.
        api_key: Sent to the service and to nobody else.
        base_url: Empty for Cohere itself.
        batch_size: Texts per request; more than 96 counts as 96.
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
        own = _DIMS.get(name, dim)
        if own == 0:
            problem = f"the dimension of {name} is not known"
            raise ConfigurationError(
                "EMBEDDING_DIM", problem, "Set it to the length of its vectors"
            )
        if dim not in {0, own}:
            problem = f"{name} has {own} dimensions, not {dim}"
            raise ConfigurationError("EMBEDDING_DIM", problem, f"Set it to 0 or {own}")
        self._model = EmbeddingModel("cohere", name, own, _MAX_INPUT_TOKENS)
        self._batch_size = min(batch_size, _MAX_REQUEST_TEXTS)
        self._timeout_s = timeout_s
        self._api_key = api_key
        self._host = name_host(base_url or DEFAULT_BASE_URL)
        self._counter = LocalEmbedder()
        self._runner = BatchRunner(self._model, sleep)
        address, login = separate_login(base_url or DEFAULT_BASE_URL)

        def log_in(request: httpx.Request) -> httpx.Request:
            request.headers.update(login)  # over the vendor's own header, which brings the key
            return request

        http = httpx.Client(
            timeout=timeout_s,
            follow_redirects=True,
            auth=log_in,
            event_hooks=limit_answers(httpx, timeout_s),
        )
        weakref.finalize(self, http.close)  # the vendor's client leaves its sockets open
        self._client = cohere.ClientV2(
            api_key=api_key,
            base_url=address,
            timeout=timeout_s,
            httpx_client=http,
        )

    @property
    def model(self) -> EmbeddingModel:
        """The model as configured."""
        return self._model

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count word pieces with a margin; Cohere's own tokenizer is not at hand offline."""
        return [round(count * _MARGIN) for count in self._counter.count_tokens(texts)]

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts as `search_document`; see `Embedder.embed_passages`."""
        batches = split_batches(
            texts,
            self.count_tokens(texts),
            max_texts=self._batch_size,
            max_tokens=_MAX_REQUEST_TOKENS,
        )
        return self._runner.run(
            batches,
            lambda batch: self._request(batch, "search_document"),
            longest_wait_s=PASSAGE_WAIT_S,
        )

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question as `search_query`, waiting little between tries."""
        cut = cut_to_tokens(text, self._model.max_input_tokens, lambda t: self.count_tokens([t])[0])
        rows, _ = self._runner.run(
            [[cut]],
            lambda batch: self._request(batch, "search_query"),
            longest_wait_s=QUERY_WAIT_S,
        )
        query: FloatVector = rows[0]
        return query

    def _request(
        self, batch: Sequence[str], input_type: Literal["search_document", "search_query"]
    ) -> BatchAnswer:
        try:
            response = self._client.embed(
                model=self._model.model,
                texts=list(batch),
                input_type=input_type,
                embedding_types=["float"],
                truncate="END",
                # Ours are counted and reported; the client would retry twice by itself.
                request_options={"max_retries": 0},
            )
            rows = response.embeddings.float_
            if not isinstance(rows, list):
                raise self._not_cohere("no float vectors")
            tokens = _read_tokens(response)
        except ApiError as error:
            raise self._translate(error) from None  # the vendor's text holds all headers
        except httpx.TimeoutException as error:
            raise EmbeddingServiceError(
                f"the embedding service at {self._host} did not answer within "
                f"{self._timeout_s:g} s, three times. Try again later or raise EMBEDDING_TIMEOUT_S"
            ) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise EmbeddingServiceError(
                f"the embedding service at {self._host} cannot be reached "
                f"({type(error).__name__}). Check the network and COHERE_BASE_URL"
            ) from error
        except (httpx.RequestError, *UNREADABLE) as error:  # such as redirects without an end
            raise self._not_cohere(type(error).__name__) from error
        return BatchAnswer(rows, sum(self.count_tokens(batch)) if tokens is None else tokens)

    def _translate(self, error: ApiError) -> RagPipelineError:
        status = error.status_code or 0
        body = error.body.get("message", "") if isinstance(error.body, dict) else error.body
        said = f"HTTP {status}: {quote_vendor(body or 'no message', self._api_key)}"
        if status in {401, 403}:
            problem = f"the embedding service at {self._host} refused it (HTTP {status})"
            return ConfigurationError("COHERE_API_KEY", problem, "Set a key that may use the model")
        if status in {408, 429} or status >= 500:
            failure = EmbeddingServiceError(
                f"the embedding service at {self._host} failed three times ({said}). Try again "
                "later"
            )
            headers = {name.lower(): value for name, value in (error.headers or {}).items()}
            failure.retry_after_s = read_retry_after(headers.get("retry-after"))
            return failure
        if status == 404:
            problem = f"the service at {self._host} does not know {self._model.model} ({said})"
            return ConfigurationError("EMBEDDING_MODEL", problem, "Check it and COHERE_BASE_URL")
        if status < 300:
            return self._not_cohere("malformed JSON")
        return EmbeddingError(
            f"the embedding service at {self._host} refused a request for model "
            f"{self._model.model} ({said}). Check EMBEDDING_MODEL"
        )

    def _not_cohere(self, detail: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._host} did not answer as Cohere does ({detail}). Check COHERE_BASE_URL and "
            "EMBEDDING_MODEL"
        )


def _read_tokens(response: Any) -> int | None:  # noqa: ANN401  # any part of the answer may be missing
    units = getattr(getattr(response, "meta", None), "billed_units", None)
    tokens = getattr(units, "input_tokens", None)
    return None if tokens is None else int(tokens)
