"""Protocols of what turns texts into vectors and term weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.vectors import (
        EmbeddingModel,
        EmbeddingUsage,
        FloatMatrix,
        FloatVector,
        QuestionVectors,
        SparseVector,
        Window,
    )


class Embedder(Protocol):
    """Turns texts into unit vectors of one model."""

    @property
    def model(self) -> EmbeddingModel:
        """Model, dimension and limits; asks no service."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as the model does, special tokens left out; a service whose
        tokens are unknown overestimates.
        """

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts of at most `model.max_input_tokens` each, in order.

        Returns:
            float32, shape (len(texts), model.dim), unit rows, and what it cost. No text gives shape
            (0, dim) and no request.

        Raises:
            EmbeddingServiceError: The service failed, retries spent.
            EmbeddingDimensionError: Rows or their length are not as asked for.
        """

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question: float32, shape (model.dim,), unit length. Raises as `embed_passages`;
        a longer text is cut.
        """


class WindowEmbedder(Embedder, Protocol):
    """What every embedder is whose `model.window_words` is not None."""

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts, and words of them in the light of the whole text.

        Args:
            texts: See `Embedder.embed_passages`.
            windows: Of each of the texts; nothing for no windows.

        Returns:
            One row a text in order, then one a window, text by text; and what it cost. The text's
            own row is the same whatever its windows.
        """

    def embed_question(self, text: str) -> QuestionVectors:
        """Embed a question as `embed_query` does, and each of its tokens in the light of all."""


class SparseEncoder(Protocol):
    """Turns texts into BM25 term weights; the store multiplies by inverse document frequency."""

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Term weights of texts to be found, in order."""

    def encode_query(self, text: str) -> SparseVector:
        """Term weights of a question; empty for a question without terms."""

    def encode_terms(self, terms: Sequence[str]) -> list[SparseVector]:
        """One vector a term, in order; terms as `core.terms.extract_terms` gives them."""


class Reranker(Protocol):
    """Scores passages against a question once more, slower and better than a search does."""

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Relevance of each text, 0 to 1, in order; higher is better."""
