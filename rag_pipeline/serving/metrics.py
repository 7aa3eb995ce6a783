"""Metrics of the service for Prometheus. No label contains a question, a path or a key."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.serving.limits import LIMITED_PATHS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rag_pipeline.retrieval.limits import CircuitBreaker, Protection
    from rag_pipeline.retrieval.logs import Operation

_NAMESPACE = "robotutor"
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BREAKER_STATES = {"closed": 0, "half-open": 1, "open": 2}


class Metrics:
    """The metrics of one process, in their own registry.

    Attributes:
        registry: The registry of Prometheus.
        rate_limited: Counts questions that exceeded a rate limit.
        rate_faults: Counts faults of the place where several processes count together.
        log_faults: Counts entries that the question log could not store.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace=_NAMESPACE, registry=self.registry)
        gauge = partial(Gauge, namespace=_NAMESPACE, registry=self.registry)
        histogram = partial(
            Histogram, namespace=_NAMESPACE, registry=self.registry, buckets=_BUCKETS_S
        )
        self._requests = counter("http_requests", "Requests.", ("method", "route", "status"))
        self._latency = histogram(
            "http_request_seconds", "Seconds from a request to the end of its response.", ("route",)
        )
        self._open_streams = gauge("open_streams", "Answers that are being streamed.")
        self._operations = counter(
            "operations", "Finished searches and answers.", ("name", "status", "code")
        )
        self._steps = histogram(
            "operation_step_seconds", "Seconds of a step of a search or answer.", ("name", "step")
        )
        self._answers = counter(
            "answers", "Complete answers; a refusal has the kind `refused`.", ("kind", "level")
        )
        self._notices = counter(
            "answer_notices", "Notices of answers, such as corrected citations.", ("code",)
        )
        self._model_faults = counter(
            "model_failures", "Answers that quote the book because the model failed.", ("code",)
        )
        self.rate_limited = counter("rate_limited", "Questions over a rate limit.")
        self.rate_faults = counter("rate_limit_failures", "Faults of SERVE_RATE_URL.")
        self.log_faults = counter("question_log_failures", "Lost entries of the log.")
        self._breakers = gauge("breaker_state", "0: closed, 1: half-open, 2: open.", ("service",))

    def observe_operation(self, operation: Operation, error: Exception | None) -> None:
        """Count a finished search or answer; for the observer of `Protection`."""
        code = error.code if isinstance(error, RagPipelineError) else type(error).__name__
        status = operation.status if error is None else "error"
        self._operations.labels(operation.name, status, "" if error is None else code).inc()
        for step, spent_ms in operation.timings_ms.items():
            self._steps.labels(operation.name, step).observe(spent_ms / 1000)
        if error is None and "kind" in operation.details:
            details = operation.details
            self._answers.labels(str(details["kind"]), str(details.get("level", ""))).inc()
            notices = details.get("notices")
            for notice in notices if isinstance(notices, list) else ():
                self._notices.labels(notice).inc()
            if "model_error" in details:
                self._model_faults.labels(str(details["model_error"])).inc()

    def watch_breakers(self, protection: Protection) -> None:
        """Report the states of the circuit breakers from now on."""
        for name in ("embedding", "store", "chat_model"):
            read = partial(_read_state, getattr(protection, name))
            self._breakers.labels(name).set_function(read)

    def render(self) -> bytes:
        """Return the metrics for Prometheus."""
        return generate_latest(self.registry)

    def watch_requests(self, app: ASGIApp) -> ASGIApp:
        """Return the application with its requests and open streams counted."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            started, status, streaming = time.perf_counter(), 500, False

            async def note(message: Message) -> None:
                nonlocal status, streaming
                if message["type"] == "http.response.start":
                    status = message["status"]
                    types = [value for name, value in message["headers"] if name == b"content-type"]
                    if not streaming and types and types[0].startswith(b"text/event-stream"):
                        streaming = True
                        self._open_streams.inc()
                await send(message)

            try:
                await app(scope, receive, note)
            finally:
                if streaming:
                    self._open_streams.dec()
                # A refused request reached no route of FastAPI.
                known = scope["path"] if scope["path"] in LIMITED_PATHS else "other"
                route = getattr(scope.get("route"), "path", None) or known
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._requests.labels(method, route, str(status)).inc()
                self._latency.labels(route).observe(time.perf_counter() - started)

        return watched


def _read_state(breaker: CircuitBreaker) -> float:
    return _BREAKER_STATES[breaker.state]
