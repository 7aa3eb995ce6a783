"""A decoder of the event streams of the service, as a client has it."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_END: Final = re.compile("\r\n|\r|\n")


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
