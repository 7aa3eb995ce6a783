"""Faults of every service that the package calls: retries, time limits, keys and addresses."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rag_pipeline.core.errors import (
    AnswerServiceError,
    ConfigurationError,
    EmbeddingServiceError,
    RagPipelineError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline_tests.adapters import test_chat_model as chat
from rag_pipeline_tests.adapters.embedders import test_openai as openai
from rag_pipeline_tests.adapters.embedders.test_openai import KEY, check_message
from rag_pipeline_tests.adapters.stores import test_qdrant_faults as qdrant
from rag_pipeline_tests.loopback import (
    ENDLESS,
    FLOOD,
    RESET,
    Received,
    Reply,
    find_closed_port,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = "hunter2-hunter2"


class Kind(NamedTuple):
    """A kind of service: a call of it, its correct reply, its errors, and its settings."""

    call: Callable[[str, list[float], float], object]
    answer: Callable[[Received], Reply]
    failed: type[RagPipelineError]
    late: type[RagPipelineError]
    settings: str
    timeout: str


def embed_with_openai(url: str, waits: list[float], timeout_s: float) -> object:
    return openai.connect(url, waits, timeout_s=timeout_s).embed_passages(["a"])


def embed_with_cohere(url: str, waits: list[float], timeout_s: float) -> object:
    pytest.importorskip("cohere", reason="the cohere extra is not installed")
    from rag_pipeline_tests.adapters.embedders import test_cohere  # noqa: PLC0415  # needs the extra

    return test_cohere.connect(url, waits, timeout_s=timeout_s).embed_passages(["a"])


def answer_as_cohere(request: Received) -> Reply:
    vectors = [openai.vector_of(text, 1024) for text in request.body["texts"]]
    return Reply(body={"id": "1", "embeddings": {"float": vectors}})


def count_points(url: str, waits: list[float], timeout_s: float) -> object:
    return qdrant.open_store(qdrant.connect(url, waits, timeout_s)).count()


def ask_model(url: str, waits: list[float], timeout_s: float) -> object:
    return chat.read(chat.make_model(url, timeout_s, waits))


_EMBEDDING = (EmbeddingServiceError, EmbeddingServiceError)
_STORE = (StoreUnavailableError, StoreTimeoutError)
KINDS = {
    "openai": Kind(
        embed_with_openai, openai.answer_well, *_EMBEDDING, "OPENAI", "EMBEDDING_TIMEOUT_S"
    ),
    "cohere": Kind(
        embed_with_cohere, answer_as_cohere, *_EMBEDDING, "COHERE", "EMBEDDING_TIMEOUT_S"
    ),
    "qdrant": Kind(count_points, qdrant.answer_count, *_STORE, "QDRANT", "QDRANT_TIMEOUT_S"),
    "chat": Kind(
        ask_model,
        lambda _: chat.stream_reply("Fine."),
        AnswerServiceError,
        AnswerServiceError,
        "OPENAI",
        "",
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of service."""
    return KINDS[request.param]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reply(500, {"message": "boom"}), id="500"),
        pytest.param(Reply(503, b"<html>bad gateway</html>"), id="503 in HTML"),
        pytest.param(Reply(429, {"message": "slow down"}), id="429"),
        pytest.param(RESET, id="reset"),
        pytest.param(Reply(500, fault="cut"), id="500 cut off"),
        pytest.param(Reply(429, fault="cut"), id="429 cut off"),
        pytest.param(Reply(500, {}, {"Content-Encoding": "gzip"}), id="500 not packed"),
    ],
)
def test_a_call_survives_two_transient_failures_but_not_three(kind: Kind, fault: Reply) -> None:
    if kind is KINDS["qdrant"] and "Content-Encoding" in fault.headers:
        pytest.skip("Qdrant is asked for replies that are not packed")
    waits: list[float] = []
    replies = iter([fault, fault])
    with serve(lambda request: next(replies, None) or kind.answer(request)) as server:
        kind.call(server.url, waits, 5.0)
        assert len(server.received) == 3
    assert 0.5 <= waits[0] <= 0.75
    assert 1.0 <= waits[1] <= 1.5
    with serve([fault]) as server:
        with pytest.raises(kind.failed) as caught:
            kind.call(server.url, waits, 5.0)
        assert len(server.received) == 3
    assert len(waits) == 4
    check_message(caught.value)


def test_the_wait_before_a_retry_is_the_one_that_the_service_asks_for(kind: Kind) -> None:
    waits: list[float] = []
    limited = Reply(429, {"message": "slow down"}, {"Retry-After": "2"})
    with serve([limited]) as server, pytest.raises(kind.failed):
        kind.call(server.url, waits, 5.0)
    assert waits == [2.0, 2.0]


@pytest.mark.parametrize("fault", ENDLESS, ids=lambda reply: reply.fault)
@pytest.mark.parametrize("name", ["openai", "cohere", "qdrant"])
def test_an_endless_response_times_out_after_three_attempts(name: str, fault: Reply) -> None:
    kind = KINDS[name]
    with serve([fault]) as server:
        with pytest.raises(kind.late, match=rf"within 0\.1 s.*{kind.timeout}") as caught:
            kind.call(server.url, [], 0.1)
        assert len(server.received) == 3
    check_message(caught.value)


def test_a_response_with_endless_headers_is_aborted(kind: Kind) -> None:
    with serve([FLOOD]) as server:
        with pytest.raises(kind.failed, match=f"{kind.settings}_(BASE_)?URL") as caught:
            kind.call(server.url, [], 5.0)
        assert len(server.received) == 3
        assert server.flooded_bytes < 30_000_000
    check_message(caught.value)


def test_the_error_for_an_unreachable_service_names_host_and_setting(kind: Kind) -> None:
    port = find_closed_port()
    problem = rf"127\.0\.0\.1:{port} cannot be reached.*{kind.settings}_(BASE_)?URL"
    with pytest.raises(kind.failed, match=problem) as caught:
        kind.call(f"http://127.0.0.1:{port}", [], 5.0)
    assert not isinstance(caught.value, StoreTimeoutError)
    check_message(caught.value)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    "body", [{"error": {"message": f"wrong key {KEY}"}}, f"invalid API key {KEY}".encode()]
)
def test_the_error_for_a_rejected_key_hides_the_key_and_is_not_retried(
    kind: Kind, status: int, body: object
) -> None:
    with serve([Reply(status, body)]) as server:
        with pytest.raises(ConfigurationError, match=f"{kind.settings}_API_KEY") as caught:
            kind.call(server.url, [], 5.0)
        assert len(server.received) == 1
    check_message(caught.value)


def test_a_password_in_a_url_reaches_the_server_but_no_log(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serve([Reply(400)]) as server:
        url = server.url.replace("//", f"//user:{HIDDEN}@")
        with pytest.raises(RagPipelineError, match=r"at 127\.0\.0\.1:\d+ rejected") as caught:
            kind.call(url, [], 5.0)
    login = base64.b64encode(f"user:{HIDDEN}".encode()).decode()
    assert server.received[0].headers["authorization"] == f"Basic {login}"
    assert HIDDEN not in str(caught.value)
    assert [line for line in caplog.messages if HIDDEN in line or login in line] == []
