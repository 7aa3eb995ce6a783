"""A relay on 127.0.0.1 between a client and a server, whose connections a test can cut or hold."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from typing import Self


class Relay:
    """A port that forwards each connection to the server at a URL.

    Attributes:
        url: The URL with the address of the relay in place of the server's.

    Args:
        url: URL of the server, with a port.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        user, at, _ = parts.netloc.rpartition("@")
        here = f"{user}{at}127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = urlunsplit(parts._replace(netloc=here))
        self._cut, self._flowing, self._lock = Event(), Event(), Lock()
        self._flowing.set()
        self._open: set[socket.socket] = set()
        self._thread = Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        """Begin to forward connections."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Cut all connections and end the relay."""
        self.cut()
        self._flowing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def cut(self) -> None:
        """End all connections, and end new ones at once until `restore` is called."""
        with self._lock:
            self._cut.set()
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def hold(self) -> None:
        """Keep all connections open but forward nothing, also from new ones, until `restore`.

        A network that loses all packets looks like this to both ends.
        """
        self._flowing.clear()

    def restore(self) -> None:
        """Forward new connections again, and what was held back."""
        self._cut.clear()
        self._flowing.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._cut.is_set():
                    near.close()
                    continue
                try:
                    far = socket.create_connection(self._target, timeout=10)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                self._open |= {near, far}
            for source, target in ((near, far), (far, near)):
                Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
