"""HTTP connections that can be given up: after a time limit on the whole answer, or from another
thread. Both follow the trace events of `httpx` and `httpx2`.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")  # ends of the trace events' names


def limit_answers(http: ModuleType, seconds: float) -> dict[str, list[Callable[[Any], None]]]:
    """Return event hooks that end an answer that is not whole in time, however it comes in.

    A client's own time limit begins anew with every byte. It never ends a head, early hints, a
    chunk's length or trailers that come byte by byte.

    Args:
        http: `httpx`, or `httpx2` for a client of that module.
        seconds: For one request, from its start to the last byte of its answer. After that a read
            raises the module's own ReadTimeout.
    """
    current = threading.local()  # a client sends a request and reads its answer in one thread

    def begin(request: Any) -> None:  # noqa: ANN401  # a request of that module
        current.deadline = time.monotonic() + seconds
        request.extensions["trace"] = follow

    def follow(event: str, details: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            # Kept with the connection, for later requests too. A transport of our own could do the
            # same, but clients ignore the environment's proxies if they are given one.
            stream = details["return_value"]
            stream.read = partial(read, stream.read)

    def read(
        read_more: Callable[..., bytes], max_bytes: int, timeout: float | None = None
    ) -> bytes:
        left_s = current.deadline - time.monotonic()
        if left_s <= 0:
            message = f"the answer took longer than {seconds:g} s"
            raise http.ReadTimeout(message)
        return read_more(max_bytes, left_s if timeout is None else min(timeout, left_s))

    return {"request": [begin]}


class RequestLine:
    """The connection of a client that has one request at a time, tries and redirects included.

    Attributes:
        hung_up: True after `hang_up`; a connection that is made later is ended at once.
    """

    def __init__(self) -> None:
        self.hung_up = False
        self._socket: socket.socket | None = None

    def attach(self, request: Any) -> None:  # noqa: ANN401  # a request of either module
        """Follow the connection that a request will use; an event hook of the client."""
        request.extensions["trace"] = self._follow

    def hang_up(self) -> None:
        """End the connection, from any thread; a read that waits on it ends too."""
        self.hung_up = True
        if self._socket is not None:
            with suppress(OSError):  # ended already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _follow(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            self._socket = details["return_value"].get_extra_info("socket")
            if self.hung_up:
                self.hang_up()
