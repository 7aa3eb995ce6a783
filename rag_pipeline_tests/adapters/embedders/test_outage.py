"""Tests that a service that does not answer is asked once for all texts, over real sockets."""

from __future__ import annotations

import logging
from threading import Event, current_thread
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters.embedders.openai import OpenAIEmbedder
from rag_pipeline.core.errors import EmbeddingServiceError
from rag_pipeline_tests.end_to_end.command import embed
from rag_pipeline_tests.hashing_embedder import DIM
from rag_pipeline_tests.loopback import HANG, Received, Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TEXTS = [f"text {number}" for number in range(40)]


def connect(url: str, **changes: Any) -> OpenAIEmbedder:  # noqa: ANN401  # arguments of several types
    """Connect to a service with one text in each request, and without waits between attempts."""
    values = {"model": "m", "dim": DIM, "api_key": "key", "batch_size": 1, "timeout_s": 0.2}
    values |= {"base_url": f"{url}/v1", "sleep": lambda _: None}
    return OpenAIEmbedder(**(values | changes))


@pytest.mark.parametrize("plan", [[HANG], [Reply(503)]], ids=["hang", "503"])
def test_a_service_that_never_answered_is_asked_three_times(plan: Sequence[Reply]) -> None:
    with serve(plan) as server, pytest.raises(EmbeddingServiceError):
        connect(server.url).embed_passages(TEXTS)
    assert len(server.received) == 3


def fail_after(count: int) -> Callable[[Received], Reply]:
    """Return a plan that answers `count` requests and then always gives status 503."""
    answered: list[Received] = []

    def answer(request: Received) -> Reply:
        answered.append(request)
        return embed(request) if len(answered) <= count else Reply(503)

    return answer


def test_a_service_that_fails_later_is_asked_by_the_open_requests_only() -> None:
    with serve(fail_after(5)) as server:
        embedder = connect(server.url)
        with pytest.raises(EmbeddingServiceError, match="HTTP 503"):
            embedder.embed_passages(TEXTS)
    assert len(server.received) <= 5 + 8 * 3


def test_the_error_is_the_first_failure_if_an_earlier_text_waits_for_its_next_try() -> None:
    def wait_longer_in_the_first_thread(_: float) -> None:
        if current_thread().name.endswith("_0"):
            Event().wait(0.3)  # the others fail meanwhile; if they are slow, nothing is tested

    with serve(fail_after(1)) as server:
        embedder = connect(server.url, sleep=wait_longer_in_the_first_thread)
        with pytest.raises(EmbeddingServiceError, match="HTTP 503"):
            embedder.embed_passages(TEXTS)


def test_a_service_that_recovers_embeds_all_texts_and_warns_before_each_retry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Received] = []

    def answer(request: Received) -> Reply:
        received.append(request)
        return Reply(503) if len(received) < 3 else embed(request)

    with caplog.at_level(logging.WARNING, "rag_pipeline"), serve(answer) as server:
        rows, usage = connect(server.url, timeout_s=20.0).embed_passages(TEXTS)
    assert (rows.shape, usage.requests, usage.retries) == ((40, DIM), 42, 2)
    assert len(caplog.records) == 2
    assert "HTTP 503" in caplog.records[0].getMessage()
