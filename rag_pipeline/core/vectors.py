"""Data classes for embeddings: models, embedding spaces, vectors, and points of the store."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload

    FloatVector: TypeAlias = NDArray[np.float32]
    FloatMatrix: TypeAlias = NDArray[np.float32]


FORMAT_VERSION: Final = 18
"""Version of the chunks, texts and terms that ingestion derives from the same Markdown.

Increase it with every change of the tokenizer, cleaning, chunking, embedding text or sparse terms.
A collection with another version is refused when it is opened, and must be built again with
`rag-pipeline ingest --rebuild`. A test compares the chunks of a
fixed corpus with a recorded digest.
"""


STORED_DTYPE: Final = "<f2"
"""numpy's name of the numbers in which vectors are stored: little-endian, 16 bits.

A new embedding is rounded to them at once, so a vector is the same whether it was just computed or
read from the cache. The rounding changes no score by more than 0.001.
"""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Name, dimension and input limits of an embedding model.

    Attributes:
        provider: Name of the provider that runs the model, such as `local` or `openai`.
        model: Name of the model at the provider.
        dim: Number of components of each vector.
        max_input_tokens: Longest input in the model's own tokens, without special tokens.
        window_words: Number of words (stop words not counted) in a window. A window is a part of a
            text that gets its own vector, for late-interaction (MaxSim) scores. None if the model
            makes no window vectors.
    """

    provider: str
    model: str
    dim: int
    max_input_tokens: int
    window_words: int | None = None

    @property
    def fingerprint(self) -> str:
        """A text that identifies the model and changes if the same text could get other vectors."""
        limits = f"{self.max_input_tokens}/{self.window_words or 0}"
        return f"{self.provider}/{self.model}/{self.dim}/{limits}"


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The embedding model and format version that all vectors of a collection share.

    Vectors of different embedding spaces cannot be compared.

    Attributes:
        model: The embedding model.
        format_version: `FORMAT_VERSION` of the release that built the collection.
    """

    model: EmbeddingModel
    format_version: int

    def name_remedy(self, wanted: EmbeddingSpace) -> str:
        """Return the step, for an error message, after which a collection of this space is usable.

        Args:
            wanted: The space that the settings ask for, which differs from this one.
        """
        if self.format_version != wanted.format_version:
            return "install the release that built it"
        model, steps = self.model, []
        if (model.provider, model.model) != (wanted.model.provider, wanted.model.model):
            steps = [f"EMBEDDING_PROVIDER={model.provider}", f"EMBEDDING_MODEL={model.model}"]
        if model.dim != wanted.model.dim:
            steps.append(f"EMBEDDING_DIM={model.dim}")
        return f"set {' and '.join(steps)}" if steps else "install the release that built it"

    def __str__(self) -> str:
        """Return the model's fingerprint and the format version, for error messages."""
        return f"{self.model.fingerprint} (format {self.format_version})"


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """The cost of embedding some texts.

    Attributes:
        requests: Number of requests to the embedding service.
        retries: Number of requests that were repeated after a failure.
        tokens: Number of embedded tokens, as the model counts them.
        seconds: Time spent on embedding.
    """

    requests: int = 0
    retries: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: EmbeddingUsage) -> EmbeddingUsage:
        """Return the field-by-field sum of two usages."""
        return EmbeddingUsage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class SparseVector:
    """The weights of a text's terms, for lexical search with BM25.

    Attributes:
        indices: Ids of the terms as unsigned 32-bit integers, in ascending order.
        values: Weight of each term, in the same order.
    """

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkVectors:
    """The vectors of one embedded text.

    Attributes:
        dense: Vector of the whole text, of shape (dim,) and unit length.
        windows: Vectors of the text's windows of words in order, of shape (n, dim) with n >= 1 and
            rows of unit length. If there are no windows (the model makes none, or the text has no
            words), there is one row per part in which the text was embedded. A text has several
            parts only if it is longer than the model's input.
    """

    dense: FloatVector
    windows: FloatMatrix


Window: TypeAlias = tuple[tuple[int, int], ...]
"""The words of a window: start and end (exclusive) of each word in the text, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionVectors:
    """The vectors of one question.

    Attributes:
        dense: Vector of the whole question, of shape (dim,) and unit length.
        tokens: Vectors of the question's tokens in order, of shape (n, dim) with n >= 1 and rows of
            unit length. They are compared with the window vectors of chunks. For a model without
            windows, the only row is `dense`.
        spans: Start and end (exclusive) of each token's characters in the question. Empty for a
            model without windows.
    """

    dense: FloatVector
    tokens: FloatMatrix
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A chunk as it is written to the vector store.

    Attributes:
        point_id: The chunk id as an integer.
        vectors: The dense vector and the window vectors of the chunk.
        sparse: The BM25 term weights of the chunk.
        payload: The stored fields of the chunk, see `core.payload`.
    """

    point_id: PointId
    vectors: ChunkVectors
    sparse: SparseVector
    payload: Payload


def round_numbers(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors rounded to the numbers that are stored (`STORED_DTYPE`), as float32."""
    return vectors.astype(STORED_DTYPE).astype("<f4")
