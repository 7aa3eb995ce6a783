"""The names that a backend may rely on, spelled by hand: a change here is a change for users."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline import retrieval

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    "ChannelScores", "ChunkMetadata", "Citation", "CollectionMissingError", "ConfigurationError",
    "ContentsPage", "ContentsSection", "SectionMissingError", "SectionText",
    "EmbeddingDimensionError", "EmbeddingError", "EmbeddingServiceError", "EmbeddingTimeoutError",
    "Evidence", "InvalidKError", "Mode", "Query", "QueryEmptyError", "QueryError", "QueryFilters",
    "QueryTooLongError", "RagPipelineError", "Reranker", "ResultInvalidError", "RetrievalResult",
    "RetrievalService", "Retriever", "RetrieverOptions", "ScoredChunk", "SelectionMissingError",
    "SelectionVerdict", "ServiceLimits", "SpaceMismatchError", "StoreDamagedError", "StoreError",
    "StoreLockedError",
    "StoreTimeoutError", "StoreUnavailableError", "TermWeight", "ValidationFailedError",
    "count_filter_values", "find_entries", "open_retriever", "read_contents", "read_section",
}  # fmt: skip

FIELDS = {
    "Query": ["question", "mode", "selected_text", "source_doc_path", "source_section", "filters",
              "top_k", "expand_to_section_tokens", "source_url", "exact_words",
              "min_relative_score"],
    "QueryFilters": ["modules", "chapters", "content_types", "tags", "top_k", "doc_paths",
                     "sources", "versions", "locales"],
    "Citation": ["title", "section", "url", "module", "chapter", "version", "locale", "tabs"],
    "ScoredChunk": ["chunk_id", "text", "score", "metadata", "citation", "channels",
                    "expanded_text", "expanded_blocks"],
    "RetrievalResult": ["chunks", "query", "mode", "total_candidates", "verdict", "relatedness",
                        "notice", "evidence", "search_question", "index_id"],
    "ChannelScores": ["dense", "windows", "bm25", "lexical", "fused"],
}  # fmt: skip

CODES = {
    "QueryEmptyError": ("QUERY_EMPTY", 400),
    "QueryTooLongError": ("QUERY_TOO_LONG", 400),
    "InvalidKError": ("INVALID_K", 400),
    "SelectionMissingError": ("SELECTED_TEXT_MISSING", 400),
    "SectionMissingError": ("SECTION_MISSING", 404),
    "CollectionMissingError": ("COLLECTION_MISSING", 503),
    "SpaceMismatchError": ("EMBEDDING_SPACE_MISMATCH", 503),
    "EmbeddingError": ("EMBEDDING_FAILED", 500),
    "StoreUnavailableError": ("QDRANT_CONNECTION_ERROR", 503),
    "StoreTimeoutError": ("QDRANT_TIMEOUT", 504),
    "ResultInvalidError": ("INVALID_RESULT", 500),
    "ValidationFailedError": ("VALIDATION_FAILED", 422),
}

_CALLER = """
from rag_pipeline.retrieval import (
    Citation, Mode, Query, QueryError, QueryFilters, RetrievalResult, RetrievalService, Retriever,
    ScoredChunk, StoreError, open_retriever,
)


def find(question: str) -> list[str]:
    retriever: Retriever = open_retriever()
    query = Query(question, filters=QueryFilters(modules=["module-1"], tags=("ros2",), top_k=3))
    try:
        result: RetrievalResult = retriever.retrieve(query)
    except (QueryError, StoreError) as error:
        return [f"{error.code} {error.http_status}"]
    chunks: tuple[ScoredChunk, ...] = result.chunks
    citation: Citation = chunks[0].citation
    score: float = chunks[0].score
    heading: str = chunks[0].metadata.section_heading
    path: tuple[str, ...] = chunks[0].metadata.heading_breadcrumb
    return [citation.url, f"{score:.2f}", heading, *path]


async def find_later(question: str, selection: str) -> int:
    async_result = await open_retriever().aretrieve(
        Query(question, Mode.SELECTED_TEXT_ONLY, selected_text=selection)
    )
    return async_result.total_candidates


def serve(question: str) -> str:
    response = RetrievalService().search(question, k=5)
    first = response["results"][0]
    return f"{first['metadata']['url']} {first['similarity_score']:.2f} {response['status']}"
"""

_MISUSE = """
from rag_pipeline.retrieval import Query, QueryFilters, open_retriever

open_retriever().retrieve("a bare text")
Query(question=7)
QueryFilters(top_k="many")
open_retriever().retrieve(Query("x")).chunks[0].citation.page
"""


def test_the_public_names_are_these() -> None:
    assert set(retrieval.__all__) == NAMES
    assert sorted(retrieval.__all__) == list(retrieval.__all__)
    assert set(dir(retrieval)) == NAMES


def test_every_public_name_can_be_loaded_and_says_what_it_is() -> None:
    for name in NAMES:
        assert inspect.getdoc(getattr(retrieval, name)), name


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        retrieval.nothing_of_ours  # type: ignore[attr-defined]  # noqa: B018  # that is the point


@pytest.mark.parametrize("name", FIELDS)
def test_data_keeps_its_fields_and_their_order(name: str) -> None:
    assert [field.name for field in dataclasses.fields(getattr(retrieval, name))] == FIELDS[name]


@pytest.mark.parametrize("name", CODES)
def test_errors_keep_their_codes_and_statuses(name: str) -> None:
    error = getattr(retrieval, name)
    assert (error.code, error.http_status) == CODES[name]


@pytest.mark.slow
def test_mypy_accepts_a_callers_code_and_finds_a_callers_mistakes(tmp_path: Path) -> None:
    for name, text in (("caller.py", _CALLER), ("misuse.py", _MISUSE)):
        (tmp_path / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path)]
    files = [str(tmp_path / "caller.py"), str(tmp_path / "misuse.py")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len([line for line in errors if "misuse.py" in line]) == len(errors) == 4, done.stdout
