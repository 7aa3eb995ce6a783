"""The connection under a request, to be hung up from any thread.

Belongs here: how a connection is found, which clients show nobody before an answer's headers have
come, and how it is ended. Does not belong here: when, which the caller says.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2


class RequestLine:
    """The connection of a client that has one request at a time, tries and redirects included.

    Attributes:
        hung_up: True once it was ended; a connection that is made later is ended at once.
    """

    def __init__(self) -> None:
        self.hung_up = False
        self._socket: socket.socket | None = None

    def attach(self, request: httpx2.Request) -> None:
        """Learn of the connection that a request will use; a hook of the client."""
        request.extensions["trace"] = self._follow

    def hang_up(self) -> None:
        """End the connection under its reader, who waits however much a service murmurs."""
        self.hung_up = True
        if self._socket is not None:
            with suppress(OSError):  # ended already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _follow(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = details["return_value"].get_extra_info("socket")
            if self.hung_up:
                self.hang_up()
