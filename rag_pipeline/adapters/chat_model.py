"""Answers by a chat model of OpenAI, or of any server that speaks its API.

Belongs here: the client, its limits, and vendor errors as ours. Does not belong here: what is asked
(answering.prompts) and what becomes of the words (answering.generation).
"""

from __future__ import annotations

import codecs
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import openai

from rag_pipeline.adapters.request_line import RequestLine
from rag_pipeline.adapters.retrying import call_with_retries, read_retry_after
from rag_pipeline.adapters.vendor_text import (
    UNREADABLE,
    name_host,
    quote_vendor,
    separate_login,
)
from rag_pipeline.core.closing import InterruptibleGenerator
from rag_pipeline.core.errors import (
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
    ConfigurationError,
    RagPipelineError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from openai import Stream
    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.core.protocols.chat import ChatMessage

DEFAULT_MODEL: Final = "gpt-4o-mini"
"""Small and cheap, and it follows citation instructions; used where ANSWER_MODEL is empty."""

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

_LONGEST_WAIT_S: Final = 2.0  # between tries: somebody waits for the answer
_NO_KEY: Final = "none"  # the client insists on one; local servers ask for none


class OpenAIChatModel:
    """A `ChatModel` over the chat completions endpoint, streamed.

    Args:
        model: Empty for gpt-4o-mini.
        api_key: Sent to the service and to nobody else; empty for a server that asks for none.
        base_url: Empty for OpenAI itself.
        timeout_s: For a whole answer, tries and waits included; also the longest silence.
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
        self._host = name_host(base_url or DEFAULT_BASE_URL)
        self._address, self._login = separate_login(base_url or DEFAULT_BASE_URL)
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
            message = f"the answer of {self._model} at {self._host} broke off. Try again"
            raise self._late() if line.hung_up else AnswerServiceError(message)
        return finish not in {"length", "content_filter"}

    def _connect(self, line: RequestLine) -> openai.OpenAI:
        """A client for one answer, so that its line is no other's."""
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
        """Make errors of this package of all that a client or an answer may raise."""
        try:
            yield
        except (openai.APIError, *UNREADABLE) as error:
            if line.hung_up:  # whatever that looks like from the other end
                raise self._late() from None
            if not isinstance(error, openai.APIError):
                raise self._no_answer(type(error).__name__) from error
            raise self._translate(error) from None  # the vendor's text may show parts of the key

    def _late(self) -> AnswerTimeoutError:
        return AnswerTimeoutError(
            f"{self._model} at {self._host} did not finish within {self._timeout_s:g} s. Try "
            "again, lower ANSWER_MAX_TOKENS or raise ANSWER_TIMEOUT_S"
        )

    def _no_answer(self, found: str) -> AnswerError:
        return AnswerError(
            f"{self._host} did not answer as a chat service does ({found}). Check OPENAI_BASE_URL "
            "and ANSWER_MODEL"
        )

    def _translate(self, error: openai.APIError) -> RagPipelineError:
        if isinstance(error, openai.APITimeoutError):
            return self._late()
        if isinstance(error, openai.APIStatusError):
            return self._translate_status(error)
        if isinstance(error, openai.APIConnectionError):
            cause = type(error.__cause__ or error).__name__
            return AnswerServiceError(
                f"the answer service at {self._host} cannot be reached or broke off ({cause}). "
                "Check the network and OPENAI_BASE_URL"
            )
        said = quote_vendor(error, self._api_key)
        return AnswerServiceError(
            f"the answer service at {self._host} failed while it wrote ({said}). Try again later"
        )

    def _translate_status(self, error: openai.APIStatusError) -> RagPipelineError:
        status = error.status_code
        said = f"HTTP {status}: {quote_vendor(error.message, self._api_key)}"
        if status in {401, 403}:
            problem = f"the answer service at {self._host} refused it (HTTP {status})"
            return ConfigurationError("OPENAI_API_KEY", problem, "Set a key that may use the model")
        if error.code == "insufficient_quota":
            problem = f"its account at {self._host} has no quota left (HTTP {status})"
            return ConfigurationError("OPENAI_API_KEY", problem, "Add credit or use another key")
        if status in {408, 409, 429} or status >= 500:
            failure = AnswerServiceError(
                f"the answer service at {self._host} failed ({said}). Try again later"
            )
            failure.retry_after_s = read_retry_after(error.response.headers.get("retry-after"))
            return failure
        if status == 404:
            problem = f"the service at {self._host} does not know {self._model} ({said})"
            return ConfigurationError("ANSWER_MODEL", problem, "Check it and OPENAI_BASE_URL")
        return AnswerError(
            f"the answer service at {self._host} refused the request ({said}). Check ANSWER_MODEL "
            "and ANSWER_MAX_TOKENS"
        )


def name_limit(address: str) -> str:
    """What a service calls the most tokens of an answer.

    OpenAI's newer models refuse max_tokens; other servers may know nothing else.
    """
    is_openai = f".{urlsplit(address).hostname}".endswith(".openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"


def _read_refusal(response: httpx2.Response) -> None:
    """Read what is no stream while the client still makes its own errors of what goes wrong."""
    if not response.is_success:
        response.read()


def _read_pieces(stream: Stream[ChatCompletionChunk]) -> Generator[str, None, str]:
    """Yield an answer's pieces and return why it ended, empty where it does not say.

    A character in two halves may come in two pieces: the first half waits for the second. One that
    is left alone becomes U+FFFD, since it cannot be encoded.
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
