"""Chat model that streams answers from OpenAI, or from a server with the same API."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import httpx2
import openai

from rag_pipeline.adapters.async_chat import OpenAIChatStream
from rag_pipeline.adapters.chat_request import LONGEST_WAIT_S, ChatRequest, EventReader
from rag_pipeline.adapters.client_environment import reading_environment
from rag_pipeline.adapters.connections import RequestLine
from rag_pipeline.adapters.http import call_with_retries
from rag_pipeline.core.closing import InterruptibleGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from openai import Stream
    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.core.protocols.chat import ChatMessage

DEFAULT_MODEL: Final = "gpt-4o-mini"
"""Model that is used if ANSWER_MODEL is empty: small, cheap, and it follows citation rules."""


class OpenAIChatModel:
    """A chat model that streams answers from an OpenAI-compatible chat completions endpoint.

    Args:
        model: Name of the model. If empty, gpt-4o-mini is used.
        api_key: API key, sent only to this service. Empty for a server that needs no key.
        base_url: Base URL of the API. If empty, OpenAI's own URL is used.
        timeout_s: Time limit in seconds for a whole answer, including retries and waits.
        max_tokens: Largest number of tokens in one answer.
        sleep: Function that waits the given number of seconds between two attempts.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str,
        base_url: str,
        timeout_s: float,
        max_tokens: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._request = ChatRequest(
            model or DEFAULT_MODEL, api_key, base_url, timeout_s, max_tokens
        )
        with reading_environment():
            self._tls = httpx2.create_ssl_context()  # takes 0.1 s, so all answers share it

    @property
    def name(self) -> str:
        """Name of the model that writes the answers."""
        return self._request.model

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Return a generator that streams the answer to the messages as pieces of text.

        The request is sent when the first piece is asked for. Closing the generator, from any
        thread, aborts the request. The generator returns True if the answer is complete, and False
        if the token limit or the service's content filter cut it off. `ChatModel.stream` lists
        the errors.
        """
        line = RequestLine()
        return InterruptibleGenerator(self._write(messages, line), line.hang_up)

    def astream(self, messages: Sequence[ChatMessage]) -> OpenAIChatStream:
        """Return an asynchronous stream of the answer, which needs no thread.

        The request is sent when the first piece is asked for. Closing the stream, or cancelling the
        task that reads it, aborts the request.
        """
        return OpenAIChatStream(self._request, messages, self._tls)

    def _write(
        self, messages: Sequence[ChatMessage], line: RequestLine
    ) -> Generator[str, None, bool]:
        request = self._request
        deadline = time.monotonic() + request.timeout_s
        alarm = threading.Timer(request.timeout_s, line.hang_up)
        alarm.daemon = True
        alarm.start()
        try:
            with self._connect(line) as client:
                stream, _ = call_with_retries(
                    lambda: self._open(client, messages, deadline, line),
                    longest_wait_s=LONGEST_WAIT_S,
                    longest_s=request.timeout_s,
                    sleep=self._sleep,
                )
                with request.translating(line), stream:
                    reason = yield from _read_pieces(stream, request.read_events())
        finally:
            alarm.cancel()
        return request.judge_end(reason, line)

    def _connect(self, line: RequestLine) -> openai.OpenAI:
        """Create a client whose requests `line` can abort; each answer needs a client of its own.

        Answers that shared a client could share a connection, and an abort ends the connection.
        """
        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [line.attach],
            "response": [_read_refusal],
        }
        with reading_environment():
            http = openai.DefaultHttpxClient(verify=self._tls, event_hooks=hooks)
        return openai.OpenAI(**self._request.client_arguments, http_client=http)

    def _open(
        self,
        client: openai.OpenAI,
        messages: Sequence[ChatMessage],
        deadline: float,
        line: RequestLine,
    ) -> Stream[ChatCompletionChunk]:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or line.hung_up:
            raise self._request.describe_late()
        body = self._request.build_body(messages)
        with self._request.translating(line):
            stream: Stream[ChatCompletionChunk] = client.chat.completions.create(
                stream=True, timeout=left_s, **body
            )
        return stream


def _read_refusal(response: httpx2.Response) -> None:
    """Read the body of an error response at once, as an event hook of the HTTP client.

    If reading fails inside the hook, OpenAI's client raises one of its own errors, which
    `ChatRequest.translating` knows. If it failed later, the HTTP client would raise its error.
    """
    if not response.is_success:
        response.read()


def _read_pieces(
    stream: Stream[ChatCompletionChunk], reader: EventReader
) -> Generator[str, None, str]:
    """Yield the pieces of text in a streamed answer and return the reason why the answer ended.

    `EventReader` lists the errors.
    """
    for event in stream:
        piece = reader.feed(event)
        if piece:
            yield piece
        if reader.is_full:
            break
    half = reader.finish()
    if half:
        yield half
    return reader.reason
