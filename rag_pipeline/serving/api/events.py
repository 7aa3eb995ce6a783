"""The events of a streamed answer, their encoding, and a decoder for clients and tests."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import TypeAdapter
from typing_extensions import TypedDict  # pydantic cannot document typing.TypedDict in Python 3.11

from rag_pipeline.serving.api.responses import DoneBody, RefusalBody, SourceBody
from rag_pipeline.serving.api.schemas import make_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROTOCOL: Final = 1
MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b": waiting\n\n"
_LINE_END: Final = re.compile("\r\n|\r|\n")


class Start(TypedDict):
    """The first event. `search_question` is what was searched instead of the question."""

    protocol: Literal[1]
    answer_id: str
    conversation_id: str
    mode: Literal["normal", "selected_text_only"]
    search_question: str | None
    index_id: str
    model: str | None


class Sources(TypedDict):
    """The sources that the answer may cite."""

    confidence: float | None
    sources: list[SourceBody]


class Delta(TypedDict):
    """The next piece of the answer's text."""

    text: str


class Failure(TypedDict):
    """The last event if the answer failed. The text so far is not an answer."""

    code: str
    message: str
    transient: bool
    retry_after_s: float | None


EVENTS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "start": TypeAdapter(Start),
    "sources": TypeAdapter(Sources),
    "delta": TypeAdapter(Delta),
    "refusal": TypeAdapter(RefusalBody),
    "done": TypeAdapter(DoneBody),
    "error": TypeAdapter(Failure),
}
"""The type of each event's data. A stream ends with exactly one `done` or `error`."""


def encode_event(name: str, data: Mapping[str, Any]) -> bytes:
    """Return one event. The data is ASCII JSON in one line, so that any text survives."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")


def describe_events() -> dict[str, Any]:
    """Return the content of an event stream for the OpenAPI document."""
    described = [
        {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "event": {"const": name},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": make_schema(adapter),
                },
            },
        }
        for name, adapter in EVENTS.items()
    ]
    return {"schema": {"type": "string"}, "itemSchema": {"oneOf": described}}


class EventDecoder:
    """A decoder of an event stream that arrives in pieces of any size.

    It follows the HTML standard: lines end with LF, CR or CR LF, and the `data` lines of an event
    are joined by line feeds. An event that is not complete when the stream ends is dropped.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest = ""
        self._ended_with_cr = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the data of each event that is complete."""
        text = self._decode(data)
        if not text:
            return
        if self._ended_with_cr:
            text = text.removeprefix("\n")  # the second half of CR LF
        self._ended_with_cr = text.endswith("\r")
        *lines, self._rest = _LINE_END.split(self._rest + text)
        for line in lines:
            if line:
                self._take(line)
                continue
            name, data_lines = self._name or "message", self._data
            self._name, self._data = "", []
            if data_lines:
                yield name, json.loads("\n".join(data_lines))

    def _take(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
