"""The HTTP service: its routes and parts are put together here, and it is started and ended here.

MCP is on the same port. Its library is loaded at the first request.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.answering.assistant import Assistant, open_assistant
from rag_pipeline.answering.streams import WriteLimits
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.retrieval import Retriever, read_contents
from rag_pipeline.retrieval.logs import configure_logging
from rag_pipeline.serving import chat
from rag_pipeline.serving import limits as fixed
from rag_pipeline.serving.access import ProtectedApp, read_access_rules, read_trusted_proxies
from rag_pipeline.serving.api import answers, search, service
from rag_pipeline.serving.api.problems import add_problem_handlers, catch_errors
from rag_pipeline.serving.api.service import Readiness, Service, announce_readiness
from rag_pipeline.serving.connections import BoundedProtocol
from rag_pipeline.serving.limits import RateLimits, Turns, limit_rate
from rag_pipeline.serving.log_writer import LogWriter
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.site import find_site_path, mount_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from pathlib import Path
    from types import FrameType

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rag_pipeline.core.settings import Settings


_PATH = "/mcp"


def mount_mcp(app: FastAPI, assistant: Assistant) -> None:
    """Add the MCP server to an application at `/mcp`; it runs with the application.

    There are no sessions and no messages to wait for, so that all methods except POST get 405.

    Args:
        app: The application. Each application can be started once.
        assistant: Finds passages and writes answers.
    """
    late = _LateServer(assistant)
    app.router.routes.append(Route(_PATH, late))
    run_app = app.router.lifespan_context

    @asynccontextmanager
    async def run_both(started: FastAPI) -> AsyncIterator[Any]:
        try:
            async with run_app(started) as state:
                yield state
        finally:
            await late.close()

    app.router.lifespan_context = run_both


class _LateServer:
    """The MCP server as an ASGI application that is built when the first request arrives.

    Importing the library of MCP takes about a second, which most starts of the service can save.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._built: asyncio.Future[ASGIApp] | None = None
        self._serving: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] != "POST":
            # Without sessions, the library would keep a GET request open and send nothing.
            raise HTTPException(405, headers={"Allow": "POST"})
        if self._built is None:
            self._built = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._built))
        served = await asyncio.shield(self._built)
        await served(scope, receive, send)

    async def close(self) -> None:
        """End the sessions of the server if it was built."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    def _build(self) -> tuple[ASGIApp, StreamableHTTPSessionManager]:
        from rag_pipeline.serving.mcp import build_http_app  # noqa: PLC0415  # slow to load

        return build_http_app(self._assistant)

    async def _serve(self, built: asyncio.Future[ASGIApp]) -> None:
        """Build the server and run its sessions; one task must do both."""
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
    limits = RateLimits(settings, measured.rate_faults.inc)
    turns = Turns(settings.serve_client_answers)
    app = FastAPI(title="RoboTutor", docs_url=None, redoc_url=None, lifespan=_warm_up)
    app.state.service = Service(assistant, settings, log, measured, Readiness(assistant))
    add_problem_handlers(app)
    for router in (answers.router, search.router, service.router, chat.router):
        app.include_router(router)
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


BOUNDS: Final[dict[str, Any]] = {"http": BoundedProtocol, "ws": "none", "backlog": 256}
"""The options of uvicorn that bound what a client can do. `backlog` is also the number of
connections that are accepted at once, before idle ones are closed."""

DRAIN_S: Final = 10
"""Seconds that open streams have to end after the service was told to stop."""


@dataclass(frozen=True, slots=True)
class Place:
    """The address that the service listens on, and the website that it serves.

    Attributes:
        host: Address or name of this machine, such as `127.0.0.1`.
        port: The port, 0 to 65535; 0 takes a free one.
        site_dir: Folder of the built website; None serves none.
    """

    host: str
    port: int
    site_dir: Path | None = None


class Server(uvicorn.Server):
    """A server that reports its start, and ends without an error when a signal stops it.

    Args:
        config: The configuration of uvicorn.
        report_start: Runs in the background once requests are accepted.
    """

    def __init__(
        self, config: uvicorn.Config, report_start: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        super().__init__(config)
        self._report_start = report_start
        self._reporting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept requests."""
        await super().startup(sockets)
        if self.started:
            self._reporting = asyncio.create_task(self._report_start())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for open streams, and end the application also after a second Ctrl-C."""
        if self._reporting is not None:
            self._reporting.cancel()
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn would leave the application running and log its traceback
            await self.lifespan.shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after a signal. A second Ctrl-C does not wait for open streams.

        uvicorn's own method would send the signal to the process again at the end.
        """
        del frame
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True


def run_service(settings: Settings, place: Place, tell: Callable[[str], None]) -> bool:
    """Serve until SIGINT or SIGTERM arrives, and return True if the service could start.

    Open streams then have ten seconds to end.

    Args:
        settings: The settings of the process.
        place: Where to listen.
        tell: Shows a line of text to the operator.

    Raises:
        ConfigurationError: A setting is invalid, or the port cannot be used.
    """
    with ExitStack() as parts:
        listener = parts.enter_context(listen(place.host, place.port))
        metrics = Metrics()
        assistant = parts.enter_context(open_assistant(settings, observe=metrics.observe_operation))
        database = open_question_log(settings)
        log = None
        if database is not None:
            find_page = partial(find_page_address, assistant.retriever)
            writer = LogWriter(database, lambda _: metrics.log_faults.inc(), find_page=find_page)
            log = parts.enter_context(writer)
        try:
            configure_logging(settings.state_dir / "logs", console=False)
        except ConfigurationError:  # on a read-only disk, questions are answered all the same
            configure_logging(None, console=False)
        logging.getLogger("uvicorn.error").addFilter(is_no_cancellation)
        app = create_app(
            settings,
            assistant,
            log=log,
            site_dir=place.site_dir,
            hosts=[place.host],
            metrics=metrics,
        )
        proxies = read_trusted_proxies(settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would contain the addresses of clients
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
            timeout_graceful_shutdown=DRAIN_S,
            timeout_keep_alive=fixed.KEEP_ALIVE_S,
            **BOUNDS,
        )

        async def report_start() -> None:
            for line in describe_addresses(listener.getsockname()[1], settings, place):
                tell(line)
            await announce_readiness(app.state.service.readiness)

        server = Server(config, report_start)
        server.run([listener])
        return server.started


def is_no_cancellation(record: logging.LogRecord) -> bool:
    """Return False for the log record of a stream that was cut off because the service ended."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port.

    The host `::` means all networks, with IPv6 and IPv4.

    Raises:
        ConfigurationError: The host is empty or not this machine, or the port is in use or
            reserved.
    """
    name = host.strip().strip("[]")
    if not name:
        remedy = "Use 127.0.0.1 for this machine only, or 0.0.0.0 for all of its networks"
        raise ConfigurationError("--host", "the host is empty", remedy)
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    is_dual = name == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (name, port), family=family, backlog=2048, dualstack_ipv6=is_dual
        )
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            problem = f"port {port} of {host} is in use"
            remedy = "Stop the program that uses it, or choose another port"
            raise ConfigurationError("--port", problem, remedy) from error
        if error.errno == errno.EACCES:
            problem = f"port {port} needs more rights ({reason})"
            raise ConfigurationError("--port", problem, "Choose a port above 1023") from error
        problem = f"{host!r} is not an address of this machine ({reason})"
        remedy = "Use 127.0.0.1 for this machine only, or 0.0.0.0 for all of its networks"
        raise ConfigurationError("--host", problem, remedy) from error


def describe_addresses(port: int, settings: Settings, place: Place) -> list[str]:
    """Return lines that name the addresses of a service that listens on a port."""
    host = place.host.strip().strip("[]")
    everywhere = host in {"0.0.0.0", "::"}  # noqa: S104  # compared, not bound
    if everywhere:
        is_ipv6_only = host == "::" and not socket.has_dualstack_ipv6()
        host = "::1" if is_ipv6_only else "127.0.0.1"
    base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    lines = ["RoboTutor is running. Press Ctrl-C to stop it."]
    if place.site_dir is not None:
        lines.append(f"  Book:       {base}{find_site_path(settings.site.base_url)}")
    lines += [
        f"  Questions:  {base}/v1/answers (POST)",
        f"  Agents:     {base}/mcp",
        f"  Health:     {base}/readyz and {base}/metrics",
    ]
    if place.site_dir is None:
        lines.append("The book itself is not served: its website is not built (npm run build).")
    if everywhere and not settings.serve_hosts:
        lines.append("Requests from other machines are refused until SERVE_HOSTS names this host.")
    if not _is_own(place.host) and not settings.serve_api_key.get_secret_value():
        lines.append("Anybody who reaches this address can ask: SERVE_API_KEY is not set.")
    return lines


def _is_own(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def find_page_address(retriever: Retriever, url: str) -> str | None:
    """Return the address of the page of the book that an address leads to; None without one."""
    try:
        pages = read_contents(retriever, url=url)
    except RagPipelineError:  # the store does not answer, so nothing proves that the book has it
        return None
    return pages[0].url if pages else None
