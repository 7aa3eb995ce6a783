"""Errors of embedding services, stores and answer models."""

from __future__ import annotations

from rag_pipeline.core.errors.base import RagPipelineError


class EmbeddingError(RagPipelineError):
    """The embedding model or service failed."""

    code = "EMBEDDING_FAILED"


class EmbeddingServiceError(EmbeddingError):
    """The embedding service was not reached or refused, retries spent."""

    transient = True


class EmbeddingTimeoutError(EmbeddingServiceError):
    """The embedding service did not answer in the time that the whole query has."""


class EmbeddingDimensionError(EmbeddingError):
    """Vectors came back with another length or count than asked for."""

    def __init__(self, model: str, expected: str, found: str) -> None:
        self.model = model
        super().__init__(
            f"embedding model {model} returned {found} where {expected} was expected. Check "
            "EMBEDDING_MODEL and the service behind it"
        )


class StoreError(RagPipelineError):
    """The vector store failed."""

    code = "STORE_FAILED"


class StoreUnavailableError(StoreError):
    """The vector store cannot be reached."""

    code = "QDRANT_CONNECTION_ERROR"
    http_status = 503
    transient = True


class StoreTimeoutError(StoreUnavailableError):
    """The vector store did not answer in time."""

    code = "QDRANT_TIMEOUT"
    http_status = 504


class StoreLockedError(StoreUnavailableError):
    """Another process holds the embedded store."""

    code = "STORE_LOCKED"


class CollectionMissingError(StoreError):
    """Nothing has been ingested into the collection yet."""

    code = "COLLECTION_MISSING"

    def __init__(self, collection: str, where: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} in {where} does not exist or is empty. Run `rag-pipeline "
            "ingest` first"
        )


class EarlierCollectionMissingError(StoreError):
    """There is no collection to roll back to."""

    code = "COLLECTION_MISSING"

    def __init__(self, collection: str, where: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} in {where} has no earlier one to roll back to. Only "
            "`rag-pipeline ingest --rebuild` keeps one"
        )


class SpaceMismatchError(StoreError):
    """The collection was built with another model, dimension or format version."""

    code = "EMBEDDING_SPACE_MISMATCH"
    exit_code = 2

    def __init__(self, collection: str, stored: str, wanted: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} was built with {stored}, the settings ask for {wanted}. "
            "Run `rag-pipeline ingest --rebuild` to build it anew beside the old one, or "
            "restore the old settings"
        )


class PayloadError(StoreError):
    """A point's payload does not keep the contract of core.payload."""

    code = "INVALID_RESULT"

    def __init__(self, chunk_id: str, field: str, value: object) -> None:
        self.chunk_id = chunk_id
        self.field = field
        super().__init__(
            f"point {chunk_id}: payload field {field} is missing or wrong ({value!r:.60}). Run "
            "`rag-pipeline audit --repair`"
        )


class AnswerError(RagPipelineError):
    """The answer model gave nothing that can be used."""

    code = "ANSWER_FAILED"
    http_status = 502


class AnswerServiceError(AnswerError):
    """The answer model's service was not reached or failed, retries spent."""

    code = "ANSWER_SERVICE_UNAVAILABLE"
    http_status = 503
    transient = True


class AnswerTimeoutError(AnswerError):
    """The answer was not complete within ANSWER_TIMEOUT_S."""

    code = "ANSWER_TIMEOUT"
    http_status = 504
