"""Protocols of the models that turn texts into vectors, term weights or relevance scores."""

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
    """An embedding model that turns texts into vectors of unit length."""

    @property
    def model(self) -> EmbeddingModel:
        """Name, dimension and limits of the model. Reading them sends no request."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text for this model, without special tokens.

        For a service whose tokenizer is unknown, the numbers are estimates that are not too low.
        """

    def embed_passages(self, texts: Sequence[str]) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts that may be found by a search.

        Args:
            texts: Texts of at most `model.max_input_tokens` tokens each. For an empty sequence, no
                request is made.

        Returns:
            A float32 matrix of shape (len(texts), model.dim) with rows of unit length in the order
            of the texts, and the cost of the call.

        Raises:
            EmbeddingServiceError: The service failed and all retries are used up.
            EmbeddingDimensionError: The service returned another number of vectors, or vectors of
                another length, than requested.
        """

    def embed_query(self, text: str) -> FloatVector:
        """Return the vector of a question: float32, shape (model.dim,), unit length.

        If a question is longer than the model's input limit, its end is ignored. The errors are
        those of `embed_passages`.
        """


class WindowEmbedder(Embedder, Protocol):
    """An embedder that also makes vectors of windows, for late-interaction (MaxSim) search.

    Every embedder whose `model.window_words` is not None must implement this protocol. A window is
    a group of words of a text that gets its own vector.
    """

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts and their windows, each window in the context of its whole text.

        Args:
            texts: The same as in `Embedder.embed_passages`.
            windows: The windows of each text, in the order of the texts. Empty for no windows.

        Returns:
            A matrix and the cost of the call. The matrix has one row per text in order, then one
            row per window, text by text. The row of a text does not depend on its windows.
        """

    def embed_question(self, text: str) -> QuestionVectors:
        """Return the vectors of a question: one of the whole question and one of each token.

        The vector of a token depends on the whole question. Raises the same errors as
        `embed_passages`.
        """


class SparseEncoder(Protocol):
    """An encoder that turns texts into BM25 term weights for lexical search.

    The vector store multiplies the weights by the inverse document frequency of each term.
    """

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the term weights of texts that may be found by a search, in the same order."""

    def encode_query(self, text: str) -> SparseVector:
        """Return the term weights of a question; empty if the question contains no terms."""

    def encode_terms(self, terms: Sequence[str]) -> list[SparseVector]:
        """Return a sparse query vector for each single term, in the same order.

        Args:
            terms: Terms as `core.terms.extract_terms` returns them.
        """


class Reranker(Protocol):
    """A model that scores how well found passages answer a question.

    It is slower than a search, but more exact, so it only sees the best results of a search.
    """

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return each text's relevance to the question, from 0 to 1 (best), in the same order."""
