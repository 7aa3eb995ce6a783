"""Errors of embedding services, of vector stores and of answer models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors.base import RagPipelineError

if TYPE_CHECKING:
    from pathlib import Path

REPAIR_S: Final = 30.0
"""Seconds after which it is worth trying again if someone has to ingest the book first."""


class EmbeddingError(RagPipelineError):
    """A text could not be embedded, or the vectors that were returned cannot be used.

    The embedding service failed, took too long or rejected the request, or the files of the local
    model are damaged. Subclasses cover some of these causes.
    """

    code = "EMBEDDING_FAILED"


class EmbeddingServiceError(EmbeddingError):
    """The embedding service cannot be reached, is overloaded or too slow, and all retries failed.

    The error is also raised without a request for some seconds after several failures in a row.
    """

    transient = True


class EmbeddingTimeoutError(EmbeddingServiceError):
    """The question was not embedded before the time limit of the whole query was over."""


class EmbeddingDimensionError(EmbeddingError):
    """The embedding model returned vectors of the wrong length, or a wrong number of vectors.

    Attributes:
        model: Name of the embedding model.
    """

    def __init__(self, model: str, expected: str, found: str) -> None:
        self.model = model
        super().__init__(
            f"embedding model {model} returned {found} instead of {expected}. Check "
            "EMBEDDING_MODEL and the service that runs the model"
        )


class EmbeddingTooLargeError(EmbeddingError):
    """A service refused a request because a text, or the number of texts, is too large for it."""


class StoreError(RagPipelineError):
    """The vector store, or a file that ingestion keeps beside it, cannot be used.

    Subclasses: the store is unreachable, too slow or locked, a collection is missing or was built
    with another model, or a stored point is invalid. All other causes, such as a damaged file or a
    full disk, have this class itself.
    """

    code = "STORE_FAILED"
    path_name = "DATA_DIR"


class StoreUnavailableError(StoreError):
    """The vector store cannot be used at the moment: unreachable, overloaded, too slow or locked.

    The error is also raised without a request for some seconds after several failures in a row.
    """

    code = "QDRANT_CONNECTION_ERROR"
    http_status = 503
    transient = True


class StoreTimeoutError(StoreUnavailableError):
    """The vector store did not respond within the time limit."""

    code = "QDRANT_TIMEOUT"
    http_status = 504


class StoreNotWritableError(StoreError):
    """The server of the store accepts no changes: full disk, read-only mode, lock or used-up quota.

    An ingestion stops at once, because every other document would fail in the same way.

    Args:
        place: Name and host of the server.
        said: The server's own words.
    """

    code = "STORE_NOT_WRITABLE"
    http_status = 503

    def __init__(self, place: str, said: str) -> None:
        super().__init__(
            f"{place} accepts no changes ({said}). Free space on its disk, or lift the lock or "
            "limit, and run `rag-pipeline ingest` again. Embeddings that were made are kept"
        )


class RequestTooLargeError(StoreError):
    """The server of the store accepts only smaller requests, so the content is sent in parts."""


class NewerDatabaseError(StoreError):
    """A newer release of this package has changed the tables of the database.

    Args:
        place: The database, for the message.
        stored: Version of its tables.
        known: Version that this release knows.
    """

    def __init__(self, place: str, stored: str, known: str) -> None:
        super().__init__(
            f"the tables of {place} have version {stored}, which a newer release of rag-pipeline "
            f"made; this release knows version {known}. Install the newer release, or choose "
            "another database"
        )


class StoreLockedError(StoreUnavailableError):
    """Another process has the embedded store open, or another ingestion of the book is running."""

    code = "STORE_LOCKED"


class DatabaseUnavailableError(StoreError):
    """The database in Postgres cannot be read or written: it is unreachable or full."""

    code = "DATABASE_UNAVAILABLE"
    http_status = 503
    transient = True
    path_name = "DATABASE_URL"


class StoreDamagedError(StoreError):
    """The index is damaged: a file of the store cannot be read, or stored chunks are missing.

    A service is unavailable until the index is repaired. It needs no restart.
    """

    code = "STORE_DAMAGED"
    http_status = 503
    retry_after_s = REPAIR_S

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the index is damaged: {problem}. Run `rag-pipeline audit --repair` or `rag-pipeline "
            "ingest --rebuild`, which embed no text whose embedding is kept"
        )


class CollectionMissingError(StoreError):
    """The collection does not exist or is empty, usually because nothing has been ingested yet.

    A service is unavailable until then. It finds the collection without a restart.

    Attributes:
        collection: Name of the collection.
        where: Folder or address of the store.
    """

    code = "COLLECTION_MISSING"
    http_status = 503
    retry_after_s = REPAIR_S

    def __init__(self, collection: str, where: str | Path, others: str = "") -> None:
        self.collection = collection
        self.where = where
        super().__init__(
            f"collection {collection} in {where} does not exist or is empty. Run `rag-pipeline "
            f"ingest` first{others and f'. {others}'}"
        )


class IngestionRunningError(CollectionMissingError):
    """The collection is empty because its first ingestion is still running.

    Attributes:
        done: Number of documents that are indexed or have failed.
        total: Number of documents; 0 if they have not been counted yet.
    """

    code = "INGESTION_RUNNING"
    retry_after_s = 5.0

    def __init__(self, collection: str, where: str | Path, done: int, total: int) -> None:
        super().__init__(collection, where)
        self.done, self.total = done, total
        extent = f"{done} of {total} documents are done" if total else "it counts the documents"
        self.args = (f"an ingestion of the book is running: {extent}. Try again later",)


class EarlierCollectionMissingError(StoreError):
    """A rollback to the previous collection was requested, but the store has no previous one.

    Attributes:
        collection: Name of the collection.
        where: Folder or address of the store.
    """

    code = "COLLECTION_MISSING"
    http_status = 503

    def __init__(self, collection: str, where: str | Path) -> None:
        self.collection = collection
        self.where = where
        super().__init__(
            f"there is no previous collection {collection} in {where} to roll back to. Only "
            "`rag-pipeline ingest --rebuild` keeps the previous collection"
        )


class SpaceMismatchError(StoreError):
    """The collection was built with another embedding model or format than the settings ask for.

    The embedding space of the collection (provider, model, dimension, input limits and format
    version) differs from that of the settings, and vectors of different spaces cannot be compared.
    A service is unavailable until the collection is rebuilt. It needs no restart.

    Attributes:
        collection: Name of the collection.
    """

    code = "EMBEDDING_SPACE_MISMATCH"
    http_status = 503
    retry_after_s = REPAIR_S
    exit_code = 2

    def __init__(self, collection: str, stored: str, wanted: str, remedy: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} was built with {stored}, but the settings ask for {wanted}. "
            "Run `rag-pipeline ingest --rebuild` to build a new collection next to the old one, or "
            f"{remedy}"
        )


class PayloadError(StoreError):
    """The payload of a stored point lacks a required field, or a field has an invalid value.

    Attributes:
        chunk_id: Chunk id of the point; `?` if the payload does not name it.
        field: Name of the payload field.
    """

    code = "INVALID_RESULT"

    def __init__(self, chunk_id: str, field: str, value: object) -> None:
        self.chunk_id = chunk_id
        self.field = field
        problem = "has no value" if value is None else f"has the invalid value {value!r:.60}"
        super().__init__(
            f"the index is damaged: in the stored chunk {chunk_id}, the payload field {field} "
            f"{problem}. Run `rag-pipeline audit --repair`"
        )


class AnswerError(RagPipelineError):
    """No complete answer was received from the answer model.

    The answer was empty, its stream was closed early, or the service rejected the request or sent a
    malformed response. Subclasses cover two more causes: the service is unavailable, or the answer
    took too long.
    """

    code = "ANSWER_FAILED"
    http_status = 502


class AnswerServiceError(AnswerError):
    """The service of the answer model cannot be reached, is overloaded, or broke off its answer.

    The request was retried before, unless the answer had already begun. The error is also raised
    without a request for some seconds after several failures in a row.
    """

    code = "ANSWER_SERVICE_UNAVAILABLE"
    http_status = 503
    transient = True


class AnswerContextError(AnswerError):
    """The prompt is longer than the context of the answer model."""

    code = "ANSWER_CONTEXT_EXCEEDED"


class AnswerTimeoutError(AnswerError):
    """The answer was not written in time.

    The model sent no text within ANSWER_TIMEOUT_S seconds, or the service reached its own limit.
    """

    code = "ANSWER_TIMEOUT"
    http_status = 504


class QuestionLogError(RagPipelineError):
    """The question log cannot be read or written: unreachable, locked, full or damaged."""

    code = "QUESTION_LOG_FAILED"
    http_status = 503
    transient = True

    @property
    def public_message(self) -> str:
        """A fixed message, because that of a database can name its host and user."""
        return "The question log cannot be used now. Try again later."
