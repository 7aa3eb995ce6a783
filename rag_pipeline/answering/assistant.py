"""The one way to ask the book: holds the retriever and the answering model for its whole life."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.answering.generation import stream_answer
from rag_pipeline.core.closing import Closing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Self

    from rag_pipeline.answering.conversations.history import Turn
    from rag_pipeline.answering.models import Answer, AnswerStream, GroundedResponse
    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.queries import Query
    from rag_pipeline.retrieval.retriever import Retriever


@dataclass(frozen=True)
class PreparedAnswer:
    """A question whose passages were found and judged, but whose answer is not written yet.

    Attributes:
        query: The query as asked.
        result: The passages that were found.
        grounding: The sources, and the decision whether they suffice.
        search_question: What was searched instead of the question; None if the question itself was.
        index_id: Id of the collection that was searched; empty in selected-text mode.
    """

    query: Query
    result: RetrievalResult
    grounding: GroundedResponse
    search_question: str | None
    index_id: str
    _stream: AnswerStream


class AsyncAnswerStream:
    """An asynchronous iterator over the pieces of an answer's text while it is being written.

    `async with` closes the stream and aborts the model's request.
    """

    def __init__(self, prepared: PreparedAnswer, stream: AnswerStream) -> None:
        self.prepared = prepared
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the pieces of the answer's text, none of them empty."""
        while (piece := await asyncio.to_thread(next, self._stream, None)) is not None:
            yield piece

    async def answer(self) -> Answer:
        """Return the complete answer; consumes the rest of the stream first."""
        return await asyncio.to_thread(lambda: self._stream.answer)

    async def aclose(self) -> None:
        """Abort the model's request. A second call does nothing."""
        self._stream.close()

    async def __aenter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the stream."""
        await self.aclose()


class Assistant(Closing):
    """Answers questions with one retriever and one client of the answering model.

    Several threads and event loops can share an assistant.

    Args:
        retriever: Finds the passages.
        chat_model: Writes the answers; None quotes passages from the book.

    Attributes:
        retriever: The retriever, for searches without an answer.
        chat_model: The answering model, or None.
    """

    def __init__(self, retriever: Retriever, chat_model: ChatModel | None = None) -> None:
        self.retriever = retriever
        self.chat_model = chat_model

    def prepare(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> PreparedAnswer:
        """Find and judge the passages for a query, without writing an answer."""
        del history
        stream = stream_answer(
            query,
            retriever=self.retriever,
            chat_model=self.chat_model,
            even_if_unrelated=even_if_unrelated,
        )
        result = stream.result
        return PreparedAnswer(query, result, stream.grounding, result.search_question, "", stream)

    def write(self, prepared: PreparedAnswer) -> AnswerStream:
        """Return a stream that writes the answer to a prepared question."""
        return prepared._stream  # noqa: SLF001  # made by `prepare`

    def stream(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> AnswerStream:
        """Prepare a question and return a stream that writes its answer."""
        return self.write(self.prepare(query, history=history, even_if_unrelated=even_if_unrelated))

    def answer(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> Answer:
        """Return the complete answer to a question."""
        with self.stream(query, history=history, even_if_unrelated=even_if_unrelated) as stream:
            return stream.answer

    async def aprepare(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> PreparedAnswer:
        """Run `prepare` in another thread; the event loop continues."""
        return await asyncio.to_thread(
            self.prepare, query, history=history, even_if_unrelated=even_if_unrelated
        )

    async def awrite(self, prepared: PreparedAnswer) -> AsyncAnswerStream:
        """Return an asynchronous stream that writes the answer to a prepared question."""
        return AsyncAnswerStream(prepared, self.write(prepared))

    async def astream(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> AsyncAnswerStream:
        """Prepare a question and return an asynchronous stream that writes its answer."""
        prepared = await self.aprepare(query, history=history, even_if_unrelated=even_if_unrelated)
        return await self.awrite(prepared)

    async def aanswer(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> Answer:
        """Return the complete answer to a question; the event loop continues meanwhile."""
        async with await self.astream(
            query, history=history, even_if_unrelated=even_if_unrelated
        ) as stream:
            return await stream.answer()

    def close(self) -> None:
        """Close the collection; a later question opens it again."""
        self.retriever.close()


def open_assistant(settings: Settings | None = None) -> Assistant:
    """Return an assistant over the collection and the answering model that the settings name.

    Args:
        settings: None reads the environment and `.env`.

    Raises:
        ConfigurationError: A setting is missing or invalid.
    """
    from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__
    from rag_pipeline.retrieval.opening import open_retriever  # noqa: PLC0415  # see __init__

    chosen = settings or load_settings()
    return Assistant(open_retriever(chosen), connect_chat_model(chosen))
