"""Questions as they are searched with: trimmed, cut into what they ask for, embedded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.terms import find_content_words
from rag_pipeline.core.vectors import QuestionVectors
from rag_pipeline.retrieval.parts import split_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols.embedding import Embedder, WindowEmbedder

_PARALLEL: Final = 8  # as many requests as a service adapter has in flight


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    """A question as it is searched with.

    Attributes:
        text: As the models take it.
        vectors: Of the whole question; of its tokens those that are compared with windows.
        parts: What it asks for besides each other, each with its vectors; usually none.
    """

    text: str
    vectors: QuestionVectors
    parts: tuple[tuple[str, QuestionVectors], ...] = ()


def embed_questions(embedder: Embedder, questions: Sequence[str]) -> list[EmbeddedQuestion]:
    """Embed questions and their parts in order, several at a time.

    Raises:
        EmbeddingServiceError: The service failed, retries spent.
        EmbeddingDimensionError: A vector has another length than the model's.
    """
    texts = [question.strip() for question in questions]
    parts = [split_question(text) for text in texts]
    vectors = iter(_embed(embedder, [*texts, *(part for entry in parts for part in entry)]))
    whole = [next(vectors) for _ in texts]
    return [
        EmbeddedQuestion(text, vector, tuple((part, next(vectors)) for part in entry))
        for text, vector, entry in zip(texts, whole, parts, strict=True)
    ]


def keep_content_tokens(text: str, vectors: QuestionVectors) -> QuestionVectors:
    """Leave out tokens of stop words, which windows have none of, and of punctuation.

    A question of nothing else keeps all of them. See docs/adr/0020.
    """
    words = find_content_words(text)
    rows = [
        row
        for row, (start, end) in enumerate(vectors.spans)
        if any(start < behind and end > first for first, behind in words)
    ]
    if not rows:
        return vectors
    spans = tuple(vectors.spans[row] for row in rows)
    return QuestionVectors(vectors.dense, vectors.tokens[rows], spans)


def _embed(embedder: Embedder, texts: Sequence[str]) -> list[QuestionVectors]:
    if len(texts) <= 1:
        found = [_embed_one(embedder, text) for text in texts]
    else:
        with ThreadPoolExecutor(min(_PARALLEL, len(texts))) as pool:
            found = list(pool.map(lambda text: _embed_one(embedder, text), texts))
    model = embedder.model
    for vectors in found:
        if vectors.dense.shape != (model.dim,):
            raise EmbeddingDimensionError(
                model.model, f"{model.dim} dimensions", f"shape {vectors.dense.shape}"
            )
    return found


def _embed_one(embedder: Embedder, text: str) -> QuestionVectors:
    if embedder.model.window_words is not None:
        return keep_content_tokens(text, cast("WindowEmbedder", embedder).embed_question(text))
    dense = embedder.embed_query(text)
    return QuestionVectors(dense, dense[np.newaxis])
