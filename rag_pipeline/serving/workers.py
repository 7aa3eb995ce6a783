"""Several processes that serve one port, and what they share: conversations, rates, metrics."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import secrets
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.managers import BaseManager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from rag_pipeline.adapters.question_log.opening import open_question_log
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.serving.api.problems import ProblemError
from rag_pipeline.serving.conversations import Conversations
from rag_pipeline.serving.deletions import Deletions
from rag_pipeline.serving.protection.access import read_access_rules
from rag_pipeline.serving.protection.rate_limits import LocalCounter, read_rate_limits
from rag_pipeline.serving.readiness import announce_readiness
from rag_pipeline.serving.server import configure_server, describe_addresses, listen, open_app
from rag_pipeline.serving.state import Shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from socket import socket

    from fastapi import FastAPI
    from uvicorn.supervisors.multiprocess import Process

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.serving.server import Place

_METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
_START_S: Final = 60.0
_CALL_S: Final = 3.0
_CALL_THREADS: Final = 8  # calls to the first process at a time
_LOOK_S: Final = 1.0  # how often signals are looked for during the start


class _FirstProcess(BaseManager):
    """A connection to the objects that the first process keeps for all."""


class Timely:
    """An object of the first process whose calls end in time, also if that process hangs.

    Args:
        proxy: The proxy that forwards calls to the first process.
        limit_s: Seconds after which a call fails.
    """

    def __init__(self, proxy: Any, limit_s: float = _CALL_S) -> None:  # noqa: ANN401  # any proxy
        self._proxy = proxy
        self._limit_s = limit_s
        self._pool = ThreadPoolExecutor(_CALL_THREADS, thread_name_prefix="first process")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that forwards calls of a method."""

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # of any method
            waiting = self._pool.submit(getattr(self._proxy, name), *arguments, **named)
            try:
                return waiting.result(self._limit_s)
            except TimeoutError:
                waiting.cancel()
                detail = "The first process of the service does not respond. Try again later."
                raise ProblemError(503, "SERVICE_BUSY", detail) from None

        return call


_FirstProcess.register("conversations")
_FirstProcess.register("counter")
_FirstProcess.register("deletions")


@dataclass(frozen=True, slots=True)
class WorkerApp:
    """Opens the service in a worker process. The first process sends it there.

    Attributes:
        settings: The settings of the service.
        place: Where the service listens.
        shared_dir: The folder in which all processes keep their metrics.
        address: Where the first process keeps the shared objects.
        key: Proves to the first process that the caller is one of its workers.
    """

    settings: Settings
    place: Place
    shared_dir: Path
    address: str
    key: bytes = field(repr=False)

    def __call__(self) -> FastAPI:
        """Return the application. Its lifespan closes the parts. An error ends the process."""
        _end_with_parent()
        parts = ExitStack()
        try:
            first: Any = _FirstProcess(self.address, self.key)
            first.connect()
            app = open_app(
                self.settings,
                self.place,
                parts,
                shared_dir=self.shared_dir,
                shared=_reach_shared(first),
            )
        except Exception as error:  # any error ends the whole service
            parts.close()
            reason = str(error) if isinstance(error, RagPipelineError) else describe_kind(error)
            print(f"Error: {reason}", file=sys.stderr)  # noqa: T201  # a worker has no command line
            raise SystemExit(STARTUP_FAILURE) from error
        lifespan = app.router.lifespan_context

        @asynccontextmanager
        async def closing(running: FastAPI) -> AsyncIterator[Any]:
            async with lifespan(running) as state:
                name = f"Process {os.getpid()}: "
                readiness = running.state.service.readiness
                announcing = asyncio.create_task(announce_readiness(readiness, name))
                try:
                    yield state
                finally:
                    announcing.cancel()
                    await asyncio.to_thread(parts.close)

        app.router.lifespan_context = closing
        return app


def _reach_shared(first: Any) -> Shared:  # noqa: ANN401  # its methods are registered above
    """Return the shared objects of the first process, with calls that end in time."""
    parts: list[Any] = [first.conversations(), first.counter(), first.deletions()]
    return Shared(*(cast("Any", Timely(part)) for part in parts))


class Workers(Multiprocess):
    """A supervisor that tells when all processes serve, and replaces those that die.

    Args:
        app: Opens the service in a process.
        listener: The socket that all processes accept connections from.
        workers: The number of processes.
        tell: Shows a line of text to the operator.
    """

    def __init__(
        self, app: WorkerApp, listener: socket, workers: int, tell: Callable[[str], None]
    ) -> None:
        options = configure_server(app.settings)
        config = uvicorn.Config(app, factory=True, workers=workers, **options)
        super().__init__(config, [listener])
        self.started = False
        self._app = app
        self._tell = tell

    def init_processes(self) -> None:
        """Start the processes and wait until each of them serves."""
        super().init_processes()
        for process in self.processes:
            if not self._wait_for(process):
                self.should_exit.set()
                return
        self.started = True
        port = self.sockets[0].getsockname()[1]
        for line in describe_addresses(port, self._app.settings, self._app.place):
            self._tell(line)
        self._tell(f"{len(self.processes)} processes answer questions.")

    def _wait_for(self, process: Process) -> bool:
        """Wait until a process serves; return False if it fails or a signal stops the start."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and process.process.is_alive():
            self.handle_signals()
            if self.should_exit.is_set():
                return False
            if process.wait_until_ready(_LOOK_S, self.should_exit):
                return True
        return False

    def handle_hup(self) -> None:
        """Stop, as after SIGTERM. Processes that a signal restarted would leave their metrics."""
        self.should_exit.set()

    def handle_ttin(self) -> None:
        """Keep the number of processes that the operator chose."""

    def handle_ttou(self) -> None:
        """Keep the number of processes that the operator chose."""

    def keep_subprocess_alive(self) -> None:
        """Replace processes that died, and forget what they were doing at that moment."""
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            if pid is not None:
                mark_process_dead(pid, str(self._app.shared_dir))  # type: ignore[no-untyped-call]  # as the package has it


def run_workers(
    settings: Settings, place: Place, tell: Callable[[str], None], workers: int
) -> bool:
    """Serve with several processes until SIGINT or SIGTERM; return True if all could start.

    Open streams then have ten seconds to end. A process that dies is replaced.

    Args:
        settings: The settings of the service. QDRANT_URL must be set.
        place: Where to listen.
        tell: Shows a line of text to the operator.
        workers: The number of processes, at least 2.

    Raises:
        ConfigurationError: A setting is invalid, or the port cannot be used.
    """
    read_rate_limits(settings)
    read_access_rules(settings, [place.host], None)
    if (database := open_question_log(settings)) is not None:
        database.close()  # only its settings are checked; creating its tables takes a lock
    with listen(place.host, place.port) as listener, TemporaryDirectory() as folder:
        os.environ[_METRICS_VARIABLE] = folder  # the library reads it when a process imports it
        address, key = _keep_shared()
        app = WorkerApp(settings, place, Path(folder), address, key)
        supervisor = Workers(app, listener, workers, tell)
        try:
            supervisor.run()
        finally:  # no process may outlive an error, such as a closed output
            for process in supervisor.processes:
                if process.process.is_alive():
                    process.terminate()
            supervisor.join_all()
        return supervisor.started


def _end_with_parent() -> None:
    """Stop this process when the first process ends, even if that was killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, name="end with parent", daemon=True).start()


def _keep_shared() -> tuple[str, bytes]:
    """Keep the shared objects in a thread of this process; return their address and key."""
    conversations, counter, deletions = Conversations(), LocalCounter(), Deletions()

    class Keeper(BaseManager):
        """The shared objects themselves."""

    Keeper.register("conversations", lambda: conversations)
    Keeper.register("counter", lambda: counter)
    Keeper.register("deletions", lambda: deletions)
    key = secrets.token_bytes(32)
    server = Keeper(authkey=key).get_server()
    Thread(target=server.serve_forever, name="shared objects", daemon=True).start()
    return str(server.address), key
