"""What synchronous and asynchronous requests to a chat model share: arguments, errors, events."""

from __future__ import annotations

import codecs
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import openai

from rag_pipeline.adapters.http import (
    UNREADABLE,
    Service,
    name_host,
    quote_vendor,
    separate_login,
)
from rag_pipeline.adapters.openai_api import (
    DEFAULT_BASE_URL,
    TRANSIENT_STATUSES,
    translate_error,
)
from rag_pipeline.core.errors import AnswerError, AnswerServiceError, AnswerTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.adapters.connections import RequestLine
    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.protocols.chat import ChatMessage

LONGEST_WAIT_S: Final = 2.0
"""Seconds between two attempts; a reader is waiting for the answer."""

_TOKEN_CHARS: Final = 50  # far more than a token of text has, which is about 4 characters

_NO_KEY: Final = "none"  # the client requires a key, even for a server that needs none


class ChatRequest:
    """The arguments of the requests to one chat model, and the errors of their failures.

    Args:
        model: Name of the model.
        api_key: API key. Empty for a server that needs no key.
        base_url: Base URL of the API. If empty, OpenAI's own URL is used.
        timeout_s: Time limit in seconds for a whole answer, including retries and waits.
        max_tokens: Largest number of tokens in one answer.
    """

    def __init__(
        self, model: str, api_key: str, base_url: str, timeout_s: float, max_tokens: int
    ) -> None:
        self.model = model
        self.timeout_s = timeout_s
        self._api_key = api_key
        self._address, self._login = separate_login(base_url or DEFAULT_BASE_URL)
        self._max_tokens = max_tokens
        self._limit: dict[str, Any] = {name_limit(self._address): max_tokens}
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
            model=model,
            model_setting="ANSWER_MODEL",
            tries="",  # the number varies: no retry starts if its wait would exceed the time limit
            transient_statuses=TRANSIENT_STATUSES,
        )

    @property
    def client_arguments(self) -> dict[str, Any]:
        """The arguments of OpenAI's clients except the HTTP client."""
        return {
            "api_key": self._api_key or _NO_KEY,
            "base_url": self._address,
            "default_headers": self._login,
            "max_retries": 0,  # our own retries respect the time limit
        }

    def read_events(self) -> EventReader:
        """Return a reader for the events of one answer."""
        return EventReader(self._max_tokens * _TOKEN_CHARS)

    def build_body(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        """Return the model, its token limit and the messages as arguments of a request."""
        sent = [  # JSON input can contain lone surrogates, which UTF-8 cannot encode
            {"role": entry.role, "content": entry.content.encode("utf-8", "replace").decode()}
            for entry in messages
        ]
        return {"model": self.model, "messages": sent, **self._limit}

    @contextmanager
    def translating(self, line: RequestLine) -> Generator[None, None, None]:
        """Turn the errors that a `with` block raises into errors of this package.

        That covers errors of the OpenAI client, also those that an abort by `line` causes, and
        errors from reading a response that does not have the expected form.
        """
        try:
            yield
        except (openai.APIError, *UNREADABLE) as error:
            if line.hung_up:  # an abort can show up as any error of the client
                raise self.describe_late() from None
            if not isinstance(error, openai.APIError):
                raise self._service.describe_unreadable(error) from error
            if (
                type(error) is openai.APIError
            ):  # an error event in the stream; the HTTP status was 200
                said = quote_vendor(error, self._api_key)
                message = f"failed while it wrote the answer ({said}). Try again later"
                raise self._service.fail(message) from None
            raise translate_error(error, self._service, self.timeout_s) from None

    def judge_end(self, reason: str, line: RequestLine) -> bool:
        """Return True if an answer that ended for `reason` is complete; False if it was cut off.

        Raises:
            AnswerServiceError: The stream ended without a reason.
            AnswerTimeoutError: It did so because it was aborted by `line`.
        """
        if not reason:
            broken = self._service.fail(
                f"stopped before the answer of {self.model} was complete. Try again"
            )
            raise self.describe_late() if line.hung_up else broken
        return reason not in {"length", "content_filter"}

    def describe_late(self) -> RagPipelineError:
        """Return the error for an answer that was not complete within the time limit."""
        return self._service.describe_late(self.timeout_s)


class EventReader:
    """Collects the text of a streamed answer from its events.

    If a surrogate pair (two code units that form one character) is split between two events, it is
    returned as a whole with the second. A half without its partner cannot be encoded and becomes
    U+FFFD.

    Args:
        max_chars: Most characters of an answer. A longer answer is cut off, because a server that
            ignores the limit of tokens could write without end.

    Attributes:
        reason: Reason why the answer ended; empty if the service has given none.
        is_full: True if the answer was cut off. The rest of the stream need not be read.
    """

    def __init__(self, max_chars: int) -> None:
        self.reason = ""
        self.is_full = False
        self._left = max_chars
        self._join = codecs.getincrementaldecoder("utf-16-le")("replace").decode
        self._is_empty = True

    def feed(self, event: ChatCompletionChunk) -> str:
        """Return the text of an event, which may be empty.

        Raises:
            TypeError: A piece of text or the reason is not a string.
        """
        self._is_empty = False
        choice = event.choices[0] if event.choices else None
        if choice is None:
            return ""
        content = choice.delta.content if choice.delta is not None else None
        for text in (content, choice.finish_reason):
            if text is not None and not isinstance(text, str):
                problem = "a piece of the answer is not a string"
                raise TypeError(problem)
        self.reason = choice.finish_reason or self.reason
        text = content or ""
        if len(text) > self._left:
            text, self.reason, self.is_full = text[: self._left], "length", True
        self._left -= len(text)
        return self._join(text.encode("utf-16-le", "surrogatepass"))

    def finish(self) -> str:
        """Return the rest of the text after the last event; empty unless a pair is incomplete.

        Raises:
            LookupError: The stream contained no event.
        """
        if self._is_empty:
            problem = "the stream contains no event"
            raise LookupError(problem)
        return self._join(b"", final=True)


def name_limit(address: str) -> str:
    """Return the name of the request parameter that limits the tokens of an answer.

    For an address of OpenAI the name is `max_completion_tokens`, because OpenAI's newer models
    reject `max_tokens`. For any other address it is `max_tokens`, which may be the only name that
    the server knows.
    """
    is_openai = f".{urlsplit(address).hostname}".endswith(".openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"
