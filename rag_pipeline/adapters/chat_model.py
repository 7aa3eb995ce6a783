"""Chat model that streams answers from OpenAI, or from a server with the same API.

Servers with this API differ in the parameters that they accept and in the form of their replies.
A parameter that a server rejects by name is left out or replaced, and the process remembers it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

import httpx2

from rag_pipeline.adapters.chat_replies import EventReader, ask_context, read_lines, read_start
from rag_pipeline.adapters.http import (
    UNREADABLE,
    Service,
    acall_with_retries,
    name_host,
    quote_vendor,
    reading_environment,
    separate_login,
    share_certificates,
)
from rag_pipeline.core.errors import (
    AnswerContextError,
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
)
from rag_pipeline.core.text.sentences import SENTENCE_MARKS
from rag_pipeline.core.text.terms import count_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.protocols import ChatMessage


DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

TRANSIENT_STATUSES: Final = frozenset({408, 409, 429})
"""HTTP statuses below 500 after which OpenAI's own client retries a request."""


DEFAULT_MODEL: Final = "gpt-4o-mini"
"""Model that is used if ANSWER_MODEL is empty: small, cheap, and it follows citation rules."""

LONGEST_WAIT_S: Final = 2.0
"""Seconds between two attempts; a reader is waiting for the answer."""

_TOKEN_CHARS: Final = 50  # far more than a token of text has, which is about 4 characters
_MARGIN: Final = 1.25  # tokens of an unknown tokenizer for each token of cl100k_base
_FEWEST_TOKENS: Final = 256  # a prompt with less room cannot hold a source
_MOST_CHANGES: Final = 8  # rejected parameters of one request
_LONGEST_BODY: Final = 1_000_000  # bytes of an error or of a whole answer
_FIRST_ERROR: Final = 400  # the lowest HTTP status of an error
_CHAT: Final = "/chat/completions"

_OVERFLOW: Final = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum context|too many (?:input )?tokens"
    r"|(?:prompt|input|request)[^.]{0,40} too (?:long|large)|reduce the length|exceed_context"
    r"|exceeds? the (?:available )?(?:context|model)|token limit|max_model_len",
    re.IGNORECASE,
)
_LIMITS: Final = (
    re.compile(r'"n_ctx"\s*:\s*(\d+)'),
    re.compile(r"(?:context|max_model_len)[^.\d]{0,60}?(\d[\d,]{2,})(?:\s*tokens)?", re.IGNORECASE),
)
_SYSTEM: Final = re.compile(
    r"\broles?\b|\b(?:system|developer)\b[^.]*\b(?:messages?|prompts?|instructions?)\b",
    re.IGNORECASE,
)
_UNSUPPORTED: Final = re.compile(
    r"support|unrecogni[sz]ed|unknown|unexpected|permitted|allowed|invalid", re.IGNORECASE
)
_STREAM: Final = re.compile(r"\bstream(?:ing|ed)?\b(?!_)", re.IGNORECASE)
_FORM_STATUSES: Final = frozenset({400, 405, 413, 415, 422, 500, 501})
"""HTTP statuses with which servers reject the form of a request."""

_LIMIT_NAMES: Final = ("max_tokens", "max_completion_tokens")


@dataclass(slots=True)
class _Habits:
    """Facts about one model on one server, from the replies to earlier requests of this process.

    Attributes:
        dropped: Names of the request parameters that the server rejects. Requests omit them.
        merges: True if the server rejects system messages. Requests then put the instructions into
            the user's message.
        context_tokens: Number of tokens in the model's context, as the server stated it. None if
            the server has not stated it.
        ratio: Number of the model's tokens per token of cl100k_base, the tokenizer that counts.
        is_asked: True if the server was asked for the size of the model's context.
    """

    dropped: set[str] = field(default_factory=set)
    merges: bool = False
    context_tokens: int | None = None
    ratio: float = _MARGIN
    is_asked: bool = False


HABITS: Final[dict[tuple[str, str], _Habits]] = {}
"""What this process has learned, by address and model."""


class OpenAIChatModel:
    """A chat model that streams answers from an OpenAI-compatible chat completions endpoint.

    Args:
        model: Name of the model. If empty, gpt-4o-mini is used.
        api_key: API key, sent only to this service. Empty for a server that needs no key.
        base_url: Base URL of the API. If empty, OpenAI's own URL is used. It may end with
            `/chat/completions` and may have a query, as Azure's addresses do.
        timeout_s: Longest time in seconds to wait for the first token, including retries. The same
            limit applies to the wait for each later token.
        max_tokens: Largest number of tokens in one answer.
        context_tokens: Size of the model's context, for the prompt and the answer.
        temperature: Sampling temperature; None leaves it to the server.
        extra: Further fields of the request's body. A field that is None is left out.
        headers: Further headers of the request.
        sleep: Function that waits the given number of seconds between two attempts.
    """

    def __init__(  # noqa: PLR0913  # one argument for each setting
        self,
        *,
        model: str,
        api_key: str,
        base_url: str,
        timeout_s: float,
        max_tokens: int,
        context_tokens: int = 8_192,
        temperature: float | None = 0.0,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = model or DEFAULT_MODEL
        self.timeout_s = timeout_s
        self.max_tokens = max_tokens
        self.sleep = sleep
        self._context_tokens = context_tokens
        self._api_key = api_key
        address, login = separate_login(base_url or DEFAULT_BASE_URL)
        parts = urlsplit(address)
        path = parts.path.rstrip("/").removesuffix(_CHAT)
        self.url = urlunsplit(parts._replace(path=path + _CHAT))
        self.headers = {**_authorize(parts.hostname or "", api_key), **login, **(headers or {})}
        self._fixed = {
            name_limit(address): max_tokens,
            "temperature": temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        self._extra = dict(extra or {})
        self.habits = HABITS.setdefault((self.url, self.name), _Habits())
        if name_host(address) == "api.openai.com":
            self.habits.ratio = min(self.habits.ratio, 1.0)  # cl100k_base is OpenAI's own
        # OpenAI's own models have larger contexts than any prompt, and its API does not tell them.
        self._tells_context = name_limit(address) == _LIMIT_NAMES[0]
        self._service = Service(
            "the answer service",
            "a chat service",
            name_host(address),
            api_key,
            refused_error=AnswerError,
            failed_error=AnswerServiceError,
            late_error=AnswerTimeoutError,
            key_setting="OPENAI_API_KEY",
            url_setting="OPENAI_BASE_URL",
            hint="Check ANSWER_MODEL and ANSWER_EXTRA",
            late_hint="Try again, choose a faster model or raise ANSWER_TIMEOUT_S",
            model=self.name,
            model_setting="ANSWER_MODEL",
            tries="",  # the number varies: no retry starts if its wait would exceed the time limit
            transient_statuses=TRANSIENT_STATUSES,
        )
        self._certificates = share_certificates()

    @property
    def context_tokens(self) -> int:
        """Size of the context: the setting, or less if the server named a smaller one."""
        return min(self._context_tokens, self.habits.context_tokens or self._context_tokens)

    @property
    def prompt_tokens(self) -> int:
        """Most tokens of the messages, so that they and the answer fit in the model's context."""
        return max(_FEWEST_TOKENS, self.context_tokens - self.max_tokens)

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text in cl100k_base, with a margin for another tokenizer."""
        return math.ceil(count_tokens(text) * self.habits.ratio)

    async def prepare(self) -> None:
        """Ask the server for the size of the context, once in this process."""
        if self.habits.is_asked or not self._tells_context:
            return
        self.habits.is_asked = True
        base_url = urlunsplit(urlsplit(self.url)._replace(query="")).removesuffix(_CHAT)
        async with self.connect() as client:
            size = await ask_context(client, base_url, self.name, self.headers)
        if size is not None and size >= _FEWEST_TOKENS:
            self.habits.context_tokens = self.habits.context_tokens or size

    def stream(
        self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()
    ) -> OpenAIChatStream:
        """Return a stream of the answer. The request is sent when the first piece is read."""
        return OpenAIChatStream(self, messages, stop)

    def connect(self) -> httpx2.AsyncClient:
        """Return a client for one answer, so that an abort ends no connection of another answer."""
        with reading_environment():
            return httpx2.AsyncClient(
                verify=self._certificates,
                timeout=httpx2.Timeout(None, connect=self.timeout_s),
                follow_redirects=True,
            )

    def build_body(self, messages: Sequence[ChatMessage], stop: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request, with what is known about the server."""
        sent = [  # JSON input can contain lone surrogates, which UTF-8 cannot encode
            {"role": entry.role, "content": entry.content.encode("utf-8", "replace").decode()}
            for entry in messages
        ]
        if self.habits.merges:
            sent = [{"role": "user", "content": "\n\n".join(entry["content"] for entry in sent)}]
        wanted = {**self._fixed, "stop": list(stop) or None, **self._extra}
        for name, other in (_LIMIT_NAMES, _LIMIT_NAMES[::-1]):
            if name in self.habits.dropped and name in wanted:
                wanted.setdefault(other, wanted[name])
        kept = {
            name: value
            for name, value in wanted.items()
            if value is not None and name not in self.habits.dropped
        }
        if not kept.get("stream"):
            kept.pop("stream_options", None)
        return {"model": self.name, "messages": sent, **kept}

    def learn(self, body: Mapping[str, Any], text: str) -> bool:
        """Read the rejection of a request; return True if another form of it may be accepted.

        Args:
            body: The body of the rejected request.
            text: The text of the response.

        Raises:
            AnswerContextError: The messages are longer than the context of the model.
        """
        named = [
            name
            for name in body
            if name not in {"model", "messages", "stream"} and re.search(rf"\b{name}\b", text)
        ]
        if _OVERFLOW.search(text) and not (named and _UNSUPPORTED.search(text)):
            raise self.describe_overflow(text)
        if named:
            self.habits.dropped.update(named)
            return True
        has_roles = any(entry["role"] == "system" for entry in body["messages"])
        if has_roles and _SYSTEM.search(text):
            self.habits.merges = True
            return True
        if body.get("stream") and _STREAM.search(text):
            self.habits.dropped.add("stream")
            return True
        return False

    def learn_usage(self, body: Mapping[str, Any], used: int) -> None:
        """Compare the tokens of a prompt that the server counted with the own count."""
        counted = sum(count_tokens(entry["content"]) for entry in body["messages"])
        if counted:
            self.habits.ratio = max(1.0, min(4.0, 1.02 * used / counted))

    def describe_overflow(self, text: str) -> RagPipelineError:
        """Return the error for a prompt that is too long, and remember the size of the context."""
        found = [int(match[1].replace(",", "")) for one in _LIMITS if (match := one.search(text))]
        if found and found[0] >= _FEWEST_TOKENS:
            self.habits.context_tokens = found[0]
        said = quote_vendor(text, self._api_key)
        return AnswerContextError(
            f"the prompt is longer than the context of {self.name} ({said}). Lower "
            "ANSWER_CONTEXT_TOKENS or ANSWER_MAX_TOKENS"
        )

    def describe_status(self, status: int, text: str, retry_after: str | None) -> RagPipelineError:
        """Return the error for an HTTP status, or for an error in a reply with status 200."""
        said, has_quota = _read_message(text)
        return self._service.translate_status(status, said, retry_after, has_quota=has_quota)

    def describe_late(self) -> RagPipelineError:
        """Return the error for an answer of which no token arrived within the time limit."""
        return self._service.describe_late(self.timeout_s)

    def describe_failure(self, error: Exception) -> RagPipelineError:
        """Return the error for an exception of the HTTP client, or of reading a response."""
        if isinstance(error, httpx2.TimeoutException):
            return self.describe_late()
        if isinstance(error, httpx2.HTTPError):
            return self._service.describe_unreachable(error)
        return self._service.describe_unreadable(error)

    def describe_broken(self, reader: EventReader) -> RagPipelineError:
        """Return the error for an error in a reply whose HTTP status was 200."""
        is_whole = reader.text_length == 0
        if is_whole and _OVERFLOW.search(reader.failure):
            return self.describe_overflow(reader.failure)
        if is_whole and reader.failure_status >= _FIRST_ERROR:
            return self.describe_status(reader.failure_status, reader.failure, None)
        said = quote_vendor(_read_message(reader.failure)[0], self._api_key)
        return self._service.fail(f"failed while it wrote the answer ({said}). Try again later")


class OpenAIChatStream:
    """The pieces of one answer. See `core.protocols.ChatStream`.

    Args:
        model: Builds the request and its errors.
        messages: The messages to the model.
        stop: Texts at which the model ends its answer.
    """

    def __init__(
        self, model: OpenAIChatModel, messages: Sequence[ChatMessage], stop: Sequence[str]
    ) -> None:
        self.complete = True
        self._model = model
        self._pieces = self._write(messages, stop)
        self._deadline: asyncio.Timeout | None = None  # while a task waits for a piece
        self._is_closed = False

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> str:
        """Return the next piece of text."""
        if self._is_closed:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(self._model.timeout_s) as self._deadline:
                return await anext(self._pieces)
        except Exception as error:
            if self._is_closed:
                raise StopAsyncIteration from None
            if isinstance(error, TimeoutError):
                raise self._model.describe_late() from None
            raise
        finally:
            self._deadline = None
            if self._is_closed:
                await self._pieces.aclose()

    async def aclose(self) -> None:
        """Abort the request. For a task that waits for a piece, the stream then ends."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._deadline is None:
            await self._pieces.aclose()
        elif not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())

    async def _write(
        self, messages: Sequence[ChatMessage], stop: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        model, reader = self._model, EventReader(self._model.max_tokens * _TOKEN_CHARS)
        async with model.connect() as client:
            response, body = await acall_with_retries(
                partial(self._open, client, messages, stop),
                longest_wait_s=LONGEST_WAIT_S,
                longest_s=model.timeout_s,
                sleep=model.sleep,
            )
            try:
                async for line in read_lines(response):
                    piece = reader.feed(line)
                    if reader.has_grown and self._deadline is not None and not self._is_closed:
                        loop = asyncio.get_running_loop()
                        self._deadline.reschedule(loop.time() + model.timeout_s)
                    if piece:
                        yield piece
                    if reader.is_done:
                        break
                rest = reader.finish()
                if rest:
                    yield rest
            except (httpx2.HTTPError, *UNREADABLE) as error:
                raise model.describe_failure(error) from error
            finally:
                await response.aclose()
        if reader.failure:
            raise model.describe_broken(reader)
        if reader.used_tokens:
            model.learn_usage(body, reader.used_tokens)
        self.complete = _judge_end(reader)

    async def _open(
        self, client: httpx2.AsyncClient, messages: Sequence[ChatMessage], stop: Sequence[str]
    ) -> tuple[httpx2.Response, dict[str, Any]]:
        """Send the request, in other forms if the server rejects a parameter by name."""
        model = self._model
        for _ in range(_MOST_CHANGES):
            body = model.build_body(messages, stop)
            try:
                request = client.build_request("POST", model.url, json=body, headers=model.headers)
                response = await client.send(request, stream=True)
                if response.is_success:
                    return response, body
                async with aclosing(response):
                    text = (await read_start(response, _LONGEST_BODY)).decode("utf-8", "replace")
            except (httpx2.HTTPError, httpx2.InvalidURL, *UNREADABLE) as error:
                raise model.describe_failure(error) from None
            if response.status_code not in _FORM_STATUSES or not model.learn(body, text):
                break
        waits = response.headers.get("retry-after")
        raise model.describe_status(response.status_code, text, waits)


def name_limit(address: str) -> str:
    """Return the name of the request parameter that limits the tokens of an answer.

    For an address of OpenAI the name is `max_completion_tokens`, because OpenAI's newer models
    reject `max_tokens`. For any other address it is `max_tokens`, which may be the only name that
    the server knows.
    """
    is_openai = f".{urlsplit(address).hostname}".endswith(".openai.com")
    return _LIMIT_NAMES[is_openai]


def _authorize(host: str, api_key: str) -> dict[str, str]:
    """Return the header with the key. Azure's older addresses accept only `api-key`."""
    if not api_key:
        return {}
    if host.endswith(".azure.com"):
        return {"api-key": api_key}
    return {"Authorization": f"Bearer {api_key}"}


def _read_message(text: str) -> tuple[str, bool]:
    """Return the message in the text of an error, and False if it says that a quota is used up."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text, True
    error = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(error, dict):
        said = error.get("message") or error.get("detail") or text
        return str(said), error.get("code") != "insufficient_quota"
    return str(error), True


def _judge_end(reader: EventReader) -> bool:
    """Return True if an answer is complete.

    Without a reason for its end, a text that ends like a sentence is complete.
    """
    if reader.reason or reader.is_ended:
        return reader.reason not in {"length", "max_tokens", "model_length", "content_filter"}
    return reader.last.rstrip("\"')]*_` \n")[-1:] in {*SENTENCE_MARKS}
