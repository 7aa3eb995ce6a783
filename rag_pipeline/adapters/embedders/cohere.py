"""Embeddings by Cohere, with its input types for documents and for queries."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import httpx

from rag_pipeline.adapters.connections import limit_answers
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.adapters.embedders.service import BatchAnswer, Provider, ServiceEmbedder
from rag_pipeline.adapters.http import UNREADABLE
from rag_pipeline.core.errors import MissingDependencyError

try:
    import cohere
    from cohere.core import ApiError
except ModuleNotFoundError as error:
    raise MissingDependencyError("cohere", "cohere") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.adapters.embedders.service import Purpose
    from rag_pipeline.core.errors import RagPipelineError

COHERE: Final = Provider(
    name="cohere",
    kind="Cohere",
    default_model="embed-english-v3.0",
    default_url="https://api.cohere.com",
    dims={
        "embed-english-v3.0": 1024,
        "embed-multilingual-v3.0": 1024,
        "embed-english-light-v3.0": 384,
        "embed-multilingual-light-v3.0": 384,
    },
    shortenable=(),
    max_input_tokens=510,  # 512 positions, two of them special
    max_request_texts=96,  # the client's own reference of `embed`
    max_request_tokens=96 * 512,
    transient_statuses=frozenset({408, 429}),
)

_MARGIN: Final = 1.1  # over the word pieces of MiniLM, which Cohere's tokenizer is close to
_COUNTER: Final = LocalEmbedder()


class CohereEmbedder(ServiceEmbedder):
    """An `Embedder` over Cohere's embed endpoint."""

    provider = COHERE

    @cached_property
    def _client(self) -> cohere.ClientV2:
        login = self._login

        def log_in(request: httpx.Request) -> httpx.Request:
            request.headers.update(login)  # over the vendor's own header, which brings the key
            return request

        http = httpx.Client(
            timeout=self._timeout_s,
            follow_redirects=True,
            auth=log_in,
            event_hooks=limit_answers(httpx, self._timeout_s),
        )
        weakref.finalize(self, http.close)  # the vendor's client leaves its sockets open
        return cohere.ClientV2(
            api_key=self._api_key,
            base_url=self._address,
            timeout=self._timeout_s,
            httpx_client=http,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count word pieces with a margin; Cohere's own tokenizer is not at hand offline."""
        return [round(count * _MARGIN) for count in _COUNTER.count_tokens(texts)]

    def _request(self, texts: Sequence[str], purpose: Purpose) -> BatchAnswer:
        try:
            response = self._client.embed(
                model=self._model.model,
                texts=list(texts),
                input_type=f"search_{purpose}",
                embedding_types=["float"],
                truncate="END",
                # Ours are counted and reported; the client would retry twice by itself.
                request_options={"max_retries": 0},
            )
            rows = response.embeddings.float_
            tokens = _read_tokens(response)
        except ApiError as error:
            raise self._translate(error) from None  # the vendor's text holds all headers
        except httpx.TimeoutException as error:
            raise self._service.describe_late(self._timeout_s) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self._service.describe_unreachable(error) from error
        except (httpx.RequestError, *UNREADABLE) as error:  # such as redirects without an end
            raise self._service.describe_unreadable(type(error).__name__) from error
        if not isinstance(rows, list):
            raise self._service.describe_unreadable("no float vectors")
        return BatchAnswer(rows, tokens)

    def _translate(self, error: ApiError) -> RagPipelineError:
        body = error.body.get("message", "") if isinstance(error.body, dict) else error.body
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        return self._service.translate_status(
            error.status_code or 0, body or "no message", headers.get("retry-after")
        )


EMBEDDER: Final = CohereEmbedder


def _read_tokens(response: Any) -> int | None:  # noqa: ANN401  # any part of the answer may be missing
    units = getattr(getattr(response, "meta", None), "billed_units", None)
    tokens = getattr(units, "input_tokens", None)
    return None if tokens is None else int(tokens)
