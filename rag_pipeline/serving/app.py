"""The HTTP service: its routes and shared parts are put together here.

MCP is on the same port. Its library is loaded at the first request.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from rag_pipeline.answering.streams import WriteLimits
from rag_pipeline.serving import limits as fixed
from rag_pipeline.serving.access import ProtectedApp, read_access_rules
from rag_pipeline.serving.api import answers, search, service
from rag_pipeline.serving.api.problems import add_problem_handlers, catch_errors
from rag_pipeline.serving.api.service import Readiness, Service, get_service
from rag_pipeline.serving.chat import make_chat_router
from rag_pipeline.serving.limits import Turns, limit_rate, read_rate_limits
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.site import find_site_path, mount_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rag_pipeline.answering import Assistant
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.serving.log_writer import LogWriter


_PATH = "/mcp"


def mount_mcp(app: FastAPI, assistant: Assistant) -> None:
    """Add the MCP server to an application at `/mcp`; it runs with the application.

    There are no sessions and no messages to wait for, so that all methods except POST get 405.

    Args:
        app: The application. Each application can be started once.
        assistant: Finds passages and writes answers.
    """

    def build() -> tuple[ASGIApp, StreamableHTTPSessionManager]:
        from rag_pipeline.serving.mcp import build_http_app  # noqa: PLC0415  # slow to load

        return build_http_app(assistant)

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
            await asyncio.Event().wait()  # until the task is cancelled


_COMPRESSED_FROM_BYTES: Final = 2_000


def create_app(
    settings: Settings,
    assistant: Assistant,
    *,
    log: LogWriter | None = None,
    site_dir: Path | None = None,
    hosts: Sequence[str] = (),
    metrics: Metrics | None = None,
) -> FastAPI:
    """Return the service over an assistant. Each application can be started once.

    The assistant gets the limits of time that the service has for writing an answer.

    Args:
        settings: The settings of the process.
        assistant: Answers the questions. The caller closes it.
        log: Writes the question log; None logs nothing.
        site_dir: Folder of the built site to serve on the same port; None serves no site.
        hosts: Host names that requests may use, besides SERVE_HOSTS and this machine's own names.
        metrics: Counts requests. Pass the metrics that observe the assistant; None makes new ones.

    Raises:
        ConfigurationError: A setting of the service is invalid.
    """
    measured = metrics or Metrics()
    measured.watch_breakers(assistant.protection)
    assistant.limits = WriteLimits(fixed.ANSWER_S, fixed.QUOTE_S)
    site_path = find_site_path(settings.site.base_url) if site_dir else None
    rules = read_access_rules(settings, hosts, site_path)
    limits = read_rate_limits(settings, measured.rate_faults.inc)
    turns = Turns(settings.serve_client_answers)
    app = FastAPI(title="RoboTutor", docs_url=None, redoc_url=None, lifespan=_warm_up)
    app.state.service = Service(assistant, settings, log, measured, Readiness(assistant))
    add_problem_handlers(app)
    for router in (answers.router, search.router, service.router):
        app.include_router(router)
    app.include_router(make_chat_router(lambda request: get_service(request).assistant))
    mount_mcp(app, assistant)
    if site_dir is not None and site_path is not None:
        mount_site(app, site_dir, site_path)
    else:
        app.add_api_route("/", greet, include_in_schema=False, response_class=PlainTextResponse)
    # Each of these runs before the ones above it.
    app.add_middleware(GZipMiddleware, minimum_size=_COMPRESSED_FROM_BYTES, compresslevel=5)
    app.add_middleware(limit_rate, limits=limits, on_refusal=measured.rate_limited.inc, turns=turns)
    app.add_middleware(catch_errors)
    app.add_middleware(ProtectedApp, rules=rules, rates=limits)
    app.add_middleware(measured.watch_requests)
    return app


async def greet() -> str:
    """Return what a person sees who opens the address of a service without a website."""
    return (
        "RoboTutor is running. It answers questions at POST /v1/answers and coding agents at "
        "/mcp.\nThe book itself is not served here: there is no built website.\n"
    )


@asynccontextmanager
async def _warm_up(app: FastAPI) -> AsyncIterator[None]:
    """Load the model in the background while the service starts to accept requests."""
    warming = asyncio.create_task(app.state.service.readiness.check())
    try:
        yield
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
