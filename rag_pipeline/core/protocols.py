"""Protocols of the models, services and stores that the package uses. Adapters implement them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias

from rag_pipeline.core.payload import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from rag_pipeline.core.ids import DocId, PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.site.addresses import RecordedSite
    from rag_pipeline.core.vectors import (
        ChunkVectors,
        EmbeddingModel,
        EmbeddingSpace,
        EmbeddingUsage,
        FloatMatrix,
        FloatVector,
        Point,
        QuestionVectors,
        SparseVector,
        Window,
    )


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat model.

    Attributes:
        role: `system` for instructions, `user` for the question and its sources.
        content: Text of the message.
    """

    role: Literal["system", "user"]
    content: str


class ChatStream(Protocol):
    """An asynchronous iterator over the pieces of a model's text, none of them empty.

    Attributes:
        complete: False if the token limit or the service's content filter cut the text off. Known
            after the last piece.
    """

    complete: bool

    def __aiter__(self) -> Self:
        """Return the stream itself."""

    async def __anext__(self) -> str:
        """Return the next piece of text.

        Raises:
            AnswerTimeoutError: No text arrived within the time limit.
            AnswerServiceError: The service cannot be reached or is overloaded, or the stream broke
                off.
            AnswerContextError: The messages are longer than the context of the model.
            AnswerError: The service's response is not an answer.
            ConfigurationError: The service refused the API key or the name of the model.
        """

    async def aclose(self) -> None:
        """Abort the request. A second call does nothing.

        Another task may call this while one waits for a piece; its iteration then ends.
        """


class ChatModel(Protocol):
    """A language model that answers messages with text."""

    @property
    def name(self) -> str:
        """Name of the model, as the service that runs the model knows it."""

    @property
    def prompt_tokens(self) -> int:
        """Most tokens of the messages, so that they and the answer fit in the model's context."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, or a safe estimate of it."""

    async def prepare(self) -> None:
        """Learn what the server tells about the model. Call it before `prompt_tokens` is read.

        No failure of the server raises an error.
        """

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return a stream of the answer to the messages.

        The request is sent when the first piece is read.

        Args:
            messages: The instructions and the question.
            stop: At most four texts at which the model ends its answer.
        """


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


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer that the service gave.

    Attributes:
        answer_id: Id of the answer.
        conversation_id: Id of the conversation that the answer belongs to.
        asked_at: The time of the question, in UTC.
        mode: `normal` or `selected_text_only`.
        kind: `generated`, `extracted`, `refused` or `reply`.
        level: `answered`, `closest_passages`, `not_covered` or `no_question`.
        reason: Why the passages suffice or not, such as `sufficient` or `not_covered`.
        question: The question as asked; None if questions are not logged.
        search_question: What was searched instead of the question; None if nothing else was, or if
            questions are not logged.
        confidence: Estimated probability that the passages contain the answer; None if unknown.
        sources: URLs of the sections that were cited, or that a refusal suggested, best first.
        model: Name of the model that wrote the answer; None if none did.
        index_id: Id of the collection that was searched.
        latency_ms: Milliseconds from the request to the complete answer.
    """

    answer_id: str
    conversation_id: str
    asked_at: datetime
    mode: str
    kind: str
    level: str
    reason: str
    question: str | None = None
    search_question: str | None = None
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    model: str | None = None
    index_id: str = ""
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Rating:
    """A reader's rating of one answer. A later rating of the same answer replaces it.

    Attributes:
        answer_id: Id of the answer.
        rated_at: The time of the rating, in UTC.
        rating: 1 (bad) to 5 (good). A thumb up counts as 5, a thumb down as 1.
        tags: Short labels, such as `wrong_section`.
        note: What the reader wrote; may be empty.
    """

    answer_id: str
    rated_at: datetime
    rating: int
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Services:
    """The models, stores and files that an ingestion uses. The settings decide which they are.

    Attributes:
        embedder: Embedding model.
        sparse: Encoder of BM25 term weights.
        cache: Vectors of texts that were embedded before.
        catalog: Vector store with all builds (versions) of the book's collection.
        open_ledger: Function that takes the id of a build and returns its ledger.
        lock: Lock that prevents a second ingestion of the same book at the same time.
        announce: Function that returns a context manager for a run that holds `lock`. The context
            manager yields a function that tells other processes how far the run is.
        sweep: Function that deletes the files and collections that killed ingestions left behind.
            The caller must hold `lock`.
        run_locks: Locks by which other machines see that a run is alive; None with a ledger in
            files, because then the book is indexed on one machine.
    """

    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    catalog: CollectionCatalog
    open_ledger: Callable[[str], Ledger]
    lock: Lock
    announce: Callable[[], AbstractContextManager[Announce]]
    sweep: Callable[[], None]
    run_locks: RunLocks | None = None


class EmbeddingCache(Protocol):
    """A cache of the vectors of embedded texts, which several processes may use at the same time.

    Besides the vector store, it is the only place that has the vectors.
    The key of an entry is the fingerprint of the embedding model and the SHA-256 of the text.
    """

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors of the given texts, by text hash; missing texts are left out.

        Args:
            fingerprint: Fingerprint of the embedding model.
            text_hashes: SHA-256 of each embedded text.
        """

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of texts.

        A crash may lose entries, but never leaves a part of an entry.

        Args:
            fingerprint: Fingerprint of the embedding model.
            vectors: The vectors of each text, by the SHA-256 of the text.
        """

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete all entries except the given ones and return the number of deleted entries.

        Args:
            keep: Text hashes to keep, by fingerprint of the embedding model. Each is read once.
        """

    def close(self) -> None:
        """Release the file or connection; the next call opens it again."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The ledger's record of one indexed document.

    It is written when all points of the document are stored. A provisional entry, with an empty
    `sha256`, is written before the points are changed.

    Attributes:
        doc_id: Path of the document below the docs folder.
        sha256: Hash of the bytes of the indexed file; empty in a provisional entry.
        size_bytes: Size of the file. A file with the same size and `mtime_ns` counts as unchanged.
        mtime_ns: Time of the file's last change in nanoseconds.
        pipeline_fingerprint: Hash of every setting that affects chunks, payloads or vectors.
        collection_id: Id of the collection that contains the points.
        data_version: Hash of the ids and payloads of the stored chunks.
        chunk_count: Number of the document's chunks.
        run_id: Id of the ingestion run that wrote the entry.
        indexed_at: Time of writing, ISO 8601 in UTC.
        version: Number of writes of this entry. A write succeeds only if the ledger still has the
            version that the writer has read. 0 means that the writer has found no entry.
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
    version: int = 0


@dataclass(frozen=True, slots=True)
class LedgerFailure:
    """The record of a document whose last ingestion failed.

    Attributes:
        doc_id: Path of the document below the docs folder.
        sha256: Hash of the file's bytes at the last attempt.
        stage: Name of the stage that failed.
        error: Code or class name of the error.
        message: Message of the error.
        attempts: Number of failures in a row with the same file content.
        failed_at: Time of the last failure, ISO 8601 in UTC.
    """

    doc_id: DocId
    sha256: str
    stage: str
    error: str
    message: str
    attempts: int
    failed_at: str


class Ledger(Protocol):
    """The record of what is indexed in a collection, with one entry per document.

    Each write of an entry compares and swaps: it succeeds only if the ledger has the version of the
    entry that the writer has read. A worker with old knowledge thus changes no newer entry.
    """

    def entries(self) -> dict[DocId, LedgerEntry]:
        """Return the entries of indexed documents, by document id."""

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failures of documents whose last ingestion failed, by document id."""

    def record(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the entry of a document, replacing its old entry, and delete its failure record.

        Args:
            entry: The new entry, with the version of the entry that it replaces.

        Returns:
            The entry with its new version, for the next write.

        Raises:
            LedgerConflictError: The ledger has another version. Nothing was written.
        """

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write a provisional entry for a document, before the document's points are changed.

        The entry's `sha256` is empty and so matches no file. If the process is killed before
        `record` is called, the document is therefore indexed again. Its failure record is kept.
        Argument, result and errors are those of `record`.
        """

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document. Its ledger entry, if any, stays unchanged.

        A failure only causes another try, so this write compares nothing.
        """

    def forget(self, doc_id: DocId, version: int) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Args:
            doc_id: Id of the document.
            version: The version of the entry that the caller has read; 0 if it has found none.

        Raises:
            LedgerConflictError: The ledger has another version. Nothing was deleted.
        """

    def claim(self, doc_ids: Collection[DocId], run_id: str) -> set[DocId]:
        """Claim documents for a run, and return those that the run has now.

        A document that another run has claimed is not returned, as long as a process holds the lock
        of that run. So the caller holds the lock of its own run.
        """

    def release(self, run_id: str) -> None:
        """Give back all claims of a run."""

    def record_site(self, site: RecordedSite) -> None:
        """Write the site for which the links of all indexed documents were built."""

    def read_site(self) -> RecordedSite | None:
        """Return what `record_site` wrote; None if there is nothing readable."""


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """How far a running ingestion is.

    Attributes:
        done: Number of documents whose current content is indexed or has failed.
        total: Number of documents in the docs folder; 0 if they have not been counted yet.
    """

    done: int
    total: int


Announce: TypeAlias = "Callable[[int, int], None]"
"""Tells other processes the numbers `done` and `total` of the running ingestion."""


class Lock(Protocol):
    """A lock of a book that only one process can hold at a time."""

    def __call__(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Return a context manager that holds the lock during a `with` block.

        Args:
            timeout_s: Longest wait for the lock in seconds; None for the wait set in the settings.

        Raises:
            StoreLockedError: Another process held the lock during the whole wait.
        """


class RunLock(Protocol):
    """The lock of a run, held while a process executes the run."""

    def check(self) -> None:
        """Check that the lock was held without a break, so that the run may write more documents.

        Raises:
            DatabaseUnavailableError: The connection of the lock was lost. The run must end.
        """

    def release(self) -> None:
        """Release the lock."""


class RunLocks(Protocol):
    """Locks by which all machines see which runs of a book have a living process."""

    @property
    def state_name(self) -> str:
        """Name of the book's state, equal on all machines."""

    def hold(self, run_id: str) -> RunLock:
        """Take the lock of a run, and return it. Several processes can hold it at the same time.

        The lock ends with the process, its machine or its network.

        Raises:
            DatabaseUnavailableError: The database of the locks cannot be reached.
        """

    def find_held(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs whose lock a process on any machine holds.

        Raises:
            DatabaseUnavailableError: The database of the locks cannot be reached.
        """


class Channel(StrEnum):
    """A way to score points against a query.

    `DENSE` is the cosine of question and chunk, each embedded as a whole. `WINDOWS` is the
    late-interaction (MaxSim) score of the question's tokens with the chunk's windows (groups of
    words). `BM25` is the lexical score of the terms that question and chunk share.
    """

    DENSE = "dense"
    WINDOWS = "windows"
    BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class PointFilter:
    """A filter that matches points by payload fields and point ids. Build it with `any_of`.

    A point matches if each named field has one of the given values. The default matches all points.

    Attributes:
        fields: Pairs of the name of a payload field, which must have a keyword index, and its
            allowed values.
        point_ids: The only ids that match; None for no restriction. An empty tuple matches nothing.
        without: Names of payload fields that a matching point must not have.
    """

    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    point_ids: tuple[PointId, ...] | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def any_of(cls, **values: Iterable[str]) -> PointFilter:
        """Return a filter for points whose fields have one of the given values.

        Args:
            **values: Allowed values by name of the payload field. Empty values do not restrict.

        Raises:
            ValueError: The stores keep no keyword index for a field.
        """
        unindexed = values.keys() - FILTERS.keys()
        if unindexed:
            raise ValueError(f"the stores keep no index for {', '.join(sorted(unindexed))}")
        fields = ((name, tuple(allowed)) for name, allowed in values.items())
        return cls(tuple(field for field in fields if field[1]))


ALL_POINTS: Final = PointFilter()
"""The filter that matches all points."""


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """A search that scores points in one way (channel).

    Attributes:
        channel: The way to score points.
        vector: A sparse vector for `BM25`, an array of shape (dim,) for `DENSE`, and an array of
            shape (n, dim) for `WINDOWS`, with one row per token of the question.
        limit: Highest number of results, at least 1.
        where: Only points that match this filter are searched.
        corpus: The points over which `BM25` counts how rare a term is; the default counts all.
    """

    channel: Channel
    vector: FloatVector | FloatMatrix | SparseVector
    limit: int
    where: PointFilter = PointFilter()
    corpus: PointFilter = PointFilter()


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it is read from the store.

    Attributes:
        point_id: Id of the point.
        payload: All stored fields of the point.
        vectors: Dense vector and window vectors. None if vectors were not requested, or if the
            point lacks one of them.
        sparse: BM25 term weights. None if vectors were not requested. A vector without terms if the
            point has no term weights.
    """

    point_id: PointId
    payload: Payload
    vectors: ChunkVectors | None = None
    sparse: SparseVector | None = None


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Facts about all points of a build.

    Attributes:
        point_count: Number of points. It may be approximate while points are written.
        late_fields: Names of `payload.LATE_INDEXES` that points may have. No point has one of the
            other names.
    """

    point_count: int
    late_fields: frozenset[str]


class VectorIndex(Protocol):
    """Read access to one build (version) of a collection in a vector store."""

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run several searches, if possible in one request.

        Returns:
            One list of point ids and scores per query, best first; equal scores are ordered by
            ascending point id. The score of `DENSE` is the cosine. For `WINDOWS`, each row of the
            query is compared with all windows of the point, and the score is the mean of the rows'
            highest cosines. For `BM25` it is the BM25 score; points without a term of the query are
            left out.

        Raises:
            StoreUnavailableError: The store cannot be reached, does not answer in time, or is
                locked by another process.
        """

    def search_and_fetch(
        self, queries: Sequence[ChannelQuery], point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> tuple[list[list[tuple[PointId, float]]], dict[PointId, Payload]]:
        """Return the results of `search_many` and of `fetch_fields`, if possible in one request."""

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return the points with the given ids, in the same order.

        Ids that the store does not have are left out.

        Args:
            point_ids: Ids of the points to read.
            with_vectors: Also read the vectors and term weights of the points.
        """

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Return a part of each point's payload, by point id: only the given fields.

        Many stores read a few fields faster than whole payloads. Points and fields that the store
        does not have are left out.
        """

    def fetch_with_dense(
        self, point_ids: Sequence[PointId]
    ) -> dict[PointId, tuple[Payload, FloatVector | None]]:
        """Return the payloads and the dense vectors of points, of unit length, by point id.

        The vector is None for a point that has no dense vector, because it was changed by hand.
        Points that the store does not have are left out.
        """

    def count(self, where: PointFilter = PointFilter()) -> int:
        """Return the exact number of points that match the filter."""

    def describe(self) -> IndexFacts:
        """Return facts about all points in one request, without a scan."""

    def scroll(
        self, where: PointFilter = PointFilter(), *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return all points that match the filter, by ascending id.

        Args:
            where: The filter; the default matches all points.
            with_vectors: Also read the vectors and term weights of the points.
        """

    def scroll_fields(
        self, fields: Sequence[str], where: PointFilter = PointFilter()
    ) -> Iterator[tuple[PointId, Payload]]:
        """Yield the id of each matching point and some fields of its payload, by ascending id.

        The points are read page by page, so the memory does not grow with their number.

        Args:
            fields: Names of the fields; a field that a point lacks is left out.
            where: The filter; the default matches all points.
        """

    def close(self) -> None:
        """Close the connection or files of the store. A second call does nothing."""


class PointStore(VectorIndex, Protocol):
    """Read and write access to one build (version) of a collection in a vector store.

    When a method that writes returns, readers see the change, and it survives the end of the
    process; see also `write_together`.
    """

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space (model and format version) that the build was made with."""

    @property
    def collection_id(self) -> str:
        """The id of the opened build, which no other build ever has.

        The ledger (the record of what is indexed) is stored under this id, so it is never used with
        another build.
        """

    def write_together(self) -> AbstractContextManager[None]:
        """Return a context manager for several changes, which writes them to the disk at its end.

        Only when the block has ended do all changes in it survive the end of the process.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write complete points. An existing point with the same id is replaced."""

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the whole payloads of existing points and keep their vectors."""

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete the points with the given ids. Ids that the store does not have are ignored."""


class CollectionCatalog(Protocol):
    """All builds of one collection: the current, the previous, and those being built.

    A build is one version of the collection with its own id. Queries use the current build; the
    previous build is kept so that `roll_back` can return to it.
    """

    @property
    def is_exclusive(self) -> bool:
        """True if no other process can write to the collection while this process has it open."""

    @property
    def timeout_s(self) -> float:
        """The longest wait in seconds for another process's lock or for an answer of the server."""

    def hold(self) -> AbstractContextManager[None]:
        """Return a context manager that keeps other processes from changing the set of builds.

        Each method that creates, switches or deletes builds holds it by itself. A thread that holds
        it may call them. Opening, reading and writing a build does not need it.

        Raises:
            StoreLockedError: Another process changed it during the whole wait.
        """

    def current_id(self) -> str | None:
        """Return the id of the current build, unopened; None before the first ingestion."""

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no such build.

        Raises:
            StoreError: The build is damaged, or the store cannot be reached.
        """

    def open_current(
        self, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open the current build for reading and writing, and return it.

        Args:
            space: Embedding space (model and format version) that the build must have; None
                accepts any.
            wait_s: Longest wait in seconds for another process's lock; None for `timeout_s`.

        Raises:
            CollectionMissingError: There is no current build.
            SpaceMismatchError: The build was made with another embedding space.
            StoreUnavailableError: The store cannot be reached, does not answer in time, or is
                locked by another process.
        """

    def open(
        self, collection_id: str, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open the build with the given id; otherwise the same as `open_current`."""

    def create(self, space: EmbeddingSpace) -> PointStore:
        """Create and open a new, empty build for vectors of an embedding space.

        Queries do not use the build before `switch_to` makes it the current one.
        """

    def switch_to(self, collection_id: str) -> None:
        """Make a build the current one in one atomic step.

        The build that was current becomes the previous one, and older builds are deleted.

        Raises:
            CollectionMissingError: There is no build with this id.
        """

    def end_loading(self, collection_id: str) -> None:
        """Prepare a build for fast searches, after all its points were written.

        `switch_to` does it too, for a build with points. A second call does nothing.
        """

    def sweep(self) -> None:
        """Delete the builds and files that killed processes left behind.

        Call it only while no other ingestion of the book runs on this machine.
        """

    def recover(self) -> None:
        """Find the current build again, with a warning, if the record of its id is lost.

        Call it only while no other ingestion of the book runs on this machine.
        """

    def find_cells(self) -> list[str]:
        """Return the names of the collections that earlier runs of `rag-pipeline sweep` left over.

        A sweep compares combinations of settings and builds a collection for each, beside the
        book's own. A collection that another machine may still be building is left out.
        """

    def drop(self) -> None:
        """Delete all builds of the collection, except builds that another process has open."""

    def roll_back(self) -> str:
        """Make the previous build the current one and return its id.

        The build that was current becomes the previous one.

        Raises:
            EarlierCollectionMissingError: No previous build is kept.
        """

    def is_wanted(self) -> bool:
        """Return True if another process waits until this process closes the collection.

        The result is always False for a store that several processes may open at the same time.
        """

    def discard(self, collection_id: str) -> None:
        """Delete the build with the given id, if it exists and is not the current build."""
