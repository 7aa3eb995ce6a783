"""The asynchronous stream of one answer from OpenAI, or from a server with the same API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai

from rag_pipeline.adapters.chat_request import LONGEST_WAIT_S
from rag_pipeline.adapters.client_environment import reading_environment
from rag_pipeline.adapters.connections import RequestLine
from rag_pipeline.adapters.http import acall_with_retries

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Self

    import httpx2
    from openai import AsyncStream
    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.adapters.chat_request import ChatRequest
    from rag_pipeline.core.protocols.chat import ChatMessage


class OpenAIChatStream:
    """The pieces of one answer, read without a thread. See `core.protocols.chat.ChatStream`.

    Each answer has a client of its own, so that an abort ends no connection of another answer. The
    clients share the TLS context, so creating one takes about 0.1 ms.

    Args:
        request: Arguments and errors of the request.
        messages: The messages to the model.
        tls: The TLS context.
    """

    def __init__(
        self, request: ChatRequest, messages: Sequence[ChatMessage], tls: ssl.SSLContext
    ) -> None:
        self.complete = True
        self._request = request
        self._line = RequestLine()
        self._pieces = self._write(messages, tls)
        self._deadline: float | None = None
        self._is_closed = False
        self._is_reading = False

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> str:
        """Return the next piece of text; raises the errors of `ChatModel.stream`."""
        if self._is_closed:
            raise StopAsyncIteration
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._request.timeout_s
        self._is_reading = True
        try:
            async with asyncio.timeout_at(self._deadline):
                return await anext(self._pieces)
        except TimeoutError:
            raise self._request.describe_late() from None
        except Exception:  # an abort can show up as any error of the client
            if self._is_closed:
                raise StopAsyncIteration from None
            raise
        finally:
            self._is_reading = False

    async def aclose(self) -> None:
        """Abort the request. For a task that waits for a piece, the stream then ends."""
        self._is_closed = True
        await self._line.ahang_up()
        if not self._is_reading:
            await self._pieces.aclose()

    async def _write(
        self, messages: Sequence[ChatMessage], tls: ssl.SSLContext
    ) -> AsyncGenerator[str, None]:
        reader = self._request.read_events()
        async with self._connect(tls) as client:
            stream = await acall_with_retries(
                lambda: self._open(client, messages),
                longest_wait_s=LONGEST_WAIT_S,
                longest_s=self._request.timeout_s,
                sleep=asyncio.sleep,
            )
            with self._request.translating(self._line):
                async with stream:
                    async for event in stream:
                        piece = reader.feed(event)
                        if piece:
                            yield piece
                        if reader.is_full:
                            break
                    half = reader.finish()
            if half:
                yield half
        self.complete = self._request.judge_end(reader.reason, self._line)

    def _connect(self, tls: ssl.SSLContext) -> openai.AsyncOpenAI:
        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [self._line.aattach],
            "response": [_read_refusal],
        }
        with reading_environment():
            http = openai.DefaultAsyncHttpxClient(verify=tls, event_hooks=hooks)
        return openai.AsyncOpenAI(**self._request.client_arguments, http_client=http)

    async def _open(
        self, client: openai.AsyncOpenAI, messages: Sequence[ChatMessage]
    ) -> AsyncStream[ChatCompletionChunk]:
        if self._line.hung_up:
            raise self._request.describe_late()
        body = self._request.build_body(messages)
        with self._request.translating(self._line):
            stream: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(
                stream=True, timeout=self._request.timeout_s, **body
            )
        return stream


async def _read_refusal(response: httpx2.Response) -> None:
    """Read the body of an error response at once; `_read_refusal` of `chat_model` says why."""
    if not response.is_success:
        await response.aread()
