"""Write a prepared answer: let a model write it, quote the book, or refuse.

Whatever a model does, the passages that were found are not lost. If the model fails, declines or
writes nothing that stands in the sources, the passages are quoted.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rag_pipeline.answering.grounding import decline, make_refusal
from rag_pipeline.answering.models import (
    REPLIES,
    Answer,
    AnswerKind,
    GroundedResponse,
    Level,
    Notice,
)
from rag_pipeline.answering.preparing import PreparedAnswer, append_quotes, give_ready
from rag_pipeline.answering.prompts import STOP, build_prompt, cite_sources
from rag_pipeline.answering.writing.generated import AnswerWriter
from rag_pipeline.core.errors import (
    AnswerContextError,
    AnswerError,
    AnswerTimeoutError,
    RagPipelineError,
    describe_kind,
)
from rag_pipeline.core.models import Closing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine

    from rag_pipeline.answering.voice import Voice
    from rag_pipeline.core.protocols import ChatModel, ChatStream
    from rag_pipeline.retrieval.limits import Protection
    from rag_pipeline.retrieval.logs import Operation
    from rag_pipeline.retrieval.models import RetrievalResult

    Run = Callable[[Callable[[], Any]], Awaitable[Any]]

_Result = TypeVar("_Result")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """The longest times of writing one answer, in seconds. If None, there is no limit.

    Attributes:
        model_s: From the request to the last text of a model. What is left out is quoted.
        quote_s: For choosing and quoting passages, the wait for a thread included.
    """

    model_s: float | None = None
    quote_s: float | None = None


class AsyncAnswerStream(AsyncIterator[str]):
    """An asynchronous iterator over the pieces of an answer's text while it is being written.

    `async with` closes the stream and aborts the model's request. So does cancelling the task that
    reads a piece.

    Args:
        prepared: The question with its passages.
        model: Writes the answer; None quotes passages.
        protection: Circuit breaker and log.
        run: Runs a function in a thread of the assistant.
        voice: The language of the fixed sentences.
        marks: Whether sentences that are in no source are marked; otherwise they are left out.
        limits: The longest times.

    Attributes:
        prepared: The question with its passages.
    """

    def __init__(
        self,
        prepared: PreparedAnswer,
        model: ChatModel | None,
        protection: Protection,
        run: Run,
        voice: Voice,
        *,
        marks: bool = False,
        limits: WriteLimits | None = None,
    ) -> None:
        self.prepared = prepared
        self._limits = limits or WriteLimits()
        self._run = run
        self._protection = protection
        self._voice = voice
        self._marks = marks
        grounding = prepared.grounding
        is_ready = grounding.level is Level.NOT_COVERED or grounding.reason in REPLIES
        self._model = None if is_ready else model  # asked only if passages may hold the answer
        self._written: ChatStream | None = None
        self._writer: AnswerWriter | None = None
        self._answer: Answer | None = None
        self._notice: Notice | None = None  # says why passages are quoted
        self._model_error: str | None = None
        self._is_reading = self._is_closed = False
        self._pieces = self._write()

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
            AnswerError: The stream was closed before the answer was complete.
            AnswerTimeoutError: No passage could be chosen in time.
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
        prepared, voice = self.prepared, self._voice
        with self._protection.watch("answer", [prepared.query.question]) as operation:
            operation.timings_ms.update(prepared.timings_ms)
            operation.started -= sum(prepared.timings_ms.values()) / 1000
            if self._model is None:
                self._notice = voice.note("no_model")
            else:
                async with aclosing(self._ask_model(self._model, operation)) as pieces:
                    async for piece in pieces:
                        yield piece
            if self._answer is None:
                ready = await self._quote(lambda: give_ready(prepared, self._notice, voice))
                self._check_open()
                if ready.text:
                    yield ready.text
                self._answer = ready
            answer = self._answer = replace(self._answer, model_error=self._model_error)
            operation.result_count = len(answer.grounding.sources)
            operation.details |= {
                "kind": answer.kind.value,
                "level": answer.grounding.level.value,
                "model": answer.model,
                "notices": [notice.code for notice in answer.notices],
            }

    async def _ask_model(  # noqa: C901  # one branch for each end of a model's answer
        self, model: ChatModel, operation: Operation
    ) -> AsyncGenerator[str, None]:
        """Yield the text of a model's answer, and keep the answer.

        If the model gives no answer, keep the notice that says why. If it fails after a part of
        the answer was shown, quotes follow that part.
        """
        grounding, failure = self.prepared.grounding, None
        try:
            async with aclosing(self._read_model(model)) as pieces:
                async for piece in pieces:
                    yield piece
        except Exception as error:  # noqa: BLE001  # no failure of a model may lose the passages
            self._check_open()
            failure = error
            self._model_error = _note_failure(operation, error)
        writer = self._writer
        if writer is None:  # the model was not asked, because it fails again and again
            self._notice = self._voice.note("model_unavailable", error=_name(failure))
            return
        complete = failure is None and (self._written is None or self._written.complete)
        rest, written = await self._run(lambda: writer.finish(complete=complete))
        self._check_open()
        if rest:
            yield rest
        if failure is None and written.is_empty and not written.text:
            failure = AnswerError(
                f"the model {model.name} wrote no answer, or a content filter blocked it. "
                "Raise ANSWER_MAX_TOKENS, rephrase the question or choose another model"
            )
            self._model_error = _note_failure(operation, failure)
        if written.text:
            answer = cite_sources(
                Answer(
                    question=self.prepared.query.question,
                    text=written.text,
                    kind=AnswerKind.GENERATED,
                    sentences=written.sentences,
                    citations=(),
                    grounding=grounding,
                    dropped_numbers=written.dropped_numbers,
                    complete=complete,
                    model=model.name,
                    notices=(*grounding.notices, *written.notices),
                )
            )
            if failure is not None:
                notice = self._voice.note("cut_off_quotes")
                more, answer = await self._quote(
                    lambda: append_quotes(answer, self.prepared, notice)
                )
                self._check_open()
                yield more
            self._answer = answer
        elif failure is not None:
            self._notice = self._voice.note("model_unavailable", error=_name(failure))
        elif not written.declined:
            self._notice = self._voice.note("not_grounded")
        elif grounding.level is Level.ANSWERED:
            self._notice = self._voice.note("model_declined")
        else:
            declined = decline(grounding, self._voice)
            refusal = make_refusal(declined, self._voice, self.prepared.query.question)
            yield refusal.text
            self._answer = replace(refusal, model=model.name)

    async def _read_model(self, model: ChatModel) -> AsyncGenerator[str, None]:
        """Yield the text to show of what the model writes.

        If the prompt is too long for the model, ask once more with half of the sources.
        """
        prepared, most = self.prepared, None
        limit_s, now = self._limits.model_s, asyncio.get_running_loop().time()
        until = None if limit_s is None else now + limit_s
        with self._protection.chat_model.passing():
            await model.prepare()
            self._check_open()
            while True:
                prompt = build_prompt(
                    prepared.grounding,
                    prepared.question,
                    prepared.turns,
                    voice=self._voice,
                    count_tokens=model.count_tokens,
                    room=model.prompt_tokens,
                    most_sources=most,
                )
                written = self._written = model.stream(prompt.messages, stop=STOP)
                make_writer = asyncio.to_thread(  # reads the sources while the model starts
                    AnswerWriter,
                    prepared.grounding,
                    prepared.question,
                    self._voice,
                    marks=self._marks,
                    instructions=prompt.frame,
                    secret=prompt.key,
                )
                reading = asyncio.create_task(make_writer)
                try:
                    while (piece := await _read_until(written, until)) is not None:
                        writer = await reading
                        shown = writer.feed(piece)
                        if shown:
                            yield shown
                        if writer.is_ended:
                            break
                    self._check_open()
                    return  # noqa: TRY300  # the check belongs to what an abort may raise
                except AnswerContextError:
                    if most is not None or prompt.source_count < 2:
                        raise
                    most = prompt.source_count // 2
                except Exception:  # an abort can show up as any error of the model
                    self._check_open()
                    raise
                finally:
                    self._writer = await reading
                    await written.aclose()

    async def _quote(self, action: Callable[[], _Result]) -> _Result:
        """Choose and quote passages in a thread of the assistant, within the limit of time."""
        limit = asyncio.timeout(self._limits.quote_s)
        try:
            async with limit:
                quoted: _Result = await self._run(action)
                return quoted
        except TimeoutError:
            if not limit.expired():
                raise
            message = "no passage could be chosen in time. Try again later, or select less text"
            raise AnswerTimeoutError(message) from None

    def _check_open(self) -> None:
        """End the generator, as an aborted operation, if another task closed the stream."""
        if self._is_closed:
            raise _AbortedError from None


class AnswerStream(Closing, Iterator[str]):
    """An iterator over the pieces of an answer's text while the answer is being written.

    The property `answer` returns the complete answer. Closing the stream, or leaving its `with`
    block, aborts the model's request. Any thread may close it; for a thread that waits for the next
    piece, the iteration then ends.

    Args:
        stream: The asynchronous stream, which runs in a thread of this package.

    Attributes:
        result: The passages that retrieval found.
        grounding: The sources, and the decision whether they suffice. Known before the first piece.
    """

    def __init__(self, stream: AsyncAnswerStream) -> None:
        self._stream = stream
        self.result: RetrievalResult = stream.prepared.result
        self.grounding: GroundedResponse = stream.prepared.grounding

    def __next__(self) -> str:
        """Return the next piece of the answer's text, which is never empty."""
        try:
            return run_async(self._stream.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    @property
    def answer(self) -> Answer:
        """The complete answer. Reading it first consumes the rest of the stream.

        Raises:
            AnswerError: The stream was closed before the answer was complete.
        """
        return run_async(self._stream.answer())

    def close(self) -> None:
        """Abort the model's request. Any thread may call this, also repeatedly."""
        run_async(self._stream.aclose())


def run_async(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine in the event loop of this package, and return its result."""
    return asyncio.run_coroutine_threadsafe(work, _get_loop()).result()


@lru_cache(maxsize=1)
def _get_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="answers", daemon=True).start()
    return loop


async def _read_until(written: ChatStream, until: float | None) -> str | None:
    """Return the next piece of a model's text, or None after the last.

    Raises:
        AnswerTimeoutError: The time of the event loop has reached `until`.
    """
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            return await anext(aiter(written), None)
    except TimeoutError:
        if not limit.expired():  # the model raised it
            raise
        message = (
            "the model had not ended its answer when its time was over. Lower ANSWER_MAX_TOKENS, "
            "or choose a faster model"
        )
        raise AnswerTimeoutError(message) from None


class _AbortedError(BaseException):
    """Another task closed the stream. It is no error of the answer, so it counts as an abort."""


def _note_failure(operation: Operation, error: Exception) -> str:
    """Write a failure of the model to the log line of the answer, and log its message.

    Returns:
        The code and the message of the failure.
    """
    operation.details["model_error"] = _name(error)
    message = error.public_message if isinstance(error, RagPipelineError) else describe_kind(error)
    _logger.warning("the answer model failed, so passages are quoted: %s", message)
    return f"{_name(error)}: {message}"


def _name(error: Exception | None) -> str:
    return error.code if isinstance(error, RagPipelineError) else "ANSWER_FAILED"
