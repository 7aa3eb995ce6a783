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

_MODULES: Final = {
    "ChunkMetadata": "rag_pipeline.core.payload",
    "Reranker": "rag_pipeline.core.protocols",
    "ChannelScores": "rag_pipeline.retrieval.models",
    "Citation": "rag_pipeline.retrieval.models",
    "Evidence": "rag_pipeline.retrieval.models",
    "Mode": "rag_pipeline.retrieval.queries",
    "Query": "rag_pipeline.retrieval.queries",
    "QueryFilters": "rag_pipeline.retrieval.queries",
    "RetrievalResult": "rag_pipeline.retrieval.models",
    "ScoredChunk": "rag_pipeline.retrieval.models",
    "TermWeight": "rag_pipeline.retrieval.models",
    "Retriever": "rag_pipeline.retrieval.retriever",
    "RetrieverOptions": "rag_pipeline.retrieval.retriever",
    "RetrievalService": "rag_pipeline.retrieval.service",
    "SelectionVerdict": "rag_pipeline.retrieval.relatedness",
    "ServiceLimits": "rag_pipeline.retrieval.limits",
    "ContentsPage": "rag_pipeline.retrieval.open_index",
    "ContentsSection": "rag_pipeline.retrieval.open_index",
    "SectionText": "rag_pipeline.retrieval.contents",
    "count_filter_values": "rag_pipeline.retrieval.contents",
    "find_entries": "rag_pipeline.retrieval.contents",
    "open_retriever": "rag_pipeline.retrieval.opening",
    "read_contents": "rag_pipeline.retrieval.contents",
    "read_section": "rag_pipeline.retrieval.contents",
}
"""The module of each public name, except for the error classes, which are in core.errors."""


def __getattr__(name: str) -> object:
    """Import and return a public name of the package when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES.get(name, "rag_pipeline.core.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names of the package, including those that are not imported yet."""
    return __all__
