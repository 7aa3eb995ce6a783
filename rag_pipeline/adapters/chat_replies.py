"""The replies of a chat service: its answers, and the size of a model's context.

An answer is server-sent events or one JSON document. OpenAI's API has no field for the size of the
context. llama.cpp tells it at `/props`, Text Embeddings Inference at `/info`, Ollama at
`/api/show`, and vLLM, LM Studio and OpenRouter in their lists of models.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    import httpx2


_LONGEST_LINE: Final = 4_000_000  # bytes of one event, or of a whole answer as JSON
_FIELDS: Final = ("data:", "event:", "id:", "retry:", ":")
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
_HIDDEN_PARTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})


async def read_lines(response: httpx2.Response) -> AsyncGenerator[str, None]:
    r"""Yield the lines of a response without their ends, which are `\n`, `\r\n` or `\r`.

    Raises:
        ValueError: A line is longer than 4 MB.
    """
    rest = b""
    async for data in response.aiter_bytes():
        text = rest + data
        held = b"\r" if text.endswith(b"\r") else b""  # the second half of the end may follow
        text = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        rest += held
        for line in lines:
            yield line.decode("utf-8", "replace")
        if len(rest) > _LONGEST_LINE:
            problem = "a line of the response is too long"
            raise ValueError(problem)
    if rest:
        yield rest.decode("utf-8", "replace").rstrip("\r")


async def read_start(response: httpx2.Response, longest: int) -> bytes:
    """Read a response until it ends or is longer than this number of bytes."""
    data = b""
    async for part in response.aiter_bytes():
        data += part
        if len(data) > longest:
            break
    return data


class EventReader:
    """Collects the text of an answer from the lines of a reply.

    If a surrogate pair (two code units that form one character) is split between two events, it is
    returned as a whole with the second. A half without its partner cannot be encoded and becomes
    U+FFFD.

    Args:
        max_chars: Most characters of an answer, hidden reasoning included. A longer answer is cut
            off, because a server that ignores the limit of tokens could write without end.

    Attributes:
        reason: Reason why the answer ended; empty if the service has given none.
        is_ended: True if the service sent the last event, `[DONE]`.
        is_done: True if the rest of the reply need not be read.
        has_grown: True if the last line contained text or reasoning.
        failure: Text of an error that the service sent instead of an answer; empty if none.
        failure_status: The HTTP status in that error, or 0.
        used_tokens: Tokens of the prompt as the service counted them; 0 if unknown.
        text_length: Number of characters so far.
        last: The last piece of text.
    """

    def __init__(self, max_chars: int) -> None:
        self.reason = ""
        self.is_ended = self.is_done = self.has_grown = False
        self.failure = ""
        self.failure_status = self.used_tokens = self.text_length = 0
        self.last = ""
        self._left = max_chars
        self._join = codecs.getincrementaldecoder("utf-16-le")("replace").decode
        self._data = ""  # of an event whose other lines have not arrived
        self._whole: list[str] | None = None  # the lines of a reply that is one JSON document
        self._is_empty = True

    def feed(self, line: str) -> str:
        """Return the text of a line, which may be empty.

        Raises:
            ValueError: The data of an event is not JSON.
            TypeError: A piece of text or the reason is not a string.
        """
        self.has_grown = False
        line = line.removeprefix("\ufeff")
        is_first = self._whole is None and self._is_empty and bool(line.strip())
        if is_first and not line.startswith(_FIELDS):
            self._whole = []
        if self._whole is not None:
            self._whole.append(line)
            return ""
        if not line.startswith("data:"):
            if self._data and not line.strip():
                problem = "the data of an event is not JSON"
                raise ValueError(problem)
            return ""
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            self.is_ended = self.is_done = True
            return ""
        self._data += data
        try:
            event = json.loads(self._data) if self._data else None
        except ValueError:
            return ""  # more lines of the same event may follow
        self._data = ""
        return "" if event is None else self._read(event)

    def finish(self) -> str:
        """Return the rest of the text after the last line.

        Raises:
            ValueError: The reply is neither a stream nor a JSON document.
            LookupError: The reply contains no answer.
        """
        text = ""
        if self._whole is not None:
            for event in _read_documents(self._whole):
                text += self._read(event)
            self.is_ended = True
        if self._data:
            problem = "the last event is not complete"
            raise ValueError(problem)
        if self._is_empty and not self.is_ended:
            problem = "the stream contains no event"
            raise LookupError(problem)
        rest = text + self._join(b"", final=True)
        self.last = rest or self.last
        return rest

    def _read(self, event: Any) -> str:  # noqa: ANN401  # any JSON
        self._is_empty = False
        if not isinstance(event, dict):
            problem = "an event is not an object"
            raise TypeError(problem)
        if event.get("error") or event.get("object") == "error":
            self._fail(event)
            return ""
        usage = event.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int):
            self.used_tokens = usage["prompt_tokens"]
        choices = event.get("choices")
        if choices is None and usage is None and self._whole is not None:
            problem = "the reply has no choices"
            raise LookupError(problem)
        choice = next((one for one in choices or () if not one.get("index")), None)
        if choice is None:
            return ""
        # A server may repeat the whole message at the end of a stream.
        part = choice.get("delta") or (not self.text_length and choice.get("message")) or {}
        content = part.get("content")
        text = "".join(_read_content(choice.get("text") if content is None else content))
        text = text or "".join(_read_content(part.get("refusal")))
        reason = choice.get("finish_reason")
        if reason is not None and not isinstance(reason, str):
            problem = "the reason why the answer ended is not a string"
            raise TypeError(problem)
        thoughts = sum(len(str(part.get(name) or "")) for name in _THOUGHTS)
        self.has_grown = bool(text or thoughts)
        self.reason = reason or self.reason
        if self.reason == "error":
            self._fail(event)
        if len(text) + thoughts > self._left:
            text, self.reason, self.is_done = text[: self._left], "length", True
        self._left -= len(text) + thoughts
        shown = self._join(text.encode("utf-16-le", "surrogatepass"))
        self.text_length += len(shown)
        self.last = shown or self.last
        return shown

    def _fail(self, event: dict[str, Any]) -> None:
        error = event.get("error")
        code = error.get("code") if isinstance(error, dict) else event.get("code")
        self.failure_status = code if isinstance(code, int) else 0
        self.failure, self.is_done = json.dumps(event), True


def _read_documents(lines: list[str]) -> list[Any]:
    """Return the one JSON document of a reply, or the documents of a reply with one on each line.

    Raises:
        ValueError: A line is not JSON.
    """
    try:
        return [json.loads("\n".join(lines))]
    except ValueError:
        return [json.loads(line) for line in lines if line.strip()]


def _read_content(content: Any) -> Iterator[str]:  # noqa: ANN401  # any JSON
    """Yield the texts of a message's content, which is a string or a list of parts."""
    if content is None:
        return
    if isinstance(content, str):
        yield content
        return
    if not isinstance(content, list):
        problem = "a piece of the answer is not a string"
        raise TypeError(problem)
    for part in content:
        if isinstance(part, dict) and part.get("type") in _HIDDEN_PARTS:
            continue
        text = part.get("text") if isinstance(part, dict) else part
        yield from _read_content(text.get("value") if isinstance(text, dict) else text)


ASKING_S: Final = 2.0
"""Seconds that a server has to tell the size; a reader is waiting for the answer."""

_LISTED: Final = ("loaded_context_length", "max_model_len", "n_ctx", "context_length")
"""Fields of a model in a list of models, the most exact one first."""

_SET: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)
_LONGEST: Final = 4_000_000  # bytes of a reply; OpenRouter's list of models has about 1 MB


async def ask_context(
    client: httpx2.AsyncClient, base_url: str, model: str, headers: Mapping[str, str]
) -> int | None:
    """Return the tokens of a model's context, or None if the server does not tell.

    No reply and no failure of the server raises an error.

    Args:
        client: Sends the requests.
        base_url: The address of the API, such as `http://127.0.0.1:8080/v1`.
        model: The name of the model.
        headers: The headers of all requests to the API.
    """
    root = base_url.rstrip("/").removesuffix("/v1")
    asked = (
        ("GET", f"{root}/props", None),
        ("POST", f"{root}/api/show", {"model": model}),
        ("GET", f"{root}/api/v0/models", None),
        ("GET", f"{base_url.rstrip('/')}/models", None),
    )
    replies = await asyncio.gather(
        *(_read(client, method, url, headers, body) for method, url, body in asked)
    )
    return next((size for reply in replies for size in find_context(reply, model)), None)


def find_context(reply: Any, model: str) -> Iterator[int]:  # noqa: ANN401  # any JSON
    """Yield the sizes of a model's context in a server's reply, the most exact one first."""
    if not isinstance(reply, dict):
        return
    props, shown = reply.get("default_generation_settings"), reply.get("model_info")
    found = [reply.get("max_input_length")]
    found += [props.get("n_ctx")] if isinstance(props, dict) else []
    if isinstance(shown, dict):
        found += [int(size) for size in _SET.findall(str(reply.get("parameters") or ""))]
        found += [size for name, size in shown.items() if name.endswith(".context_length")]
    data = reply.get("data")
    listed = data if isinstance(data, list) else []
    for entry in listed:
        if isinstance(entry, dict) and (entry.get("id") == model or len(listed) == 1):
            inner = entry.get("meta")
            places = [entry, inner if isinstance(inner, dict) else {}]
            found += [place.get(name) for name in _LISTED for place in places]
    yield from (size for size in found if type(size) is int and size > 0)


async def _read(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: dict[str, str] | None,
) -> Any:  # noqa: ANN401  # any JSON
    """Return the JSON of a reply, or None."""
    try:
        async with (
            asyncio.timeout(ASKING_S),
            client.stream(method, url, json=body, headers=dict(headers)) as response,
        ):
            if not response.is_success:
                return None
            return json.loads(await read_start(response, _LONGEST))
    except Exception:  # noqa: BLE001  # the size is only a hint
        return None
