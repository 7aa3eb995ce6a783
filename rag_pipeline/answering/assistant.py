"""The one way to ask the book: holds the retriever and the answering model for its whole life."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, nullcontext
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.answering.conversation import (
    read_line,
    read_rewrite,
    rewrite_messages,
)
from rag_pipeline.answering.preparing import (
    LateRetriever,
    PreparedAnswer,
    plan_question,
    search_plan,
)
from rag_pipeline.answering.reading.languages import find_language, find_languages
from rag_pipeline.answering.reading.small_talk import find_reply
from rag_pipeline.answering.streams import AnswerStream, AsyncAnswerStream, WriteLimits, run_async
from rag_pipeline.answering.voice import Voice, read_voice
from rag_pipeline.core.errors import StoreTimeoutError
from rag_pipeline.core.models import Closing
from rag_pipeline.retrieval.queries import Mode, Query, check_query, name_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.answering.models import Answer, Turn
    from rag_pipeline.answering.preparing import Plan
    from rag_pipeline.core.protocols import ChatMessage, ChatModel
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.limits import Observer, Protection
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever


REWORDING_S: Final = 5.0
"""Seconds that a model has to word a question; then the rules' wording is searched."""


async def reword(plan: Plan, model: ChatModel, protection: Protection) -> str:
    """Return the question to search: a model's wording of a follow-up, or the completed question.

    The completed question is returned if the question needs no earlier turn, and if the model
    fails, is too slow or writes something else.
    """
    if not plan.is_follow_up or protection.chat_model.state != "closed":
        return plan.completed
    text = await _ask(model, rewrite_messages(plan.question, plan.turns))
    return read_rewrite(text, plan.question, plan.completed, plan.turns)


async def translate(
    plan: Plan,
    searched: str,
    chunks: Sequence[ScoredChunk],
    model: ChatModel,
    protection: Protection,
) -> str:
    """Return a question in the language of the book; empty if it is in that language already.

    It is also empty if the question is about a selected text, and if the model fails, is too slow
    or writes something else.

    Args:
        plan: The question.
        searched: The wording that was searched.
        chunks: The passages that were found for it.
        model: Translates the question.
        protection: The circuit breaker of the model.
    """
    if protection.chat_model.state != "closed" or plan.query.mode == Mode.SELECTED_TEXT_ONLY:
        return ""
    languages = find_languages(plan.question, chunks)
    if languages is None:
        return ""
    _, written = languages
    line = read_line(await _ask(model, rewrite_messages(searched, language=written)))
    is_translated = find_language(line) in {"", written} and line != searched
    return line if is_translated else ""


async def _ask(model: ChatModel, messages: Sequence[ChatMessage]) -> str:
    """Return the reply of a model; empty if it fails or is too slow."""
    async with aclosing(model.stream(messages)) as written:
        try:
            async with asyncio.timeout(REWORDING_S):
                return "".join([piece async for piece in written])
        except Exception:  # noqa: BLE001  # no failure of a model may lose the question
            return ""


THREADS: Final = 3
"""Threads for the searches of asynchronous calls.

That is one more than the answers of one client at a time (SERVE_CLIENT_ANSWERS). Beside ten costly
selections of one client, another client then waits 0.5 to 1.3 s, and with 2 threads up to 5.2 s, on
2 cores with a load of 24. With 50 threads the event loop is late by 111 ms.
"""

_Result = TypeVar("_Result")


class Assistant(Closing):
    """Answers questions with one retriever and one client of the answering model.

    Several threads and event loops can share an assistant.

    Args:
        retriever: Finds the passages. A `LateRetriever` is opened by the first question that needs
            the collection.
        chat_model: Writes the answers; None quotes passages from the book.
        voice: The name, language and style of the assistant; None takes the defaults.
        marks_ungrounded: Mark sentences of the model that are in no source. Otherwise they are left
            out.

    Attributes:
        chat_model: The answering model, or None.
        voice: The name, language and style of the assistant.
        limits: The longest times of writing an answer. By default there are none; the service sets
            its own.
    """

    def __init__(
        self,
        retriever: Retriever | LateRetriever,
        chat_model: ChatModel | None = None,
        *,
        voice: Voice | None = None,
        marks_ungrounded: bool = False,
    ) -> None:
        self._searcher = retriever
        self.chat_model = chat_model
        self.voice = voice or Voice()
        self.limits = WriteLimits()
        self._marks_ungrounded = marks_ungrounded
        self._pool: ThreadPoolExecutor | None = None
        self._opening = Lock()

    @property
    def retriever(self) -> Retriever:
        """The retriever, for searches without an answer. The first use opens a late one.

        Raises:
            RagPipelineError: As described for `open_retriever`.
        """
        searcher = self._searcher
        return searcher.open() if isinstance(searcher, LateRetriever) else searcher

    @property
    def protection(self) -> Protection:
        """The time limits, circuit breakers and log of searches and answers."""
        return self._searcher.protection

    def prepare(
        self, query: Query, *, history: Sequence[Turn] = (), even_if_unrelated: bool = False
    ) -> PreparedAnswer:
        """Find and judge the passages for a query, without writing an answer.

        Args:
            query: The question. At least 5 passages are read, and 30 if a chat model writes.
            history: Earlier turns of the conversation, oldest first. They may come from a client.
            even_if_unrelated: Answer from a selection even if the question seems unrelated to it.

        Raises:
            RagPipelineError: As described for `stream_answer`.
        """
        protection, started, model = self.protection, time.perf_counter(), self.chat_model
        with protection.watch("answer", name_questions([query]), only_failures=True):
            plan = plan_question(query, history)
            searched = run_async(reword(plan, model, protection)) if model else plan.completed
            found = self._search(plan, searched, started, even_if_unrelated=even_if_unrelated)
            if model is None:
                return found
            other = run_async(translate(plan, searched, found.result.chunks, model, protection))
            return self._search(plan, other, started) if other else found

    def write(self, prepared: PreparedAnswer) -> AnswerStream:
        """Return a stream that writes the answer to a prepared question."""
        return AnswerStream(self._write(prepared))

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
        """Do the same as `prepare` while the event loop continues."""
        protection, started, model = self.protection, time.perf_counter(), self.chat_model
        with protection.watch("answer", name_questions([query]), only_failures=True):
            plan = plan_question(query, history)
            searched = await reword(plan, model, protection) if model else plan.completed
            found = await self.arun(
                lambda: self._search(plan, searched, started, even_if_unrelated=even_if_unrelated)
            )
            if model is None:
                return found
            other = await translate(plan, searched, found.result.chunks, model, protection)
            return await self.arun(lambda: self._search(plan, other, started)) if other else found

    async def awrite(self, prepared: PreparedAnswer) -> AsyncAnswerStream:
        """Return an asynchronous stream that writes the answer to a prepared question."""
        return self._write(prepared)

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

    async def arun(self, action: Callable[[], _Result]) -> _Result:
        """Run an action, such as a search, in one of the assistant's threads.

        If the caller is cancelled, an action that still waits for a free thread is not run.

        Raises:
            StoreTimeoutError: No thread was free within the time limit of one query.
        """
        with self._opening:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="assistant")
            future = self._pool.submit(action)
        limit_s = self.protection.limits.query_s
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([waiting], timeout=limit_s)
        except asyncio.CancelledError:
            waiting.cancel()  # also takes the action out of the queue
            raise
        if done:
            return waiting.result()
        if not future.cancel():  # it runs, so its own time limit ends it with a clearer error
            return await waiting
        error = StoreTimeoutError(
            f"too many questions were asked at once: this one waited {limit_s:.3g} s for its turn. "
            "Try again later"
        )
        error.retry_after_s = limit_s
        raise error

    def close(self) -> None:
        """Close the collection and end the threads; a later question opens them again."""
        with self._opening:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)
        self._searcher.close()

    def _write(self, prepared: PreparedAnswer) -> AsyncAnswerStream:
        return AsyncAnswerStream(
            prepared,
            self.chat_model,
            self.protection,
            self.arun,
            self.voice,
            marks=self._marks_ungrounded,
            limits=self.limits,
        )

    def _search(
        self, plan: Plan, searched: str, started: float, *, even_if_unrelated: bool = False
    ) -> PreparedAnswer:
        began = time.perf_counter()
        prepared = search_plan(
            plan,
            self._searcher,
            searched,
            writes=self.chat_model is not None,
            voice=self.voice,
            even_if_unrelated=even_if_unrelated,
        )
        timings_ms = {
            "queue": (began - started) * 1000,  # reading the question and waiting for a thread
            "retrieve": (time.perf_counter() - began) * 1000,
        }
        return replace(prepared, timings_ms=timings_ms)


def open_assistant(
    settings: Settings | None = None, *, observe: Observer | None = None
) -> Assistant:
    """Return an assistant over the collection and the answering model that the settings name.

    The collection and the embedding service are connected by the first question about the book,
    which raises their errors. Greetings and selected texts need neither.

    Args:
        settings: None reads the environment and `.env`.
        observe: Called for each search and answer that ended, with the error or None.

    Raises:
        ConfigurationError: A setting is missing or invalid.
    """
    from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__

    chosen = settings or load_settings()
    searcher, model = LateRetriever(chosen, observe), connect_chat_model(chosen)
    return Assistant(
        searcher,
        model,
        voice=read_voice(chosen),
        marks_ungrounded=chosen.answer_ungrounded == "mark",
    )


def answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    even_if_unrelated: bool = False,
) -> Answer:
    """Answer a question from the book with citations; return the answer when it is complete.

    Takes the arguments of `stream_answer` and raises its errors.
    """
    with stream_answer(
        query,
        retriever=retriever,
        chat_model=chat_model,
        settings=settings,
        even_if_unrelated=even_if_unrelated,
    ) as stream:
        return stream.answer


def stream_answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    even_if_unrelated: bool = False,
) -> AnswerStream:
    """Retrieve passages for a question now, and return a stream that then writes the answer.

    If the book may cover the question, a chat model writes the answer or declines. Without a
    model, or if the model fails, the answer is passages from the book. To ask several questions,
    use `open_assistant`.

    Args:
        query: A query, or a question as text, which is asked of the whole book. Even if `top_k` is
            lower, at least 5 passages are read, and 30 if a chat model writes.
        retriever: None opens one for this query. Selected-text mode does not need one.
        chat_model: None uses the model of the settings, if they name one.
        settings: None reads the environment and `.env` when a setting is needed.
        even_if_unrelated: Answer from a selected text even if the question seems unrelated to it.

    Raises:
        QueryError: The query is not valid.
        EmbeddingError: The question could not be embedded.
        StoreError: The collection is missing, was built by another model, or cannot be reached.
        ConfigurationError: A setting is missing or invalid.
    """
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__

    full_query = Query(query) if isinstance(query, str) else query
    searcher = retriever or LateRetriever(settings or load_settings())
    with searcher if isinstance(searcher, LateRetriever) else nullcontext():
        with searcher.protection.watch("answer", name_questions([full_query]), only_failures=True):
            check_query(full_query)
            if chat_model is None and not find_reply(full_query):
                from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__

                chat_model = connect_chat_model(settings or load_settings())
        assistant = Assistant(searcher, chat_model)
        return assistant.stream(full_query, even_if_unrelated=even_if_unrelated)
