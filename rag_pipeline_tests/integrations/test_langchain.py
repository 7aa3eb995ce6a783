"""The LangChain retriever, in real chains of LangChain over a real collection."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from rag_pipeline.retrieval import Query, QueryEmptyError, QueryFilters
from rag_pipeline_tests.integrations.conftest import make_metadata

if TYPE_CHECKING:
    from typing import Any

    from langchain_core.documents import Document
    from langchain_core.prompt_values import PromptValue

    from rag_pipeline.integrations.langchain import TextbookRetriever
    from rag_pipeline.retrieval import Retriever

# ruff: noqa: PLC0415  # a test process that runs none of these tests saves half a second

QUESTION = "How does a node publish messages on a topic?"


def connect(book: object, **options: Any) -> TextbookRetriever:  # noqa: ANN401  # options of the class
    """Return the retriever of LangChain over the book."""
    from rag_pipeline.integrations.langchain import TextbookRetriever

    return TextbookRetriever(retriever=book, **options)


def test_documents_are_the_passages_with_their_citations(book: Retriever) -> None:
    documents = connect(book).invoke(QUESTION)
    chunks = book.retrieve(Query(QUESTION)).chunks
    assert [document.page_content for document in documents] == [chunk.text for chunk in chunks]
    first, best = documents[0], chunks[0]
    assert first.id == best.chunk_id
    assert first.metadata == make_metadata(best)
    assert first.metadata["url"].endswith("#publishers")


def test_filters_and_the_number_of_passages_are_passed_on(book: Retriever) -> None:
    filters = QueryFilters(modules=["module-2"])
    retriever = connect(book, top_k=2, filters=filters)
    documents = retriever.invoke(QUESTION)
    assert [document.metadata["module"] for document in documents] == ["module-2"] * 2


def test_an_awaited_search_finds_the_same(book: Retriever) -> None:
    retriever = connect(book)
    assert asyncio.run(retriever.ainvoke(QUESTION)) == retriever.invoke(QUESTION)


def test_a_batch_answers_its_questions_in_order(book: Retriever) -> None:
    retriever = connect(book, top_k=1)
    found = retriever.batch([QUESTION, "How is a lithium battery stored?"])
    assert [documents[0].metadata["section"] for documents in found] == ["Publishers", "Storage"]


def test_a_chain_puts_the_passages_and_their_urls_into_the_prompt(book: Retriever) -> None:
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    prompts: list[str] = []

    def show(documents: list[Document]) -> str:
        return "\n".join(f"{entry.metadata['url']}: {entry.page_content}" for entry in documents)

    def note(prompt: PromptValue) -> PromptValue:
        prompts.append(prompt.to_string())
        return prompt

    chain = (
        {"book": connect(book) | show, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{book}\n\nQuestion: {question}")
        | RunnableLambda(note)
        | FakeListChatModel(responses=["With create_publisher."])
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == "With create_publisher."
    assert "#publishers: ## Publishers\n\nA node publishes messages on a topic." in prompts[0]
    assert prompts[0].endswith(f"Question: {QUESTION}")


def test_an_invalid_question_raises_the_error_of_the_library(book: Retriever) -> None:
    with pytest.raises(QueryEmptyError):
        connect(book).invoke("  ")


def test_a_retriever_of_another_class_is_refused() -> None:
    with pytest.raises(ValidationError, match="instance of Retriever"):
        connect("book")


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index.core", "llama-index"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(module: str, package: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
try:
    import rag_pipeline.integrations.{module}
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingDependencyError")
    assert f"rag-pipeline[{extra}]" in done.stdout
