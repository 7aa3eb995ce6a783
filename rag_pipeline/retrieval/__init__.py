"""The library that a backend imports to find cited passages of the book for a question.

Each public name is imported when it is first used, so that importing this package loads no model,
store or service client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag_pipeline.core.errors import (
        CollectionMissingError,
        ConfigurationError,
        EmbeddingDimensionError,
        EmbeddingError,
        EmbeddingServiceError,
        EmbeddingTimeoutError,
        InvalidKError,
        QueryEmptyError,
        QueryError,
        QueryTooLongError,
        RagPipelineError,
        ResultInvalidError,
        SectionMissingError,
        SelectionMissingError,
        SpaceMismatchError,
        StoreDamagedError,
        StoreError,
        StoreLockedError,
        StoreTimeoutError,
        StoreUnavailableError,
        ValidationFailedError,
    )
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols import Reranker
    from rag_pipeline.retrieval.contents import (
        SectionText,
        count_filter_values,
        find_entries,
        read_contents,
        read_section,
    )
    from rag_pipeline.retrieval.limits import ServiceLimits
    from rag_pipeline.retrieval.models import (
        ChannelScores,
        Citation,
        Evidence,
        RetrievalResult,
        ScoredChunk,
        TermWeight,
    )
    from rag_pipeline.retrieval.open_index import ContentsPage, ContentsSection
    from rag_pipeline.retrieval.opening import open_retriever
    from rag_pipeline.retrieval.queries import Mode, Query, QueryFilters
    from rag_pipeline.retrieval.relatedness import SelectionVerdict
    from rag_pipeline.retrieval.retriever import Retriever, RetrieverOptions
    from rag_pipeline.retrieval.service import RetrievalService

__all__ = [
    "ChannelScores",
    "ChunkMetadata",
    "Citation",
    "CollectionMissingError",
    "ConfigurationError",
    "ContentsPage",
    "ContentsSection",
    "EmbeddingDimensionError",
    "EmbeddingError",
    "EmbeddingServiceError",
    "EmbeddingTimeoutError",
    "Evidence",
    "InvalidKError",
    "Mode",
    "Query",
    "QueryEmptyError",
    "QueryError",
    "QueryFilters",
    "QueryTooLongError",
    "RagPipelineError",
    "Reranker",
    "ResultInvalidError",
    "RetrievalResult",
    "RetrievalService",
    "Retriever",
    "RetrieverOptions",
    "ScoredChunk",
    "SectionMissingError",
    "SectionText",
    "SelectionMissingError",
    "SelectionVerdict",
    "ServiceLimits",
    "SpaceMismatchError",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "TermWeight",
    "ValidationFailedError",
    "count_filter_values",
    "find_entries",
    "open_retriever",
    "read_contents",
    "read_section",
]

_MODULES: Final = (
    "core.errors",
    "core.payload",
    "core.protocols",
    "retrieval.queries",
    "retrieval.opening",
    "retrieval.relatedness",
    "retrieval.models",
    "retrieval.limits",
    "retrieval.open_index",
    "retrieval.contents",
    "retrieval.retriever",
    "retrieval.service",
)
"""The modules of the public names. Those that load more than the others come last."""


def __getattr__(name: str) -> object:
    """Import and return a public name of the package when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"rag_pipeline.{module}") for module in _MODULES)
    value: object = next(vars(module)[name] for module in modules if name in vars(module))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names of the package, including those that are not imported yet."""
    return __all__
