"""Answers that a model writes, over real sockets: declines, faults and disconnects."""

from __future__ import annotations

import json
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rag_pipeline.answering.prompts import DECLINED
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.serving.api import answers
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import ScriptedModel
from rag_pipeline_tests.loopback import Reply, serve
from rag_pipeline_tests.serving.event_decoder import EventDecoder
from rag_pipeline_tests.serving.running_service import index_book, run_service

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.core.settings import Settings

QUESTION = "How does a soft gripper hold an egg?"
SSE = {"Accept": "text/event-stream"}


class RaisingModel:
    """A `ChatModel` that writes some pieces and then raises an error."""

    name = "raising"

    def __init__(self, error: Exception, pieces: Sequence[str] = ()) -> None:
        self._error = error
        self._pieces = pieces

    def stream(self, messages: object) -> Generator[str, None, bool]:
        """Yield the pieces and raise the error."""
        del messages
        yield from self._pieces
        raise self._error


class WaitingModel:
    """A `ChatModel` that waits before its answer until a test lets it write."""

    name = "waiting"

    def __init__(self) -> None:
        self.gate = Event()

    def stream(self, messages: object) -> Generator[str, None, bool]:
        """Wait, and yield one piece."""
        del messages
        assert self.gate.wait(30)
        yield "The soft fingers close around the egg [1]."
        return True


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
    pieces = ["Soft fingers close ", "around the egg [1]."]
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
def test_a_model_that_declines_is_a_refusal_and_never_text(
    settings: Settings, pieces: list[str]
) -> None:
    with ask_with(settings, ScriptedModel(pieces)) as client:
        events = stream(client)
    assert [name for name, _ in events] == ["start", "sources", "refusal", "done"]
    assert events[2][1]["reason"] == "model_declined"
    assert events[3][1]["kind"] == "refused"


def test_a_model_that_breaks_off_ends_the_stream_with_an_error(settings: Settings) -> None:
    error = AnswerServiceError("the model broke off. Ask again")
    with ask_with(settings, RaisingModel(error, ["Soft fingers "])) as client:
        events = stream(client)
        response = client.post("/v1/answers", json={"question": QUESTION})
    assert [name for name, _ in events] == ["start", "sources", "delta", "error"]
    assert events[-1][1] == {
        "code": "ANSWER_SERVICE_UNAVAILABLE",
        "message": "the model broke off. Ask again",
        "transient": True,
        "retry_after_s": 1.0,
    }
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["code"] == "ANSWER_SERVICE_UNAVAILABLE"


def test_an_unexpected_error_tells_nothing_about_the_machine(settings: Settings) -> None:
    model = RaisingModel(ZeroDivisionError("/srv/secret"))
    with ask_with(settings, model) as client:
        failure = stream(client)[-1]
        response = client.post("/v1/answers", json={"question": QUESTION})
    assert failure[0] == "error"
    assert failure[1]["code"] == "INTERNAL_ERROR"
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "INTERNAL_ERROR"
    assert "secret" not in response.text + str(failure)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_an_unexpected_error_is_one_line_in_the_log_without_the_question(
    settings: Settings,
    accept: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    origin = "https://book.example.org"
    allowing = settings.model_copy(update={"serve_origins": origin})
    model = RaisingModel(ZeroDivisionError(QUESTION))
    with ask_with(allowing, model) as client:
        headers = {"Origin": origin, "Accept": accept}
        response = client.post("/v1/answers", json={"question": QUESTION}, headers=headers)
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"]
    lines = [one.getMessage() for one in caplog.records if "failures" in one.name]
    assert len(lines) == 1
    assert json.loads(lines[0])["error"][0] == "ZeroDivisionError"
    assert QUESTION not in lines[0]
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err + caplog.text


def test_a_silent_stream_is_kept_alive_by_comments(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "KEEP_ALIVE_S", 0.01)
    model, received = WaitingModel(), b""
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
    return stream_reply("The soft fingers close ", finish=None, fault="stall")


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
