"""Chat model that streams answers from OpenAI, or from a server with the same API."""

from __future__ import annotations

import codecs
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import openai

from rag_pipeline.adapters.connections import RequestLine
from rag_pipeline.adapters.http import (
    UNREADABLE,
    Service,
    call_with_retries,
    name_host,
    quote_vendor,
    separate_login,
)
from rag_pipeline.adapters.openai_api import (
    DEFAULT_BASE_URL,
    TRANSIENT_STATUSES,
    translate_error,
)
from rag_pipeline.core.closing import InterruptibleGenerator
from rag_pipeline.core.errors import AnswerError, AnswerServiceError, AnswerTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from openai import Stream
    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.protocols.chat import ChatMessage

DEFAULT_MODEL: Final = "gpt-4o-mini"
"""Model that is used if ANSWER_MODEL is empty: small, cheap, and it follows citation rules."""

_LONGEST_WAIT_S: Final = 2.0  # between two attempts; a reader is waiting for the answer
_NO_KEY: Final = "none"  # the client requires a key, even for a server that needs none


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
        self._model = model or DEFAULT_MODEL
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._address, self._login = separate_login(base_url or DEFAULT_BASE_URL)
        self._service = Service(
            "the answer service",
            "a chat service",
            name_host(self._address),
            api_key,
            refused_error=AnswerError,
            failed_error=AnswerServiceError,
            late_error=AnswerTimeoutError,
            key_setting="OPENAI_API_KEY",
            url_setting="OPENAI_BASE_URL",
            hint="Check ANSWER_MODEL and ANSWER_MAX_TOKENS",
            late_hint="Try again, lower ANSWER_MAX_TOKENS or raise ANSWER_TIMEOUT_S",
            model=self._model,
            model_setting="ANSWER_MODEL",
            tries="",  # the number varies: no retry starts if its wait would exceed the time limit
            transient_statuses=TRANSIENT_STATUSES,
        )
        self._limit: dict[str, Any] = {name_limit(self._address): max_tokens}
        self._tls = httpx2.create_ssl_context()  # takes 0.1 s to create, so all answers share it

    @property
    def name(self) -> str:
        """Name of the model that writes the answers."""
        return self._model

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Return a generator that streams the answer to the messages as pieces of text.

        The request is sent when the first piece is asked for. Closing the generator, from any
        thread, aborts the request. The generator returns True if the answer is complete, and False
        if the token limit or the service's content filter cut it off. `ChatModel.stream` lists
        the errors.
        """
        line = RequestLine()
        return InterruptibleGenerator(self._write(messages, line), line.hang_up)

    def _write(
        self, messages: Sequence[ChatMessage], line: RequestLine
    ) -> Generator[str, None, bool]:
        deadline = time.monotonic() + self._timeout_s
        alarm = threading.Timer(self._timeout_s, line.hang_up)
        alarm.daemon = True
        alarm.start()
        try:
            with self._connect(line) as client:
                stream, _ = call_with_retries(
                    lambda: self._open(client, messages, deadline, line),
                    longest_wait_s=_LONGEST_WAIT_S,
                    longest_s=self._timeout_s,
                    sleep=self._sleep,
                )
                with self._translating(line), stream:
                    finish = yield from _read_pieces(stream)
        finally:
            alarm.cancel()
        if not finish:
            broken = self._service.fail(
                f"stopped before the answer of {self._model} was complete. Try again"
            )
            raise self._late() if line.hung_up else broken
        return finish not in {"length", "content_filter"}

    def _connect(self, line: RequestLine) -> openai.OpenAI:
        """Create a client whose requests `line` can abort; each answer needs a client of its own.

        Answers that shared a client could share a connection, and an abort ends the connection.
        """
        return openai.OpenAI(
            api_key=self._api_key or _NO_KEY,
            base_url=self._address,
            default_headers=self._login,
            max_retries=0,  # our own retries respect the time limit
            http_client=openai.DefaultHttpxClient(
                verify=self._tls,
                event_hooks={"request": [line.attach], "response": [_read_refusal]},
            ),
        )

    def _open(
        self,
        client: openai.OpenAI,
        messages: Sequence[ChatMessage],
        deadline: float,
        line: RequestLine,
    ) -> Stream[ChatCompletionChunk]:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or line.hung_up:
            raise self._late()
        sent: list[Any] = [  # JSON input can contain lone surrogates, which UTF-8 cannot encode
            {"role": entry.role, "content": entry.content.encode("utf-8", "replace").decode()}
            for entry in messages
        ]
        with self._translating(line):
            stream: Stream[ChatCompletionChunk] = client.chat.completions.create(
                model=self._model, messages=sent, stream=True, timeout=left_s, **self._limit
            )
        return stream

    @contextmanager
    def _translating(self, line: RequestLine) -> Generator[None, None, None]:
        """Turn the errors that a `with` block raises into errors of this package.

        That covers errors of the OpenAI client, also those that an abort by `line` causes, and
        errors from reading a response that does not have the expected form.
        """
        try:
            yield
        except (openai.APIError, *UNREADABLE) as error:
            if line.hung_up:  # an abort can show up as any error of the client
                raise self._late() from None
            if not isinstance(error, openai.APIError):
                raise self._service.describe_unreadable(type(error).__name__) from error
            if (
                type(error) is openai.APIError
            ):  # an error event in the stream; the HTTP status was 200
                said = quote_vendor(error, self._api_key)
                message = f"failed while it wrote the answer ({said}). Try again later"
                raise self._service.fail(message) from None
            raise translate_error(error, self._service, self._timeout_s) from None

    def _late(self) -> RagPipelineError:
        return self._service.describe_late(self._timeout_s)


def name_limit(address: str) -> str:
    """Return the name of the request parameter that limits the tokens of an answer.

    For an address of OpenAI the name is `max_completion_tokens`, because OpenAI's newer models
    reject `max_tokens`. For any other address it is `max_tokens`, which may be the only name that
    the server knows.
    """
    is_openai = f".{urlsplit(address).hostname}".endswith(".openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"


def _read_refusal(response: httpx2.Response) -> None:
    """Read the body of an error response at once, as an event hook of the HTTP client.

    If reading fails inside the hook, OpenAI's client raises one of its own errors, which
    `_translating` knows. If it failed later, an error of the HTTP client would be raised.
    """
    if not response.is_success:
        response.read()


def _read_pieces(stream: Stream[ChatCompletionChunk]) -> Generator[str, None, str]:
    """Yield the pieces of text in a streamed answer and return the reason why the answer ended.

    The returned reason is empty if the service gives none. If a surrogate pair (two code units that
    form one character) is split between two pieces, it is yielded as a whole with the second. A
    half without its partner cannot be encoded and becomes U+FFFD.

    Raises:
        TypeError: A piece of text or the reason is not a string.
        LookupError: The stream contains no event.
    """
    join = codecs.getincrementaldecoder("utf-16-le")("replace").decode
    finish: str | None = None
    event = None
    for event in stream:
        choice = event.choices[0] if event.choices else None
        if choice is None:
            continue
        content = choice.delta.content if choice.delta is not None else None
        for text in (content, choice.finish_reason):
            if text is not None and not isinstance(text, str):
                problem = "a piece of the answer is not a string"
                raise TypeError(problem)
        piece = join((content or "").encode("utf-16-le", "surrogatepass"))
        if piece:
            yield piece
        finish = choice.finish_reason or finish
    if event is None:
        problem = "the stream contains no event"
        raise LookupError(problem)
    half = join(b"", final=True)
    if half:
        yield half
    return finish or ""
