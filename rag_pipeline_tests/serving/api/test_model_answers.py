"""Answers that a model writes, over real sockets: declines, faults and disconnects."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.serving.api import answers
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import ScriptedModel, ScriptedStream
from rag_pipeline_tests.loopback import serve
from rag_pipeline_tests.serving.event_decoder import EventDecoder
from rag_pipeline_tests.serving.running_service import run_service

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.protocols import ChatMessage, ChatModel, ChatStream
    from rag_pipeline.core.settings import Settings

QUESTION = "How does a soft gripper hold an egg?"
SSE = {"Accept": "text/event-stream"}


class GatedStream(ScriptedStream):
    """A stream that waits before its first piece until a test lets it write."""

    def __init__(self, model: ScriptedModel, gate: Event) -> None:
        super().__init__(model)
        self._gate = gate

    async def __anext__(self) -> str:
        """Wait, and return the next piece."""
        await asyncio.to_thread(self._gate.wait, 30)
        return await super().__anext__()


class WaitingModel(ScriptedModel):
    """A `ChatModel` that waits before its answer until a test lets it write."""

    gate = Event()

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return a stream that waits for the gate."""
        del messages, stop
        return GatedStream(self, self.gate)


@contextmanager
def ask_with(settings: Settings, model: ChatModel) -> Iterator[httpx.Client]:
    """Run a service with a model and yield a client."""
    with run_service(settings, model) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def stream(client: httpx.Client) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of the answer to the question."""
    response = client.post("/v1/answers", json={"question": QUESTION}, headers=SSE)
    assert response.status_code == 200
    return list(EventDecoder().feed(response.content))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AnswerServiceError("the model broke off. Ask again"), "ANSWER_SERVICE_UNAVAILABLE"),
        (ZeroDivisionError("/srv/secret"), "ANSWER_FAILED"),
    ],
)
def test_any_error_of_a_model_gives_quotes_and_tells_nothing_about_the_machine(
    settings: Settings, error: Exception, code: str
) -> None:
    model = ScriptedModel(["Soft fing"], error=error)
    with ask_with(settings, model) as client:
        events = stream(client)
        answer = client.post("/v1/answers", json={"question": QUESTION}).json()
    assert events[-1][0] == "done"
    for content in (events[-1][1], answer):
        assert (content["kind"], content["notices"][-1]["data"]) == ("extracted", {"error": code})
    assert "secret" not in str(events) + str(answer)


def test_a_silent_stream_is_kept_alive_by_comments(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "KEEP_ALIVE_S", 0.01)
    model, received = WaitingModel(["Soft fingers close around an egg [1]."]), b""
    with (
        ask_with(settings, model) as client,
        client.stream("POST", "/v1/answers", json={"question": QUESTION}, headers=SSE) as response,
    ):
        for piece in response.iter_bytes():
            received += piece
            if received.count(b": waiting\n\n") >= 2:
                model.gate.set()
    assert list(EventDecoder().feed(received))[-1][0] == "done"


def test_a_disconnect_before_a_whole_answer_ends_the_request_too(settings: Settings) -> None:
    stalled = stream_reply("The soft fingers close around an egg. ", finish=None, fault="stall")
    with serve([stalled]) as server, ask_with(settings, make_model(server, 30)) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/answers", json={"question": QUESTION}, timeout=1.0)
        assert server.hung_up.wait(10)
        line = 'requests_total{method="POST",route="/v1/answers",status="499"} 1.0'
        assert any(line in client.get("/metrics").text for _ in range(200))


def test_a_model_that_writes_half_a_character_is_passed_on(settings: Settings) -> None:
    text = "The egg is held by soft fingers [1] \ud83d."
    with ask_with(settings, ScriptedModel([text])) as client:
        events = stream(client)
        answer = client.post("/v1/answers", json={"question": QUESTION}).json()
    assert events[-1][0] == "done"
    assert "soft fingers" in answer["text"]
