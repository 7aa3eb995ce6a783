"""The HTTP service: its routes and shared parts are put together here."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.middleware.gzip import GZipMiddleware

from rag_pipeline.answering.streams import WriteLimits
from rag_pipeline.serving import limits as fixed
from rag_pipeline.serving.access import ProtectedApp, read_access_rules
from rag_pipeline.serving.api import answers, search, service
from rag_pipeline.serving.api.problems import add_problem_handlers, catch_errors
from rag_pipeline.serving.api.service import Readiness, Service, get_service
from rag_pipeline.serving.chat import make_chat_router
from rag_pipeline.serving.limits import Turns, limit_rate, read_rate_limits
from rag_pipeline.serving.mcp.mounting import mount_mcp
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline.serving.site import find_site_path, mount_site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.serving.log_writer import LogWriter

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
    app.state.service = Service(
        assistant,
        settings,
        log,
        measured,
        Readiness(assistant),
    )
    add_problem_handlers(app)
    for router in (answers.router, search.router, service.router):
        app.include_router(router)
    app.include_router(make_chat_router(lambda request: get_service(request).assistant))
    mount_mcp(app, assistant, sorted(rules.hosts), sorted(rules.origins))
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
