"""The running service: its port, its parts, its start and its end."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.answering.assistant import open_assistant
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.retrieval import Retriever, read_contents
from rag_pipeline.retrieval.logs import configure_logging
from rag_pipeline.serving.access import read_trusted_proxies
from rag_pipeline.serving.api.service import announce_readiness
from rag_pipeline.serving.app import create_app
from rag_pipeline.serving.connections import BoundedProtocol
from rag_pipeline.serving.limits import KEEP_ALIVE_S
from rag_pipeline.serving.log_writer import LogWriter
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.site import find_site_path

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from types import FrameType

    from fastapi import FastAPI

    from rag_pipeline.core.settings import Settings

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
        app = open_app(settings, place, parts)
        proxies = read_trusted_proxies(settings)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would contain the addresses of clients
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
            timeout_graceful_shutdown=DRAIN_S,
            timeout_keep_alive=KEEP_ALIVE_S,
            **BOUNDS,
        )

        async def report_start() -> None:
            for line in describe_addresses(listener.getsockname()[1], settings, place):
                tell(line)
            await announce_readiness(app.state.service.readiness)

        server = Server(config, report_start)
        server.run([listener])
        return server.started


def open_app(settings: Settings, place: Place, parts: ExitStack) -> FastAPI:
    """Open the parts of the service and return the application over them.

    Args:
        settings: The settings of the process.
        place: Where the service listens.
        parts: Closes the parts at the end.

    Raises:
        ConfigurationError: A setting is invalid.
    """
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
    return create_app(
        settings,
        assistant,
        log=log,
        site_dir=place.site_dir,
        hosts=[place.host],
        metrics=metrics,
    )


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
