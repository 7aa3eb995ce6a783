"""A real service on a free port of 127.0.0.1, over a small book in a real index."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import uvicorn

from rag_pipeline.answering.assistant import Assistant
from rag_pipeline.answering.voice import read_voice
from rag_pipeline.retrieval import open_retriever
from rag_pipeline.retrieval.limits import Protection
from rag_pipeline.serving.app import BOUNDS, create_app
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

    from rag_pipeline.core.protocols import ChatModel
    from rag_pipeline.core.settings import Settings


def index_book(folder: Path, **overrides: object) -> Settings:
    """Index the small book in a folder and return its settings, without rate limits."""
    rates = {"serve_client_rate": "", "serve_total_rate": ""}
    settings = make_settings(folder, **(rates | overrides))
    build_collection(settings, make_points(PAGES))
    return settings


class _Server(uvicorn.Server):
    """A uvicorn server that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def run_app(app: ASGIApp) -> Iterator[str]:
    """Run an app with uvicorn in a thread and yield its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = _Server(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, **BOUNDS)
        )
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.ready.wait(20)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def run_service(
    settings: Settings,
    chat_model: ChatModel | None = None,
    log: Any = None,  # noqa: ANN401  # tests pass failing ones too
    site_dir: Path | None = None,
) -> Iterator[str]:
    """Run the whole service over an indexed book and yield its address."""
    metrics = Metrics()
    retriever = open_retriever(settings)
    observed = Protection(retriever.protection.limits, observe=metrics.observe_operation)
    voice = read_voice(settings)
    assistant = Assistant(retriever.protected_by(observed), chat_model, voice=voice)
    app = create_app(settings, assistant, log=log, site_dir=site_dir, metrics=metrics)
    with assistant, run_app(app) as url:
        yield url
