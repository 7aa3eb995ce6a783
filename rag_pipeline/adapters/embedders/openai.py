"""Embeddings by OpenAI, or by any server that speaks its API."""

from __future__ import annotations

import base64
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.connections import limit_answers
from rag_pipeline.adapters.embedders.service import BatchAnswer, Provider, ServiceEmbedder
from rag_pipeline.adapters.http import UNREADABLE
from rag_pipeline.adapters.openai_api import (
    DEFAULT_BASE_URL,
    TRANSIENT_STATUSES,
    translate_error,
)
from rag_pipeline.core.errors import EmbeddingError
from rag_pipeline.core.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openai

    from rag_pipeline.adapters.embedders.service import Purpose
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
    # Limits of the embeddings endpoint: 8,192 tokens a text, 2,048 texts and 300,000 tokens a
    # request (the client's own reference of `embeddings.create`). One token is left as a margin.
    max_input_tokens=8191,
    max_request_texts=2048,
    max_request_tokens=300_000,
    transient_statuses=TRANSIENT_STATUSES,
)

_FOREIGN_MARGIN: Final = 1.3  # other tokenizers make more pieces of English than cl100k_base does


class OpenAIEmbedder(ServiceEmbedder):
    """An `Embedder` over the embeddings endpoint."""

    provider = OPENAI

    @cached_property
    def _client(self) -> openai.OpenAI:
        import httpx2  # noqa: PLC0415  # comes with the client below
        import openai  # noqa: PLC0415  # half a second that an ingest without new text saves

        http = openai.DefaultHttpxClient(event_hooks=limit_answers(httpx2, self._timeout_s))
        weakref.finalize(self, http.close)  # the vendor's client closes only its own
        return openai.OpenAI(
            api_key=self._api_key,
            base_url=self._address,
            default_headers=self._login,
            timeout=self._timeout_s,
            max_retries=0,  # ours are counted and reported
            http_client=http,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count cl100k_base tokens, with a margin for models that are not OpenAI's."""
        margin = 1.0 if self._model.model in OPENAI.dims else _FOREIGN_MARGIN
        return [round(count_tokens(text) * margin) for text in texts]

    def _request(self, texts: Sequence[str], _: Purpose) -> BatchAnswer:
        import openai  # noqa: PLC0415  # see _client

        native = OPENAI.dims.get(self._model.model, self._model.dim)
        try:
            response = self._client.embeddings.create(
                model=self._model.model,
                input=list(texts),
                dimensions=openai.omit if self._model.dim == native else self._model.dim,
                encoding_format="base64",  # a fifth of the bytes of decimal numbers
            )
            ordered = sorted(response.data, key=lambda entry: entry.index)
            numbers = [entry.index for entry in ordered]
            rows = [_decode(entry.embedding) for entry in ordered]
            charged = response.usage.prompt_tokens if response.usage else None
            tokens = None if charged is None else int(charged)
        except openai.APIError as error:
            raise translate_error(error, self._service, self._timeout_s) from None
        except UNREADABLE as error:
            raise self._service.describe_unreadable(type(error).__name__) from error
        if len(set(numbers)) < len(numbers):
            message = f"{self._service.place} gave two vectors one index"
            raise EmbeddingError(f"{message}. Check OPENAI_BASE_URL and EMBEDDING_MODEL")
        return BatchAnswer(rows, tokens)


EMBEDDER: Final = OpenAIEmbedder


def _decode(embedding: list[float] | str) -> list[float] | FloatVector:
    """Read a vector of base64 of little-endian float32; plain numbers stay as they are."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding
