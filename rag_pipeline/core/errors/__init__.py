"""All errors that this package raises on purpose. Import them from this module.

Adapters convert the errors of vendor libraries to these classes and keep the original as the cause.
The command line prints the message and exits with the `exit_code` of the class.
"""

from __future__ import annotations

from rag_pipeline.core.errors.base import (
    ConfigurationError,
    MissingDependencyError,
    RagPipelineError,
)
from rag_pipeline.core.errors.documents import (
    DocsFolderError,
    DocumentError,
    DocumentIdError,
    DocumentReadError,
    FrontMatterError,
    LedgerConflictError,
    PlanOutdatedError,
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
    SectionMissingError,
    SelectionMissingError,
    ValidationFailedError,
)
from rag_pipeline.core.errors.services import (
    AnswerContextError,
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
    CollectionMissingError,
    DatabaseUnavailableError,
    EarlierCollectionMissingError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    IngestionRunningError,
    PayloadError,
    QuestionLogError,
    SpaceMismatchError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreNotWritableError,
    StoreTimeoutError,
    StoreUnavailableError,
)

__all__ = [
    "AnswerContextError",
    "AnswerError",
    "AnswerServiceError",
    "AnswerTimeoutError",
    "BaselineRefusedError",
    "CollectionMissingError",
    "ConfigurationError",
    "DatabaseUnavailableError",
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
    "IngestionRunningError",
    "InvalidKError",
    "LedgerConflictError",
    "MissingDependencyError",
    "PayloadError",
    "PlanOutdatedError",
    "QueryEmptyError",
    "QueryError",
    "QueryTooLongError",
    "QuestionLogError",
    "RagPipelineError",
    "RebuildIncompleteError",
    "ResultInvalidError",
    "SectionMissingError",
    "SelectionMissingError",
    "SpaceMismatchError",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "StoreNotWritableError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "SweepCellError",
    "ValidationFailedError",
]
