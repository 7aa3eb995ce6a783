"""The encoding of server-sent events, and a decoder for clients and tests."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP_ALIVE = b": waiting\n\n"


def encode_event(name: str, data: dict[str, Any]) -> bytes:
    """Return one event. The data is ASCII JSON in one line, so that any text survives."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")


class EventDecoder:
    """A decoder of an event stream that arrives in pieces of any size."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the data of each event that is complete."""
        *blocks, self._rest = (self._rest + self._decode(data)).split("\n\n")
        for block in blocks:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] != ":")
            if "data" in fields:
                yield fields.get("event", "message"), json.loads(fields["data"])
