"""The LlamaIndex retriever, in a real query engine of LlamaIndex over a real collection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.retrieval import Query, QueryEmptyError, QueryFilters
from rag_pipeline_tests.integrations.conftest import make_metadata

if TYPE_CHECKING:
    from typing import Any

    from rag_pipeline.integrations.llama_index import TextbookRetriever
    from rag_pipeline.retrieval import Retriever

# ruff: noqa: PLC0415  # a test process that runs none of these tests saves a second

QUESTION = "How does a node publish messages on a topic?"


def connect(book: Retriever, **options: Any) -> TextbookRetriever:  # noqa: ANN401  # options of the class
    """Return the retriever of LlamaIndex over the book."""
    from rag_pipeline.integrations.llama_index import TextbookRetriever

    return TextbookRetriever(book, **options)


def test_nodes_are_the_passages_with_their_citations(book: Retriever) -> None:
    nodes = connect(book).retrieve(QUESTION)
    chunks = book.retrieve(Query(QUESTION)).chunks
    assert [node.text for node in nodes] == [chunk.text for chunk in chunks]
    assert [node.score for node in nodes] == [chunk.score for chunk in chunks]
    first, best = nodes[0], chunks[0]
    assert first.node_id == best.chunk_id
    assert first.metadata == make_metadata(best)


def test_filters_and_the_number_of_passages_are_passed_on(book: Retriever) -> None:
    filters = QueryFilters(modules=["module-2"])
    nodes = connect(book, top_k=2, filters=filters).retrieve(QUESTION)
    assert [node.metadata["module"] for node in nodes] == ["module-2"] * 2


def test_an_awaited_search_finds_the_same(book: Retriever) -> None:
    retriever = connect(book)
    awaited = asyncio.run(retriever.aretrieve(QUESTION))
    assert [node.node_id for node in awaited] == [
        node.node_id for node in retriever.retrieve(QUESTION)
    ]


def test_a_model_reads_the_citation_but_not_the_score(book: Retriever) -> None:
    from llama_index.core.schema import MetadataMode

    prompt = connect(book).retrieve(QUESTION)[0].get_content(MetadataMode.LLM)
    assert "section: Publishers" in prompt
    assert "score:" not in prompt


def test_a_query_engine_answers_with_cited_source_nodes(book: Retriever) -> None:
    from llama_index.core import get_response_synthesizer
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    engine = RetrieverQueryEngine(
        retriever=connect(book, top_k=2),
        response_synthesizer=get_response_synthesizer(llm=MockLLM()),
    )
    response = engine.query(QUESTION)
    assert "A node publishes messages on a topic." in str(response)
    assert QUESTION in str(response)
    assert response.source_nodes[0].metadata["url"].endswith("#publishers")


def test_an_invalid_question_raises_the_error_of_the_library(book: Retriever) -> None:
    with pytest.raises(QueryEmptyError):
        connect(book).retrieve("  ")
