"""Answers that a model writes, over real sockets: declines, faults and disconnects."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rag_pipeline.answering.writing.declining import DECLINED
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.serving.api import answers
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import ScriptedModel, ScriptedStream
from rag_pipeline_tests.loopback import Reply, serve
from rag_pipeline_tests.serving.event_decoder import EventDecoder
from rag_pipeline_tests.serving.running_service import index_book, run_service

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


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the small book, which is indexed."""
    return index_book(tmp_path_factory.mktemp("book"), store_idle_s=30.0)


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


def test_an_answer_arrives_in_pieces_that_make_up_its_text(settings: Settings) -> None:
    pieces = ["Soft fingers close ", "around an egg [1]."]
    with ask_with(settings, ScriptedModel(pieces)) as client:
        events = stream(client)
        answer = client.post("/v1/answers", json={"question": QUESTION}).json()
    assert "".join(data["text"] for name, data in events if name == "delta") == "".join(pieces)
    done = events[-1][1]
    assert done["kind"] == "generated"
    assert done["model"] == "scripted"
    for key in done.keys() - {"answer_id", "timings_ms"}:
        assert done[key] == answer[key]
    for key in ("confidence", "sources"):
        assert events[1][1][key] == answer[key]


@pytest.mark.parametrize("pieces", [[DECLINED], list(DECLINED), [DECLINED, " [1]"]])
def test_a_model_that_declines_gives_quotes_and_never_its_own_words(
    settings: Settings, pieces: list[str]
) -> None:
    with ask_with(settings, ScriptedModel(pieces)) as client:
        events = stream(client)
    assert [name for name, _ in events] == ["start", "sources", "delta", "done"]
    assert events[-1][1]["kind"] == "extracted"
    assert DECLINED not in str(events)


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


def make_stalled() -> Reply:
    """Return a model's answer that stops after its first words."""
    return stream_reply("The soft fingers close around an egg. ", finish=None, fault="stall")


def test_a_disconnect_ends_the_request_to_the_model(settings: Settings) -> None:
    with serve([make_stalled()]) as server, ask_with(settings, make_model(server, 30)) as client:
        body = {"question": QUESTION}
        with client.stream("POST", "/v1/answers", json=body, headers=SSE) as response:
            decoder = EventDecoder()
            for piece in response.iter_bytes():
                if any(name == "delta" for name, _ in decoder.feed(piece)):
                    break
        assert server.hung_up.wait(10)


def test_a_disconnect_before_a_whole_answer_ends_the_request_too(settings: Settings) -> None:
    with serve([make_stalled()]) as server, ask_with(settings, make_model(server, 30)) as client:
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
