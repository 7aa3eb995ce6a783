"""A LangChain retriever over the book. Needs the extra `langchain`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import MissingDependencyError
from rag_pipeline.integrations import describe_passage
from rag_pipeline.retrieval import Query, QueryFilters, Retriever

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import InstanceOf  # noqa: TC002  # read at run time, for the fields below
except ImportError as error:
    raise MissingDependencyError("langchain-core", "langchain") from error

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )


class TextbookRetriever(BaseRetriever):
    """A LangChain retriever that returns cited passages of the book, best first.

    The metadata of each document has the keys that `describe_passage` names. The errors are those
    of `Retriever.retrieve`.

    Attributes:
        retriever: An open retriever. The caller closes it.
        top_k: Number of passages, 1 to 100. None uses `filters.top_k`, or 5 without filters.
        filters: Restrictions on the search, such as modules; None searches the whole book.
    """

    retriever: InstanceOf[Retriever]
    top_k: int | None = None
    filters: InstanceOf[QueryFilters] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return self._search(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return await asyncio.to_thread(self._search, query)

    def _search(self, question: str) -> list[Document]:
        result = self.retriever.retrieve(Query(question, filters=self.filters, top_k=self.top_k))
        return [
            Document(chunk.text, id=chunk.chunk_id, metadata=describe_passage(chunk))
            for chunk in result.chunks
        ]
