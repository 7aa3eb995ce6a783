"""The events of a streamed answer, and their encoding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import TypeAdapter
from typing_extensions import TypedDict  # pydantic cannot document typing.TypedDict in Python 3.11

from rag_pipeline.serving.api.responses import DoneBody, RefusalBody, SourceBody
from rag_pipeline.serving.api.schemas import make_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL: Final = 1
MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b": waiting\n\n"


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
