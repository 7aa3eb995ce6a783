"""The parts of a running service, if it can answer, and its endpoints for operators."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, TypeVar, cast

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rag_pipeline.core.errors import RagPipelineError, describe_kind
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import count_filter_values
from rag_pipeline.retrieval.queries import Query
from rag_pipeline.serving.api.problems import describe_error, log_failure
from rag_pipeline.serving.replies import make_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval import Retriever
    from rag_pipeline.serving.log_writer import LogWriter
    from rag_pipeline.serving.metrics import Metrics


LOG_THREADS: Final = 4
"""Threads for ratings and deletions, which wait for the question log."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service.

    Attributes:
        assistant: Answers the questions.
        settings: The settings of the process.
        log: The question log; None if nothing is logged.
        metrics: The metrics of the service.
        readiness: The state that `/readyz` reports.
        log_threads: Limits the threads that wait for the question log.
    """

    assistant: Assistant
    settings: Settings
    log: LogWriter | None
    metrics: Metrics
    readiness: Readiness
    log_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOG_THREADS))

    async def read(self, work: Callable[[Retriever], _Result]) -> _Result:
        """Read the book in one of the threads of the assistant."""
        return await self.assistant.arun(lambda: work(self.assistant.retriever))

    async def run_log(self, action: Callable[[], _Result]) -> _Result:
        """Run an action on the question log in one of the log's threads.

        A slow log thus occupies none of the threads that serve the website.
        """
        return await to_thread.run_sync(action, limiter=self.log_threads)


def get_service(request: Request) -> Service:
    """Return the service that a request was sent to."""
    return cast("Service", request.app.state.service)


router = APIRouter()
_Shared = Annotated[Service, Depends(get_service)]
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("/healthz")
async def report_health() -> dict[str, str]:
    """Return that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz")
async def report_readiness(service: _Shared) -> Response:
    """Return the status 200 if questions can be answered, and otherwise 503 with the reason."""
    error = await service.readiness.check()
    if error is None:
        return JSONResponse({"status": "ready"}, headers=_NO_STORE)
    code, message, _transient, wait_s = describe_error(error)
    if not isinstance(error, RagPipelineError):
        message = f"The check whether questions can be answered failed ({describe_kind(error)})."
    headers = _NO_STORE if wait_s is None else _NO_STORE | {"Retry-After": str(math.ceil(wait_s))}
    return make_problem(503, code, message, headers=dict(headers))


@router.get("/metrics", include_in_schema=False)
async def report_metrics(service: _Shared) -> Response:
    """Return the metrics in the text format of Prometheus."""
    return Response(service.metrics.render(), media_type=CONTENT_TYPE_LATEST)


_WARM_UP: Final = "What is a robot?"
_FRESH_S: Final = 1.0
_LOOK_S: Final = 5.0  # how often the state is looked at until questions can be answered


class Readiness:
    """Checks whether questions can be answered, at most once per second.

    A missing or rebuilt collection is noticed by the next check, without a restart.

    Args:
        assistant: The assistant that answers.
        clock: Returns a time in seconds that never decreases.
    """

    def __init__(self, assistant: Assistant, clock: Callable[[], float] = time.monotonic) -> None:
        self._assistant = assistant
        self._clock = clock
        self._lock = asyncio.Lock()
        self._is_warm = False
        self._checked_at: float | None = None
        self._problem: Exception | None = None

    async def check(self) -> Exception | None:
        """Return the error that a question would meet now; None if the service is ready."""
        async with self._lock:
            now = self._clock()
            if self._checked_at is None or now - self._checked_at >= _FRESH_S:
                self._problem = await asyncio.to_thread(self._probe)
                self._checked_at = self._clock()
            return self._problem

    def _probe(self) -> Exception | None:
        """Search a real question until that succeeds once; afterwards only probe the collection."""
        try:
            retriever = self._assistant.retriever
            if not self._is_warm:
                retriever.retrieve(Query(_WARM_UP))
                count_tokens(_WARM_UP)  # the first call loads a vocabulary, which takes 0.1 s
                count_filter_values(retriever)  # reads the outline of the book, which takes 0.5 s
                self._is_warm = True
            retriever.probe()
        except Exception as error:  # noqa: BLE001  # any error means that a question would fail
            self._is_warm = False
            if not isinstance(error, RagPipelineError):
                log_failure("readiness_failed", error)
            return error
        return None


async def announce_readiness(readiness: Readiness) -> None:
    """Write a line to standard error if questions cannot be answered yet, and one when they can."""
    is_told = False
    while (error := await readiness.check()) is not None:
        if not is_told:
            is_told = True
            reason = str(error) if isinstance(error, RagPipelineError) else describe_kind(error)
            again = "This is checked again without a restart."
            sys.stderr.write(f"Not ready yet: {reason.rstrip('.')}. {again}\n")
        await asyncio.sleep(_LOOK_S)
    sys.stderr.write("Ready for questions.\n")
