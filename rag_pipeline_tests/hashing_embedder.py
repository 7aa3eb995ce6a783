"""An embedder without a model, for tests: it hashes the terms of a text into a vector."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import EmbeddingError
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.core.vectors import STORED_DTYPE, EmbeddingModel, EmbeddingUsage, QuestionVectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, Window

DIM: Final = 32


class HashingEmbedder:
    """A `WindowEmbedder` whose vectors depend only on the text. Each word is one token.

    Args:
        max_input_tokens: Longest passage in words. A longer passage raises EmbeddingError.
        window_words: Value of `EmbeddingModel.window_words`.
        name: Name of the model. Embedders with different names have different embedding spaces.

    Attributes:
        passages: Every embedded passage in order, without windows.
        calls: Number of calls of `embed_passages`.
    """

    def __init__(
        self, max_input_tokens: int = 400, window_words: int | None = 8, name: str = "terms"
    ) -> None:
        self._model = EmbeddingModel("hashing", name, DIM, max_input_tokens, window_words)
        self.passages: list[str] = []
        self.calls = 0

    @property
    def model(self) -> EmbeddingModel:
        """Name, dimension and limits of the model, as given to the constructor."""
        return self._model

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text."""
        return [len(text.split()) for text in texts]

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed each text and each window independently, and count it as one request.

        Raises:
            EmbeddingError: A text has more words than the model accepts.
        """
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
        """Return the vector of a question, computed like that of a passage."""
        return _embed(text)

    def embed_question(self, text: str) -> QuestionVectors:
        """Return the vector of a question and of each of its words."""
        words = list(re.finditer(r"\S+", text))
        rows = np.array([_embed(word.group()) for word in words])
        return QuestionVectors(_embed(text), rows, tuple(word.span() for word in words))


def read_window(text: str, window: Window) -> str:
    """Return the words of a window, joined with spaces."""
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
    unit: FloatVector = (row / norm).astype(STORED_DTYPE).astype(np.float32)
    return unit
