"""The metrics of a running service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.core.errors import StoreTimeoutError
from rag_pipeline.retrieval.limits import Protection
from rag_pipeline.retrieval.logs import Operation
from rag_pipeline.serving.metrics import Metrics
from rag_pipeline_tests.serving.running_service import index_book, run_service

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE = "Why does my unusual question appear here?"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service that allows three questions of one client per hour."""
    settings = index_book(tmp_path_factory.mktemp("book"), serve_client_rate="3/hour")
    with run_service(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def test_requests_answers_and_refusals_are_counted_without_their_text(client: httpx.Client) -> None:
    asked = {"question": "How does a soft gripper hold an egg?"}
    assert client.post("/v1/answers", json=asked).status_code == 200
    stream = {"Accept": "text/event-stream"}
    assert client.post("/v1/answers", json=asked, headers=stream).status_code == 200
    assert client.post("/v1/answers", json={"question": PRIVATE}).status_code == 200
    assert client.post("/v1/answers", json=asked).status_code == 429
    assert client.delete(f"/v1/conversations/{'a' * 32}").status_code == 404
    assert client.get("/private/path").status_code == 404

    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    text = response.text
    post = 'robotutor_http_requests_total{method="POST",route="/v1/answers"'
    assert f'{post},status="200"}} 3.0' in text
    assert f'{post},status="429"}} 1.0' in text
    assert 'route="/v1/conversations/{conversation_id}",status="404"' in text
    assert 'robotutor_answers_total{kind="extracted",level="answered"} 2.0' in text
    assert "robotutor_rate_limited_total 1.0" in text
    assert "robotutor_open_streams 0.0" in text
    assert 'robotutor_breaker_state{service="store"} 0.0' in text
    assert "robotutor_question_log_failures_total 0.0" in text
    for private in ("unusual", "private", "a" * 32, "127.0.0.1"):
        assert private not in text


def test_a_failed_operation_has_the_code_of_its_error() -> None:
    metrics = Metrics()
    operation = Operation("retrieve", ["q"], 1.0, timings_ms={"embed": 20.0})
    metrics.observe_operation(operation, StoreTimeoutError("slow"))
    metrics.observe_operation(operation, ValueError("text with a question"))
    text = metrics.render().decode()
    assert f'code="{StoreTimeoutError.code}",name="retrieve",status="error"}} 1.0' in text
    assert 'code="ValueError",name="retrieve",status="error"} 1.0' in text
    assert "text with a question" not in text
    assert 'robotutor_operation_step_seconds_sum{name="retrieve",step="embed"} 0.04' in text


def test_an_open_breaker_is_shown() -> None:
    metrics, protection = Metrics(), Protection()
    metrics.watch_breakers(protection)

    for _ in range(protection.limits.breaker_failures):
        with pytest.raises(StoreTimeoutError), protection.store.passing():
            raise StoreTimeoutError("slow")
    text = metrics.render().decode()
    assert 'robotutor_breaker_state{service="store"} 2.0' in text
    assert 'robotutor_breaker_state{service="embedding"} 0.0' in text


def test_two_services_count_separately() -> None:
    first, second = Metrics(), Metrics()
    first.log_faults.inc()
    first.rate_faults.inc()
    assert b"question_log_failures_total 1.0" in first.render()
    assert b"rate_limit_failures_total 1.0" in first.render()
    assert b"question_log_failures_total 0.0" in second.render()
