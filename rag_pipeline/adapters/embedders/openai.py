"""Embeddings from OpenAI, or from a server with the same API."""

from __future__ import annotations

import base64
import re
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from rag_pipeline.adapters.chat_model import DEFAULT_BASE_URL, TRANSIENT_STATUSES
from rag_pipeline.adapters.chat_replies import find_context
from rag_pipeline.adapters.embedders.service import (
    Provider,
    ServiceEmbedder,
    is_too_large,
)
from rag_pipeline.adapters.http import (
    UNREADABLE,
    limit_answers,
    reading_environment,
    share_certificates,
)
from rag_pipeline.core.errors import EmbeddingError, EmbeddingTooLargeError
from rag_pipeline.core.text.terms import count_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openai

    from rag_pipeline.adapters.embedders.service import BatchAnswer, Purpose
    from rag_pipeline.core.vectors import FloatVector

OPENAI: Final = Provider(
    name="openai",
    kind="an embedding service",
    default_model="text-embedding-3-small",
    default_url=DEFAULT_BASE_URL,
    dims={
        "text-embedding-3-small": 1536,
        "text-embedding-3-large": 3072,
        "text-embedding-ada-002": 1536,
    },
    shortenable=("text-embedding-3-small", "text-embedding-3-large"),
    # Limits of the embeddings endpoint, according to the client's reference of `embeddings.create`:
    # 8,192 tokens per text, 2,048 texts and 300,000 tokens per request. One token is a margin.
    max_input_tokens=8191,
    max_request_texts=2048,
    max_request_tokens=300_000,
    transient_statuses=TRANSIENT_STATUSES,
)

_ENCODING: Final = re.compile("encoding|base64|float", re.IGNORECASE)
_ASK_TIMEOUT_S: Final = 5.0
_FOREIGN_MARGIN: Final = 1.3  # other tokenizers split English into more tokens than cl100k_base


class OpenAIEmbedder(ServiceEmbedder):
    """An embedder that calls the embeddings endpoint of OpenAI or of a compatible server."""

    provider = OPENAI
    _encoding: Literal["base64", "float"] = "base64"  # a fifth of the size of decimal numbers

    @cached_property
    def _client(self) -> openai.OpenAI:
        import httpx2  # noqa: PLC0415  # installed with the openai client
        import openai  # noqa: PLC0415  # takes 0.5 s, which an ingest without new text saves

        with reading_environment():
            http = openai.DefaultHttpxClient(
                verify=share_certificates(),
                event_hooks=limit_answers(httpx2, self._timeout_s),
            )
        weakref.finalize(self, http.close)  # OpenAI's client closes only its own HTTP client
        return openai.OpenAI(
            api_key=self._api_key,
            base_url=self._address,
            default_headers=self._login,
            timeout=self._timeout_s,
            max_retries=0,  # only our own retries are counted and reported
            http_client=http,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's number of cl100k_base tokens, plus 30% if the model is not OpenAI's.

        Another provider's model may have a tokenizer that makes more tokens.
        """
        margin = 1.0 if self._name in OPENAI.dims else _FOREIGN_MARGIN
        return [round(count_tokens(text) * margin) for text in texts]

    def _ask_limit(self) -> int:
        """Ask the server how many tokens one text may have; return 0 if it does not say.

        The limits of OpenAI's own models are known, so OpenAI is not asked. For other servers, the
        three addresses are tried at which common servers describe themselves.
        """
        if self._name in OPENAI.dims:
            return 0
        import httpx2  # noqa: PLC0415  # imported late, as in `_client`
        import openai  # noqa: PLC0415

        root = self._address.rstrip("/").removesuffix("/v1")
        client = self._client.with_options(timeout=min(self._timeout_s, _ASK_TIMEOUT_S))
        for address in (f"{root}/info", f"{root}/props", f"{root}/v1/models"):
            try:
                reply = client.get(address, cast_to=httpx2.Response)
                limit = next(find_context(reply.json(), self._name), 0)
            except (openai.APIError, *UNREADABLE):
                continue
            if limit:
                return limit
        return 0

    def _request(self, texts: Sequence[str], purpose: Purpose) -> BatchAnswer:
        import openai  # noqa: PLC0415  # imported late, as in `_client`

        native = OPENAI.dims.get(self._name, self._model.dim)
        encoding = self._encoding
        try:
            response = self._client.embeddings.create(
                model=self._name,
                input=list(texts),
                dimensions=openai.omit if self._model.dim == native else self._model.dim,
                encoding_format=encoding,
            )
            numbers = [getattr(entry, "index", None) for entry in response.data]
            rows = [_decode(entry.embedding) for entry in response.data]
            charged = response.usage.prompt_tokens if response.usage else None
            tokens = None if charged is None else int(charged)
        except openai.APIStatusError as error:
            reason = _read_reason(error)
            if encoding == "base64" and _ENCODING.search(reason) is not None:
                self._encoding = "float"
                return self._request(texts, purpose)
            waits = error.response.headers.get("retry-after")
            has_quota = error.code != "insufficient_quota"
            translated = self._service.translate_status(
                error.status_code, reason, waits, has_quota=has_quota
            )
            if is_too_large(error.status_code, reason):
                translated = EmbeddingTooLargeError(str(translated))
            raise translated from None  # the client's own messages may contain parts of the key
        except openai.APITimeoutError:
            raise self._service.describe_late(self._timeout_s) from None
        except openai.APIConnectionError as error:
            raise self._service.describe_unreachable(error.__cause__) from None
        except (openai.APIError, *UNREADABLE) as error:
            raise self._service.describe_unreadable(error) from None
        given = [number for number in numbers if number is not None]
        if (
            len(given) < len(numbers) or len({*given}) == 1
        ):  # some servers leave the index out, or 0
            return rows, tokens
        if len(set(given)) < len(given):
            message = f"{self._service.place} returned two vectors with the same index"
            raise EmbeddingError(f"{message}. Check OPENAI_BASE_URL and EMBEDDING_MODEL")
        order = sorted(range(len(given)), key=given.__getitem__)
        return [rows[place] for place in order], tokens


EMBEDDER: Final = OpenAIEmbedder


def _decode(embedding: list[float] | str) -> list[float] | FloatVector:
    """Decode a vector that a service sent as base64 of little-endian float32.

    A vector that the service sent as a list of numbers is returned unchanged.
    """
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding


def _read_reason(error: openai.APIStatusError) -> str:
    """Return the service's own words about a failed request.

    OpenAI's client has them only if they stand where OpenAI's own service puts them. Otherwise the
    result is the text of the response.
    """
    said = error.message
    if not said.startswith("Error code: ") or len(said) > len("Error code: 000"):
        return said
    return error.response.text.strip() or said
