"""Write a prepared answer: let a model write it, quote the book, or refuse."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.answering.answer_stream import AnswerStream
from rag_pipeline.answering.models import Answer, Level
from rag_pipeline.answering.prompts import build_messages
from rag_pipeline.answering.quoting.extracted import NO_MODEL_NOTICE
from rag_pipeline.answering.ready import describe_failure, exhaust, give_ready, quote_on_failure
from rag_pipeline.answering.writing.generated import AnswerWriter, write_answer
from rag_pipeline.core.errors import AnswerError, AnswerServiceError
from rag_pipeline.core.protocols.chat import AsyncChatModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from typing import Any, Self

    from rag_pipeline.answering.preparing import PreparedAnswer
    from rag_pipeline.core.protocols.chat import ChatMessage, ChatModel, ChatStream
    from rag_pipeline.retrieval.protection.limits import Protection
    from rag_pipeline.retrieval.protection.logs import Operation

    Run = Callable[[Callable[[], Any]], Awaitable[Any]]


def write_stream(
    prepared: PreparedAnswer,
    model: ChatModel | None,
    protection: Protection,
    *,
    quotes_on_failure: bool = False,
) -> AnswerStream:
    """Return a stream that writes the answer to a prepared question.

    Args:
        prepared: The question with its passages. It can be written several times.
        model: Writes the answer; None quotes passages.
        protection: Circuit breaker and log. The answer is logged when it ends.
        quotes_on_failure: Quote passages if the model's service fails before the first piece.
    """
    grounded, abort = prepared.grounding, _do_nothing
    if model is not None and _may_write(prepared):
        written = model.stream(_build_messages(prepared))
        abort = written.close
        asked, breaker = prepared.query.question, protection.chat_model
        pieces = write_answer(grounded, asked, model.name, written, breaker)
        if quotes_on_failure:
            pieces = quote_on_failure(pieces, prepared)
    else:
        pieces = give_ready(prepared)
    return AnswerStream(prepared.result, grounded, _watch(pieces, prepared, protection), abort)


class AsyncAnswerStream:
    """An asynchronous iterator over the pieces of an answer's text while it is being written.

    `async with` closes the stream and aborts the model's request. So does cancelling the task that
    reads a piece.

    Args:
        prepared: The question with its passages.
        model: Writes the answer; None quotes passages.
        protection: Circuit breaker and log.
        run: Runs a function in a thread of the assistant.
        quotes_on_failure: Quote passages if the model's service fails before the first piece.

    Attributes:
        prepared: The question with its passages.
    """

    def __init__(
        self,
        prepared: PreparedAnswer,
        model: ChatModel | None,
        protection: Protection,
        run: Run,
        *,
        quotes_on_failure: bool = False,
    ) -> None:
        self.prepared = prepared
        self._quotes_on_failure = quotes_on_failure
        self._run = run
        self._protection = protection
        self._model = model if _may_write(prepared) else None
        self._written: ChatStream | None = None
        if self._model is not None:
            self._written = _stream_model(self._model, _build_messages(prepared))
        self._answer: Answer | None = None
        self._is_reading = self._is_closed = False
        self._pieces = self._write()

    def __aiter__(self) -> Self:
        """Return the stream itself, because it is an iterator."""
        return self

    async def __anext__(self) -> str:
        """Return the next piece of the answer's text, which is never empty."""
        if self._is_closed:
            raise StopAsyncIteration
        self._is_reading = True
        try:
            return await anext(self._pieces)
        except _AbortedError:
            raise StopAsyncIteration from None
        finally:
            self._is_reading = False

    async def answer(self) -> Answer:
        """Return the complete answer; consumes the rest of the stream first.

        Raises:
            AnswerError: The stream was closed or failed before the answer was complete.
        """
        async for _ in self:
            pass
        if self._answer is None:
            message = "the stream ended before the answer was complete. Ask the question again"
            raise AnswerError(message)
        return self._answer

    async def aclose(self) -> None:
        """Abort the model's request. A second call does nothing."""
        self._is_closed = True
        if self._written is not None:
            await self._written.aclose()
        if not self._is_reading:
            await self._pieces.aclose()

    async def __aenter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the stream."""
        await self.aclose()

    async def _write(self) -> AsyncGenerator[str, None]:
        prepared, has_begun, notice = self.prepared, False, NO_MODEL_NOTICE
        with self._protection.watch("answer", [prepared.query.question]) as operation:
            _continue_from(prepared, operation)
            if self._written is not None and self._model is not None:
                asked, name = prepared.query.question, self._model.name
                writer = AnswerWriter(prepared.grounding, asked, name)
                try:
                    async with aclosing(self._ask_model(self._written, writer)) as pieces:
                        async for piece in pieces:
                            has_begun = True
                            yield piece
                except AnswerServiceError as error:
                    if has_begun or not self._quotes_on_failure:
                        raise
                    notice = describe_failure(error)
            if self._answer is None:
                ready, entry = await self._run(lambda: exhaust(give_ready(prepared, notice)))
                self._check_open()
                for piece in ready:
                    yield piece
                self._answer = entry
            self._answer = _complete(self._answer, prepared, operation)

    async def _ask_model(
        self, written: ChatStream, writer: AnswerWriter
    ) -> AsyncGenerator[str, None]:
        """Yield the text to show of what the model writes, and keep the answer."""
        with self._protection.chat_model.passing():
            try:
                async for piece in written:
                    shown = writer.feed(piece)
                    if shown:
                        yield shown
            except Exception:  # an abort can show up as any error of the model
                self._check_open()
                raise
            finally:
                await written.aclose()
            self._check_open()
        complete = written.complete
        rest, entry = await self._run(lambda: writer.finish(complete=complete))
        self._check_open()
        if rest:
            yield rest
        self._answer = entry

    def _check_open(self) -> None:
        """End the generator, as an aborted operation, if another task closed the stream."""
        if self._is_closed:
            raise _AbortedError from None


class _AbortedError(BaseException):
    """Another task closed the stream. It is no error of the answer, so it counts as an abort."""


class _ThreadedStream:
    """The pieces of a model that has no asynchronous stream, each read in another thread."""

    def __init__(self, written: Generator[str, None, bool]) -> None:
        self.complete = True
        self._written = written

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        piece = await asyncio.to_thread(self._read)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _read(self) -> str | None:
        try:
            return next(self._written)
        except StopIteration as end:
            self.complete = end.value is not False
            return None

    async def aclose(self) -> None:
        try:
            self._written.close()
        except ValueError:  # a plain generator that another thread reads ends after its next piece
            return


def _stream_model(model: ChatModel, messages: list[ChatMessage]) -> ChatStream:
    if isinstance(model, AsyncChatModel):
        return model.astream(messages)
    return _ThreadedStream(model.stream(messages))


def _build_messages(prepared: PreparedAnswer) -> list[ChatMessage]:
    return build_messages(prepared.grounding, prepared.question, prepared.turns)


def _may_write(prepared: PreparedAnswer) -> bool:
    """Return True if a model is asked: there are passages that may answer the question."""
    return prepared.grounding.level is not Level.NOT_COVERED


def _watch(
    pieces: Generator[str, None, Answer], prepared: PreparedAnswer, protection: Protection
) -> Generator[str, None, Answer]:
    """Yield the pieces of an answer, return it with the question as asked, and log the operation.

    The log line is written when the answer is complete, when it fails, or when the generator is
    closed.
    """
    with protection.watch("answer", [prepared.query.question]) as operation:
        _continue_from(prepared, operation)
        return _complete((yield from pieces), prepared, operation)


def _continue_from(prepared: PreparedAnswer, operation: Operation) -> None:
    """Let an operation include the steps in which the answer was prepared."""
    operation.timings_ms.update(prepared.timings_ms)
    operation.started -= sum(prepared.timings_ms.values()) / 1000


def _complete(entry: Answer, prepared: PreparedAnswer, operation: Operation) -> Answer:
    operation.result_count = len(entry.grounding.sources)
    operation.details |= {
        "kind": entry.kind.value,
        "level": entry.grounding.level.value,
        "model": entry.model,
    }
    return replace(entry, question=prepared.query.question)


def _do_nothing() -> None:
    """Abort nothing, because no request was sent."""
