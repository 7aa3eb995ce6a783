"""A scripted HTTP server on 127.0.0.1 that stands in for a service and can fail in many ways.

Real clients connect to it over real sockets. The server follows a plan: a list of replies, of which
the last one is repeated, or a function that returns the reply to a request.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Received:
    """A request that the server received. The header names are lower case.

    `size_bytes` is the length of its body as sent.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    client_port: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's reply to one request.

    Attributes:
        status: HTTP status code.
        body: Body of the reply. Bytes are sent unchanged, any other value is sent as JSON.
        headers: Additional headers. With `Connection: close`, no Content-Length is sent.
        fault: How the reply fails; None sends the whole reply.

            - `hang` never answers, and `reset` resets the connection.
            - `stall`, `murmur` and `cut` send the body with a Content-Length that is too large.
              Then `stall` sends nothing, `murmur` sends comments of server-sent events, and `cut`
              resets the connection.
            - `drip` sends an endless header byte by byte, `flood` sends 200 MB of headers, `hints`
              sends Early Hints responses without end, and `chunk` sends an endless chunk length.
        in_two_packets: Send the head and the body in two small packets. The second one waits until
            the client has acknowledged the first, which takes it 40 ms (Nagle's algorithm).
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    fault: (
        Literal["hang", "reset", "stall", "murmur", "drip", "flood", "hints", "chunk", "cut"] | None
    ) = None
    in_two_packets: bool = False


_HEAD = b"HTTP/1.1 200 OK\r\nX-Slow: "
_HEADS = {
    "drip": _HEAD,
    "flood": _HEAD + b"x",
    "hints": b"",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
}
_MURMURS = {
    "stall": b"",
    "murmur": b":\n\n",
    "drip": b"x",
    "flood": b"\r\nX-Long: " + b"x" * 1_000_000,
    "hints": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "chunk": b"x",
}
_FLOODS = 200  # number of 1 MB headers that the fault `flood` sends

HANG = Reply(fault="hang")
ENDLESS = [Reply(fault=fault) for fault in ("hang", "murmur", "drip", "hints", "chunk")]
"""Replies that never end, each in another part of the reply."""
ABOUT_CONTEXT = ("/props", "/v1/models", "/api/show", "/api/v0/models")
"""Paths at which servers tell the context of a model. Requests to them are not in the plan."""
FLOOD = Reply(fault="flood")
RESET = Reply(fault="reset")
NESTED = Reply(body=b"[" * 100_000, headers={"Content-Type": "application/json"})
MALFORMED = Reply(body=b'{"result": [1, 2', headers={"Content-Type": "application/json"})


class LoopbackServer:
    """A running server that follows a plan and records the requests.

    Attributes:
        received: All requests so far, in order, except those of `asked`.
        asked: The paths of `ABOUT_CONTEXT` that were asked for, in order.
        most_in_flight: Highest number of requests that were handled at the same time.
        flooded_bytes: Bytes of headers that `flood` has sent.
        sent_bytes: Bytes of all bodies that were sent.
        hung_up: Set when a client closes the connection before the reply has ended.
    """

    def __init__(
        self,
        plan: Sequence[Reply] | Callable[[Received], Reply],
        told: Mapping[str, Reply] | None = None,
    ) -> None:
        self._told = told or {}
        self.received: list[Received] = []
        self.asked: list[str] = []
        self.most_in_flight = 0
        self.flooded_bytes = 0
        self.sent_bytes = 0
        self.hung_up = Event()
        self._plan = plan
        self._in_flight = 0
        self._lock = Lock()
        self._closing = Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._http.daemon_threads = True
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        """End the requests that hang, and free the port."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _reply_to(self, request: Received) -> Reply:
        with self._lock:
            self.received.append(request)
            number = len(self.received)
        if callable(self._plan):
            return self._plan(request)
        return self._plan[min(number, len(self._plan)) - 1]

    def _count(self, change: int) -> None:
        with self._lock:
            self._in_flight += change
            self.most_in_flight = max(self.most_in_flight, self._in_flight)

    def _count_sent(self, size_bytes: int) -> None:
        with self._lock:
            self.sent_bytes += size_bytes

    def _flood(self, connection: socket.socket, headers: bytes) -> None:
        with suppress(OSError):  # the client closed the connection
            for _ in range(_FLOODS):
                connection.sendall(headers)
                self.flooded_bytes += len(headers)

    def _wait_for_hang_up(self, connection: socket.socket, murmur: bytes) -> None:
        while not self._closing.is_set():
            connection.send(murmur)
            if select.select([connection], [], [], 0.02)[0]:
                self.hung_up.set()
                return

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901  # the handler class needs its server
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 2**20  # the head and the body of a reply are sent together

            def _answer(self) -> None:
                server._count(1)
                try:
                    self._answer_one()
                except OSError:  # the client reset the connection
                    server.hung_up.set()
                    self.close_connection = True
                finally:
                    server._count(-1)

            def _answer_one(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = json.loads(raw) if raw else None
                port = self.client_address[1]
                request = Received(self.command, self.path, headers, body, port, len(raw))
                if self.path in ABOUT_CONTEXT:
                    server.asked.append(self.path)
                    reply = server._told.get(self.path, Reply(404))
                else:
                    reply = server._reply_to(request)
                if reply.fault == "hang":
                    server._closing.wait()
                if reply.fault in _HEADS:
                    self.wfile.write(_HEADS[reply.fault])
                    self.wfile.flush()
                    end = server._flood if reply.fault == "flood" else server._wait_for_hang_up
                    end(self.connection, _MURMURS[reply.fault])
                if reply.fault in {"hang", "reset", *_HEADS}:
                    self._break_off()
                    return
                data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body)
                data = data if isinstance(data, bytes) else data.encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                unfinished = reply.fault is not None
                if reply.headers.get("Connection") != "close":
                    self.send_header("Content-Length", str(len(data) + 1_000 * unfinished))
                self.end_headers()
                if reply.in_two_packets:
                    self.wfile.flush()
                self.wfile.write(data)
                self.wfile.flush()
                server._count_sent(len(data))
                if reply.fault in {"stall", "murmur"}:
                    server._wait_for_hang_up(self.connection, _MURMURS[reply.fault])
                if unfinished:
                    self._break_off()

            def _break_off(self) -> None:
                # Without linger, the client sees a reset instead of an orderly end.
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True

            def handle(self) -> None:
                with suppress(ConnectionError):  # the client reset a connection that was kept open
                    super().handle()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

            def finish(self) -> None:
                # A broken connection has nothing left to flush.
                if self.connection.fileno() != -1:
                    super().finish()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  # names of http.server

        return Handler


@contextmanager
def serve(
    plan: Sequence[Reply] | Callable[[Received], Reply], told: Mapping[str, Reply] | None = None
) -> Iterator[LoopbackServer]:
    """Run a server that follows the plan during a `with` block.

    Args:
        plan: The replies.
        told: The replies at the paths of `ABOUT_CONTEXT`. By default they do not exist.
    """
    server = LoopbackServer(plan, told)
    try:
        yield server
    finally:
        server.close()


def find_closed_port() -> int:
    """Return a port of 127.0.0.1 on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
