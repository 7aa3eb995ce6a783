"""Embeddings from Cohere, with its different input types for documents and for questions."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import httpx

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.adapters.embedders.service import (
    Provider,
    ServiceEmbedder,
    is_too_large,
)
from rag_pipeline.adapters.http import UNREADABLE, limit_answers, reading_environment
from rag_pipeline.core.errors import EmbeddingTooLargeError, MissingDependencyError

try:
    import cohere
    from cohere.core import ApiError
except ModuleNotFoundError as error:
    raise MissingDependencyError("cohere", "cohere") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.adapters.embedders.service import BatchAnswer, Purpose
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
    max_input_tokens=510,  # 512 positions, two of them for special tokens
    max_request_texts=96,  # according to the client's reference of `embed`
    max_request_tokens=96 * 512,
    transient_statuses=frozenset({408, 429}),
)

_MARGIN: Final = 1.1  # on MiniLM's word pieces, which Cohere's tokenizer only resembles
_COUNTER: Final = LocalEmbedder()


class CohereEmbedder(ServiceEmbedder):
    """An embedder that calls the embed endpoint of Cohere."""

    provider = COHERE

    @cached_property
    def _client(self) -> cohere.ClientV2:
        login = self._login

        def log_in(request: httpx.Request) -> httpx.Request:
            request.headers.update(login)  # replaces the client's own header with the key
            return request

        with reading_environment():
            http = httpx.Client(
                timeout=self._timeout_s,
                follow_redirects=True,
                auth=log_in,
                event_hooks=limit_answers(httpx, self._timeout_s),
            )
        weakref.finalize(self, http.close)  # Cohere's client leaves it open
        return cohere.ClientV2(
            api_key=self._api_key,
            base_url=self._address,
            timeout=self._timeout_s,
            httpx_client=http,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return an estimate of each text's number of tokens: its MiniLM word pieces plus 10%.

        Cohere's own tokenizer is not available offline.
        """
        return [round(count * _MARGIN) for count in _COUNTER.count_tokens(texts)]

    def _request(self, texts: Sequence[str], purpose: Purpose) -> BatchAnswer:
        try:
            response = self._client.embed(
                model=self._name,
                texts=list(texts),
                input_type=f"search_{purpose}",
                embedding_types=["float"],
                truncate="END",
                # The client retries twice by default; only our own retries are counted.
                request_options={"max_retries": 0},
            )
            rows = response.embeddings.float_
            tokens = _read_tokens(response)
        except ApiError as error:
            raise self._translate(error) from None  # the client's message contains all headers
        except httpx.TimeoutException as error:
            raise self._service.describe_late(self._timeout_s) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise self._service.describe_unreachable(error) from error
        except (httpx.RequestError, *UNREADABLE) as error:  # for example endless redirects
            raise self._service.describe_unreadable(error) from error
        if not isinstance(rows, list):
            raise self._service.describe_unreadable("no float vectors")
        return rows, tokens

    def _translate(self, error: ApiError) -> RagPipelineError:
        body = error.body.get("message", "") if isinstance(error.body, dict) else error.body
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        status = error.status_code or 0
        translated = self._service.translate_status(
            status, body or "no message", headers.get("retry-after")
        )
        return EmbeddingTooLargeError(str(translated)) if is_too_large(status, body) else translated


EMBEDDER: Final = CohereEmbedder


def _read_tokens(response: Any) -> int | None:  # noqa: ANN401  # any part of the response may be missing
    units = getattr(getattr(response, "meta", None), "billed_units", None)
    tokens = getattr(units, "input_tokens", None)
    return None if tokens is None else int(tokens)
