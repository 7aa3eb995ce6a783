"""Time limits and aborts for requests of the HTTP clients `httpx` and `httpx2`.

The trace events that the clients emit tell which connection a request uses.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")  # ends of the trace events' names


def limit_answers(http: ModuleType, seconds: float) -> dict[str, list[Callable[[Any], None]]]:
    """Return event hooks that give an HTTP client a time limit for each whole request.

    A client's own read timeout starts again with every byte that arrives. It never stops a
    response whose headers, chunk lengths or trailers arrive byte by byte.

    Args:
        http: Module of the client, `httpx` or `httpx2`.
        seconds: Time limit from the start of a request to the last byte of its response. After
            that, a read raises the module's own ReadTimeout.

    Returns:
        Value for the client's `event_hooks` argument.
    """
    current = threading.local()  # a request is sent and its response read in one thread

    def begin(request: Any) -> None:  # noqa: ANN401  # a request class of `http`
        current.deadline = time.monotonic() + seconds
        request.extensions["trace"] = follow

    def follow(event: str, details: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            # The wrapper stays on the connection and also limits later requests. A custom transport
            # could do the same, but with one the clients ignore the proxies of the environment.
            stream = details["return_value"]
            stream.read = partial(read, stream.read)

    def read(
        read_more: Callable[..., bytes], max_bytes: int, timeout: float | None = None
    ) -> bytes:
        left_s = current.deadline - time.monotonic()
        if left_s <= 0:
            message = f"the response took longer than {seconds:g} s"
            raise http.ReadTimeout(message)
        return read_more(max_bytes, left_s if timeout is None else min(timeout, left_s))

    return {"request": [begin]}


class RequestLine:
    """A handle with which the current request of an asynchronous HTTP client can be aborted.

    The client must send only one request at a time. Retries and redirects are aborted too. Use the
    handle only in the event loop of the client.

    Attributes:
        hung_up: True after `ahang_up` was called.
    """

    def __init__(self) -> None:
        self.hung_up = False
        self._stream: Any = None

    async def aattach(self, request: Any) -> None:  # noqa: ANN401  # a request class of `httpx2`
        """Follow the connection that a request will use, so that `ahang_up` can end it.

        Pass this method to the client as an event hook for requests.
        """
        request.extensions["trace"] = self._afollow

    async def ahang_up(self) -> None:
        """End the client's current connection and, as soon as it is made, each later one.

        It closes the stream instead of the socket: uvloop does not give access to its sockets.
        """
        self.hung_up = True
        if self._stream is not None:
            await self._stream.aclose()

    async def _afollow(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            self._stream = details["return_value"]
            if self.hung_up:
                await self.ahang_up()
