"""MCP on the port of the service. Its library is loaded at the first request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from fastapi import FastAPI
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rag_pipeline.answering import Assistant

_PATH = "/mcp"


def mount_mcp(
    app: FastAPI,
    assistant: Assistant,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> None:
    """Add the MCP server to an application at `/mcp`; it runs with the application.

    There are no sessions and no messages to wait for, so that all methods except POST get 405.

    Args:
        app: The application. Each application can be started once.
        assistant: Finds passages and writes answers.
        allowed_hosts: See `build_http_app`.
        allowed_origins: See `build_http_app`.
    """

    def build() -> tuple[ASGIApp, StreamableHTTPSessionManager]:
        from rag_pipeline.serving.mcp.server import build_http_app  # noqa: PLC0415  # slow to load

        return build_http_app(assistant, allowed_hosts, allowed_origins)

    late = _LateServer(build)
    app.router.routes.append(Route(_PATH, late))
    run_app = app.router.lifespan_context

    @asynccontextmanager
    async def run_both(started: FastAPI) -> AsyncIterator[Any]:
        async with late.running(), run_app(started) as state:
            yield state

    app.router.lifespan_context = run_both


class _LateServer:
    """An ASGI application that is built when the first request arrives.

    Importing the library of MCP takes about a second, which most starts of the service can save.

    Args:
        build: Returns the application and its sessions.
    """

    def __init__(self, build: Callable[[], tuple[ASGIApp, StreamableHTTPSessionManager]]) -> None:
        self._build = build
        self._asked = asyncio.Event()
        self._ended = asyncio.Event()
        self._built: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] != "POST":
            # Without sessions, the library would keep a GET request open and send nothing.
            raise HTTPException(405, headers={"Allow": "POST"})
        if self._built is None:
            raise RuntimeError("the application was not started")
        self._asked.set()
        served = await asyncio.shield(self._built)
        await served(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests until the block ends."""
        self._built = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(self._built))
        try:
            yield
        finally:
            self._ended.set()
            if not self._asked.is_set():
                serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def _serve(self, built: asyncio.Future[ASGIApp]) -> None:
        """Build the server when it is asked for, and run its sessions; one task does both."""
        await self._asked.wait()
        try:
            served, sessions = await asyncio.to_thread(self._build)
        except Exception as error:  # noqa: BLE001  # the request that asked reports it
            built.set_exception(error)
            return
        async with sessions.run():
            built.set_result(served)
            await self._ended.wait()
