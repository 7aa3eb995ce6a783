"""What the domain asks of the outside world, as Protocols; the adapters folder implements them.

Belongs here: signatures and the rules that every implementation keeps. Does not belong here:
anything that runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rag_pipeline.core.ids import DocId, PointId
    from rag_pipeline.core.models import (
        ChunkVectors,
        EmbeddingModel,
        EmbeddingSpace,
        EmbeddingUsage,
        FloatMatrix,
        FloatVector,
        Payload,
        Point,
        QuestionVectors,
        SparseVector,
        Stage,
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


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat model; `role` is `system` or `user`."""

    role: Literal["system", "user"]
    content: str


class ChatModel(Protocol):
    """Writes text from messages."""

    @property
    def name(self) -> str:
        """The model as its service knows it."""

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Write an answer piece by piece; closing the generator, from any thread, ends the request.

        Nothing is sent before the first piece is asked for. A plain generator will do; closed while
        another thread reads it, it ends with its next piece.

        Yields:
            Pieces of text in order, none of them empty.

        Returns:
            True where the answer is complete, False where the token limit or the service's content
            filter cut it.

        Raises:
            AnswerTimeoutError: Not complete in time.
            AnswerServiceError: Not reached, overloaded, or the stream broke off.
            AnswerError: Anything else that is not an answer.
            ConfigurationError: The key or the model's name was refused.
        """


class EmbeddingCache(Protocol):
    """Vectors by model fingerprint and SHA-256 of the exact text embedded; safe with several
    processes.
    """

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Vectors of those hashes that are there."""

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Keep vectors; all of them or none after a crash."""

    def prune(self, keep: Mapping[str, frozenset[str]]) -> int:
        """Forget everything but the named hashes of the named fingerprints; returns how many were
        forgotten.
        """


class Channel(StrEnum):
    """A way to score points against a query."""

    DENSE = "dense"
    WINDOWS = "windows"
    BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class PointFilter:
    """Any of the values of each field, all fields together; an empty field does not restrict.

    Attributes:
        point_ids: None for no restriction; an empty tuple matches nothing.
    """

    modules: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    content_types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    doc_paths: tuple[str, ...] = ()
    point_ids: tuple[PointId, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """One scored search.

    Attributes:
        vector: Sparse for BM25; of shape (dim,) for dense, and (n, dim) for windows, a row for each
            of a question's tokens.
        limit: 1 or more.
    """

    channel: Channel
    vector: FloatVector | FloatMatrix | SparseVector
    limit: int
    where: PointFilter = PointFilter()


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it lies in the store; vectors and terms only where vectors were asked for.

    Attributes:
        vectors: None also where the point has not all of them.
        sparse: Terms of BM25; none at all where the point has no such vector.
    """

    point_id: PointId
    payload: Payload
    vectors: ChunkVectors | None = None
    sparse: SparseVector | None = None


class VectorIndex(Protocol):
    """The reading side of a collection."""

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run searches in one round trip where the store can.

        Returns:
            A list per query, best first, ties by ascending point id; cosine for dense; for windows
            the mean over the query's rows of each one's cosine with the window nearest to it; BM25
            for sparse, points without a common term left out.

        Raises:
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Points by id in the order asked for; ids that are not there are left out."""

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Some fields of points' payloads, which many stores read faster than all; fields and
        points that are not there are left out.
        """

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Dense vectors alone, of unit length; points that are not there or lack theirs are left
        out.
        """

    def count(self, where: PointFilter = PointFilter()) -> int:
        """How many points match, exactly."""

    def scroll(
        self, where: PointFilter = PointFilter(), *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """All matching points by ascending id."""

    def close(self) -> None:
        """Let go of the store; closing twice is fine."""


class PointStore(VectorIndex, Protocol):
    """The writing side of a collection; every write is applied when the call returns and survives
    a kill.
    """

    @property
    def space(self) -> EmbeddingSpace:
        """What the collection was built with."""

    @property
    def collection_id(self) -> str:
        """Changes whenever the collection is made anew, so that a ledger of an older one is not
        believed.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole, over those of the same id."""

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the payloads of existing points, vectors untouched."""

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete points; ids that are not there are passed over."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What was really indexed of one document, written after its points are in (decision 6).

    Attributes:
        sha256: Of the file's bytes that were indexed; empty while its points are being changed.
        size_bytes: With `mtime_ns` the quick test for "unchanged".
        pipeline_fingerprint: Of every setting that shapes chunks, payloads and vectors.
        collection_id: Of the collection that holds the points.
        data_version: Of the chunks written: hash over chunk ids and payload contents.
        run_id: Of the Dagster run that wrote it.
        indexed_at: ISO 8601 in UTC.
    """

    doc_id: DocId
    sha256: str
    size_bytes: int
    mtime_ns: int
    pipeline_fingerprint: str
    collection_id: str
    data_version: str
    chunk_count: int
    run_id: str
    indexed_at: str


@dataclass(frozen=True, slots=True)
class LedgerFailure:
    """A document whose last attempts failed; `attempts` counts those in a row on the same file
    content.
    """

    doc_id: DocId
    sha256: str
    stage: str
    error: str
    message: str
    attempts: int
    failed_at: str


class Ledger(Protocol):
    """The record of what is in the store, one entry a document; each write is atomic."""

    def entries(self) -> dict[DocId, LedgerEntry]:
        """All indexed documents."""

    def failures(self) -> dict[DocId, LedgerFailure]:
        """All documents whose last attempt failed."""

    def record(self, entry: LedgerEntry) -> None:
        """Write an entry over the one before and clear the document's failure."""

    def record_begun(self, entry: LedgerEntry) -> None:
        """Write an entry that matches no file, as points are about to change; a failure stays."""

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write a failure; the entry of what is still in the store stays."""

    def forget(self, doc_id: DocId) -> None:
        """Remove entry and failure of a document; one that is not there is passed over."""


class ArtifactStore(Protocol):
    """Where stage outputs rest, one a stage and document; a reader never sees half of one."""

    def write(self, stage: Stage, doc_id: DocId, data: bytes) -> None:
        """Write an output over the one before."""

    def read(self, stage: Stage, doc_id: DocId) -> bytes | None:
        """Read an output; None where there is none."""

    def remove(self, doc_id: DocId) -> None:
        """Remove all outputs of a document; one that has none is passed over."""

    def keep_only(self, doc_ids: Collection[DocId]) -> None:
        """Remove what killed runs left of all other documents; what fails, a later call tries."""


class CollectionCatalog(Protocol):
    """The builds of one collection: in use, being built, and the one before (decision 7)."""

    def current_id(self) -> str | None:
        """Id of the collection in use; None before the first ingest. Does not open the store."""

    def open_current(self, space: EmbeddingSpace | None = None) -> PointStore:
        """Open the collection in use.

        Args:
            space: What the settings ask for; None opens whatever is there.

        Raises:
            CollectionMissingError: Nothing has been built yet.
            SpaceMismatchError: It was built with another space.
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """

    def open(self, collection_id: str, space: EmbeddingSpace | None = None) -> PointStore:
        """Open a collection by id, in use or not; raises as `open_current`."""

    def create(self, space: EmbeddingSpace) -> PointStore:
        """Make an empty collection beside the one in use; it is not in use before `switch_to`."""

    def switch_to(self, collection_id: str) -> None:
        """Put a collection in use in one step; the one before stays for `roll_back`, older ones
        are deleted.
        """

    def sweep(self) -> None:
        """Delete what killed processes left behind; only while no other ingestion runs here."""

    def find_cells(self) -> list[str]:
        """Names of the collections that `rag-pipeline sweep` built of designs for this one and
        that no other machine can still be at.
        """

    def drop(self) -> None:
        """Delete the collection with all its builds, but for one that a process has open."""

    def roll_back(self) -> str:
        """Put the collection before in use and return its id.

        Raises:
            EarlierCollectionMissingError: There is none.
        """

    def is_wanted(self) -> bool:
        """Whether another process waits to open the collection; False where many may at once."""

    def discard(self, collection_id: str) -> None:
        """Delete a collection that is not in use; one that is not there is passed over."""


class Lock(Protocol):
    """Holds off other ingestions of this machine for the time of a `with` block."""

    def __call__(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Wait at most so long for one that goes on, or as the settings say where it is None.

        Raises:
            StoreLockedError: It went on for all that time.
        """
