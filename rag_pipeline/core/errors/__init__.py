"""Every error that this package raises on purpose, importable from here.

Adapters turn vendor errors into these with `from`. The command prints the message and exits with
`exit_code`.
"""

from __future__ import annotations

from rag_pipeline.core.errors.base import (
    ConfigurationError,
    MissingDependencyError,
    RagPipelineError,
)
from rag_pipeline.core.errors.documents import (
    ArtifactMissingError,
    ArtifactStaleError,
    DocsFolderError,
    DocumentError,
    DocumentIdError,
    DocumentReadError,
    FrontMatterError,
    RebuildIncompleteError,
)
from rag_pipeline.core.errors.evaluation import (
    BaselineRefusedError,
    EvaluationFileError,
    GoldenSetError,
    SweepCellError,
)
from rag_pipeline.core.errors.queries import (
    InvalidKError,
    QueryEmptyError,
    QueryError,
    QueryTooLongError,
    ResultInvalidError,
    SelectionMissingError,
    ValidationFailedError,
)
from rag_pipeline.core.errors.services import (
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
    CollectionMissingError,
    EarlierCollectionMissingError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    PayloadError,
    SpaceMismatchError,
    StoreError,
    StoreLockedError,
    StoreTimeoutError,
    StoreUnavailableError,
)

__all__ = [
    "AnswerError",
    "AnswerServiceError",
    "AnswerTimeoutError",
    "ArtifactMissingError",
    "ArtifactStaleError",
    "BaselineRefusedError",
    "CollectionMissingError",
    "ConfigurationError",
    "DocsFolderError",
    "DocumentError",
    "DocumentIdError",
    "DocumentReadError",
    "EarlierCollectionMissingError",
    "EmbeddingDimensionError",
    "EmbeddingError",
    "EmbeddingServiceError",
    "EmbeddingTimeoutError",
    "EvaluationFileError",
    "FrontMatterError",
    "GoldenSetError",
    "InvalidKError",
    "MissingDependencyError",
    "PayloadError",
    "QueryEmptyError",
    "QueryError",
    "QueryTooLongError",
    "RagPipelineError",
    "RebuildIncompleteError",
    "ResultInvalidError",
    "SelectionMissingError",
    "SpaceMismatchError",
    "StoreError",
    "StoreLockedError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "SweepCellError",
    "ValidationFailedError",
]
