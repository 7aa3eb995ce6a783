"""Vectors of texts: the model and the space they belong to, and the points that carry them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload

    FloatVector: TypeAlias = NDArray[np.float32]
    FloatMatrix: TypeAlias = NDArray[np.float32]


FORMAT_VERSION: Final = 3
"""The version of what ingestion makes of the same Markdown.

Raise it with any change of tokenizer, cleaning, chunking, embedding text or sparse terms.
Collections of another version are refused on open (decision 7) and rebuilt with `rag-pipeline
ingest --rebuild`. A test compares it with a recorded digest of the chunks of a fixed corpus.
"""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model as its provider runs it.

    Attributes:
        max_input_tokens: Longest input in the model's own tokens, special tokens not counted.
        window_words: How many words that are no stop words make a window, which gets a vector of
            its own beside the whole text's; None for no windows.
    """

    provider: str
    model: str
    dim: int
    max_input_tokens: int
    window_words: int | None = None

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever vectors of the same text could."""
        limits = f"{self.max_input_tokens}/{self.window_words or 0}"
        return f"{self.provider}/{self.model}/{self.dim}/{limits}"


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """What all vectors of a collection have in common (decision 7)."""

    model: EmbeddingModel
    format_version: int

    def __str__(self) -> str:
        """Name the space in an error message."""
        return f"{self.model.fingerprint} (format {self.format_version})"


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What embedding cost: service requests, their retries, tokens in the model's own count,
    seconds.
    """

    requests: int = 0
    retries: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: EmbeddingUsage) -> EmbeddingUsage:
        """Sum two usages field by field."""
        return EmbeddingUsage(
            self.requests + other.requests,
            self.retries + other.retries,
            self.tokens + other.tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights: `indices` are unsigned 32-bit term ids in ascending order, `values` their
    weights.
    """

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkVectors:
    """Vectors of one embedded text.

    Attributes:
        dense: Shape (dim,), unit length: the whole text.
        windows: Shape (n, dim), n >= 1, unit rows: its windows of words in order; the dense vector
            alone for a model without windows, or a text without words.
    """

    dense: FloatVector
    windows: FloatMatrix


Window: TypeAlias = tuple[tuple[int, int], ...]
"""Where the words of a window stand in their text: spans of characters in order."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionVectors:
    """Vectors of a question.

    Attributes:
        dense: Shape (dim,), unit length: the whole question.
        tokens: Shape (n, dim), n >= 1, unit rows: its tokens in order, to be compared with windows;
            the dense vector alone for a model without windows.
        spans: First and one past the last character of each token; empty for a model without
            windows.
    """

    dense: FloatVector
    tokens: FloatMatrix
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A chunk as the store keeps it."""

    point_id: PointId
    vectors: ChunkVectors
    sparse: SparseVector
    payload: Payload
