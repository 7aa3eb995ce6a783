"""Answers by a chat model of OpenAI, or of any server that speaks its API."""

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
"""Small and cheap, and it follows citation instructions; used if ANSWER_MODEL is empty."""

_LONGEST_WAIT_S: Final = 2.0  # between tries: somebody waits for the answer
_NO_KEY: Final = "none"  # the client insists on one; local servers ask for none


class OpenAIChatModel:
    """A `ChatModel` over the chat completions endpoint, streamed.

    Args:
        model: Empty for gpt-4o-mini.
        api_key: Sent to the service and to nobody else; empty for a server that asks for none.
        base_url: Empty for OpenAI itself.
        timeout_s: For a whole answer, tries and waits included.
        max_tokens: Of one answer.
        sleep: Waits between tries.
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
            tries="",  # a wait that would outlast the time limit is not begun
            transient_statuses=TRANSIENT_STATUSES,
        )
        self._limit: dict[str, Any] = {name_limit(self._address): max_tokens}
        self._tls = httpx2.create_ssl_context()  # a tenth of a second, which answers share

    @property
    def name(self) -> str:
        """The model asked."""
        return self._model

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Write an answer piece by piece; see `ChatModel.stream`."""
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
            broken = self._service.fail(f"broke off its answer, by {self._model}. Try again")
            raise self._late() if line.hung_up else broken
        return finish not in {"length", "content_filter"}

    def _connect(self, line: RequestLine) -> openai.OpenAI:
        """Make a client for one answer, so that hanging up ends no other answer."""
        return openai.OpenAI(
            api_key=self._api_key or _NO_KEY,
            base_url=self._address,
            default_headers=self._login,
            max_retries=0,  # ours keep to the time limit
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
        sent: list[Any] = [  # halves of surrogate pairs, as JSON can bring them, cannot be sent
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
        """Raise errors of this package for all that a client or an answer may raise."""
        try:
            yield
        except (openai.APIError, *UNREADABLE) as error:
            if line.hung_up:  # whatever that looks like from the other end
                raise self._late() from None
            if not isinstance(error, openai.APIError):
                raise self._service.describe_unreadable(type(error).__name__) from error
            if type(error) is openai.APIError:  # an event of the stream; any status was 200
                said = quote_vendor(error, self._api_key)
                message = f"failed while it wrote ({said}). Try again later"
                raise self._service.fail(message) from None
            raise translate_error(error, self._service, self._timeout_s) from None

    def _late(self) -> RagPipelineError:
        return self._service.describe_late(self._timeout_s)


def name_limit(address: str) -> str:
    """Return the name that a service gives to the limit on an answer's tokens.

    OpenAI's newer models refuse max_tokens; other servers may know only that.
    """
    is_openai = f".{urlsplit(address).hostname}".endswith(".openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"


def _read_refusal(response: httpx2.Response) -> None:
    """Read an error's body here, so that the client raises its own errors if that fails."""
    if not response.is_success:
        response.read()


def _read_pieces(stream: Stream[ChatCompletionChunk]) -> Generator[str, None, str]:
    """Yield an answer's pieces and return why it ended; empty if the service does not say.

    The two halves of a character may come in two pieces: the first half waits for the second. A
    half without the other becomes U+FFFD, since it cannot be encoded.
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
                problem = "a piece that is no text"
                raise TypeError(problem)
        piece = join((content or "").encode("utf-16-le", "surrogatepass"))
        if piece:
            yield piece
        finish = choice.finish_reason or finish
    if event is None:
        problem = "no event came"
        raise LookupError(problem)
    half = join(b"", final=True)
    if half:
        yield half
    return finish or ""
