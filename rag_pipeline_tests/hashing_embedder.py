"""A real embedder without a model: terms hashed into a unit vector; counts what it was asked."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import EmbeddingError
from rag_pipeline.core.terms import extract_terms
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage, QuestionVectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, Window

DIM: Final = 32


class HashingEmbedder:
    """An `Embedder` whose vectors depend on the text alone; a token is a word.

    Args:
        max_input_tokens: A longer passage is an error, as it is for a service.
        window_words: As `EmbeddingModel.window_words`.
        name: The model's; another name is another embedding space.

    Attributes:
        passages: Every passage asked for, in order, without its windows.
        calls: How often passages were asked for.
    """

    def __init__(
        self, max_input_tokens: int = 400, window_words: int | None = 8, name: str = "terms"
    ) -> None:
        self._model = EmbeddingModel("hashing", name, DIM, max_input_tokens, window_words)
        self.passages: list[str] = []
        self.calls = 0

    @property
    def model(self) -> EmbeddingModel:
        """The model's limits as given."""
        return self._model

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words of each text."""
        return [len(text.split()) for text in texts]

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed each text and each window by itself; one request."""
        self.calls += 1
        self.passages.extend(texts)
        tokens = self.count_tokens(texts)
        if max(tokens, default=0) > self._model.max_input_tokens:
            message = f"a text of {max(tokens)} tokens is longer than the model's input"
            raise EmbeddingError(message)
        cut = [
            read_window(text, window)
            for text, own in zip(texts, windows, strict=False)
            for window in own
        ]
        rows = np.array([_embed(text) for text in (*texts, *cut)], np.float32).reshape(-1, DIM)
        return rows, EmbeddingUsage(requests=1, tokens=sum(tokens))

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question as a passage."""
        return _embed(text)

    def embed_question(self, text: str) -> QuestionVectors:
        """Embed a question, and each of its words by itself."""
        words = list(re.finditer(r"\S+", text))
        rows = np.array([_embed(word.group()) for word in words])
        return QuestionVectors(_embed(text), rows, tuple(word.span() for word in words))


def read_window(text: str, window: Window) -> str:
    """The words of a window."""
    return " ".join(text[start:end] for start, end in window)


def _embed(text: str) -> FloatVector:
    row = np.zeros(DIM, dtype=np.float32)
    for term in (*extract_terms(text), text):
        digest = hashlib.sha256(term.encode("utf-8", "surrogatepass")).digest()
        row[digest[0] % DIM] += 1.0 if digest[1] % 2 else -1.0
        row[digest[2] % DIM] += 0.5
    norm = float(np.linalg.norm(row))
    if norm == 0.0:
        row[0], norm = 1.0, 1.0
    unit: FloatVector = (row / norm).astype(np.float32)
    return unit
