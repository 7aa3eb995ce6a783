"""The limits of a connection: the size of headers, the time of a request, and idle connections."""

from __future__ import annotations

import json
import resource
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rag_pipeline.serving import limits
from rag_pipeline.serving.replies import describe_problem

if TYPE_CHECKING:
    import asyncio


class BoundedProtocol(HttpToolsProtocol):
    """An HTTP connection that a client cannot fill, stall or hold without using it.

    The class extends uvicorn's own, and uvicorn makes an object for each connection.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401  # those of uvicorn
        super().__init__(*arguments, **named)
        self._in_head = True
        self._head_bytes = 0  # received, before the headers are complete
        self._header_bytes = 0  # of the headers that were parsed
        self._is_refused = False
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    @property
    def is_busy(self) -> bool:
        """True while a complete request is being answered."""
        return self._in_head and self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Accept a connection, and close an idle one if there are too many."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._expect(limits.FIRST_BYTE_S)
        if len(self.connections) > find_most_connections():
            idle = [
                one for one in cast("set[BoundedProtocol]", self.connections) if not one.is_busy
            ]
            oldest = min(idle, key=lambda one: one._idle_since, default=self)  # noqa: SLF001  # the same class
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._expect(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a piece of a request, unless the headers are too large."""
        if self._is_refused:
            return
        if self._in_head:
            if self._head_bytes == 0:
                self._expect(limits.HEAD_S)
            self._head_bytes += len(data)
        super().data_received(data)
        is_too_large = self._head_bytes > limits.MAX_HEAD_BYTES or self._is_head_too_large()
        if self._in_head and is_too_large and not self._is_refused:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Receive a piece of the address."""
        self._header_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header. Those beyond the limits are not kept."""
        self._header_bytes += len(name) + len(value)
        if not self._is_head_too_large():
            super().on_header(name, value)
            if self._is_head_too_large():
                self._header_bytes = limits.MAX_HEAD_BYTES + 1

    def on_headers_complete(self) -> None:
        """Begin to answer, or refuse the request."""
        self._in_head, self._head_bytes = False, 0
        if self._is_head_too_large():
            self._refuse_head()
            return
        super().on_headers_complete()
        self._expect(limits.BODY_S)

    def on_body(self, body: bytes) -> None:
        """Receive a piece of the body."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request. The next one may follow."""
        if self._is_refused:
            return
        super().on_message_complete()
        self._in_head = True
        self._expect(None)

    def on_response_complete(self) -> None:
        """End a response."""
        super().on_response_complete()
        self._idle_since = self.loop.time()

    def pause_writing(self) -> None:
        """Wait for a client that does not read its response, for a limited time."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(limits.WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on to write."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _is_head_too_large(self) -> bool:
        too_many = len(self.headers or ()) > limits.MAX_HEADERS
        return too_many or self._header_bytes > limits.MAX_HEAD_BYTES

    def _refuse_head(self) -> None:
        detail = (
            f"A request may have {limits.MAX_HEADERS} headers with "
            f"{limits.MAX_HEAD_BYTES // 1024} kB in all."
        )
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)

    def _refuse(self, status: HTTPStatus, code: str, detail: str) -> None:
        """Send an error and close the connection."""
        self._is_refused = True
        self._expect(None)
        body = json.dumps(describe_problem(status, code, detail)).encode()
        head = (
            f"HTTP/1.1 {int(status)} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _expect(self, seconds: float | None) -> None:
        """Close the connection if the next step takes longer; None stops the clock."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        if self.is_busy:  # a piece of the next request came before the response was complete
            self._expect(limits.HEAD_S)
        elif self._in_head and self._head_bytes:
            detail = "The headers of the request did not arrive in time."
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail)
        else:
            self.transport.abort()


def find_most_connections() -> int:
    """Return how many connections may be open, so that files of the process remain."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits.MAX_CONNECTIONS
    return max(8, min(limits.MAX_CONNECTIONS, files // 2))
