"""A real uvicorn that serves an application on a free port of 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI


class _Server(uvicorn.Server):
    """A server that tells when it accepts connections, or when it has failed to start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.ready.set()


@contextmanager
def run_app(app: FastAPI) -> Iterator[str]:
    """Serve an application, yield its address without a final slash, and stop the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert server.ready.wait(30)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
