"""A LlamaIndex retriever over the book. Needs the extra `llama-index`."""

from __future__ import annotations

import asyncio
from typing import Final

from rag_pipeline.core.errors import MissingDependencyError
from rag_pipeline.integrations import describe_passage
from rag_pipeline.retrieval import Query, QueryFilters, Retriever

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingDependencyError("llama-index-core", "llama-index") from error


_NOT_FOR_MODELS: Final = ["module", "chapter", "doc_path", "content_type", "chunk_id", "score"]
"""Metadata that LlamaIndex leaves out of prompts, because it helps no answer."""


class TextbookRetriever(BaseRetriever):
    """A LlamaIndex retriever that returns cited passages of the book, best first.

    The metadata of each node has the keys that `describe_passage` names. The errors are those of
    `Retriever.retrieve`.

    Args:
        retriever: An open retriever. The caller closes it.
        top_k: Number of passages, 1 to 100. None uses `filters.top_k`, or 5 without filters.
        filters: Restrictions on the search, such as modules; None searches the whole book.
    """

    def __init__(
        self, retriever: Retriever, *, top_k: int | None = None, filters: QueryFilters | None = None
    ) -> None:
        super().__init__()
        self._retriever = retriever
        self._top_k = top_k
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = Query(query_bundle.query_str, filters=self._filters, top_k=self._top_k)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=chunk.chunk_id,
                    text=chunk.text,
                    metadata=describe_passage(chunk),
                    excluded_llm_metadata_keys=_NOT_FOR_MODELS,
                ),
                score=chunk.score,
            )
            for chunk in self._retriever.retrieve(query).chunks
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
