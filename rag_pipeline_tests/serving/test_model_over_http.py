"""The service over HTTP, with a model on 127.0.0.1 that is slow, silent, broken or declines."""

from __future__ import annotations

import asyncio
import json
import socket
from threading import Barrier
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rag_pipeline.answering import assistant
from rag_pipeline.answering.writing.declining import DECLINED
from rag_pipeline_tests.adapters.test_chat_model import CLOSING, KEY, make_model, stream_reply
from rag_pipeline_tests.loopback import ENDLESS, LoopbackServer, Received, Reply, serve
from rag_pipeline_tests.serving.event_decoder import EventDecoder
from rag_pipeline_tests.serving.running_service import index_book, run_service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.settings import Settings

    Event = tuple[str, dict[str, Any]]

BODY = {"question": "How does a soft gripper hold an egg?"}
STREAMED = {"Accept": "text/event-stream"}
AT_ONCE = {"Retry-After": "0"}
WAIT_S = 30.0
TEXT = (
    "A gripper with soft fingers |closes around an egg [1]. |The compliance of the rubber does the "
    "force regulation [1]."
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the small book, which is indexed, and of a service without rate limits."""
    folder = tmp_path_factory.mktemp("book")
    return index_book(folder, serve_client_rate="", serve_total_rate="", serve_client_answers=64)


def stream(settings: Settings, server: LoopbackServer, timeout_s: float = WAIT_S) -> list[Event]:
    """Return the events of one answer that the model writes."""
    with run_service(settings, make_model(server, timeout_s)) as url:
        response = httpx.post(f"{url}/v1/answers", json=BODY, headers=STREAMED, timeout=WAIT_S)
    assert response.status_code == 200
    return list(EventDecoder().feed(response.content))


def read_text(events: Sequence[Event]) -> str:
    """Return the text of the `delta` events."""
    return "".join(data["text"] for name, data in events if name == "delta")


def test_a_written_answer_arrives_in_pieces_and_is_done_once(settings: Settings) -> None:
    with (
        serve([stream_reply(*TEXT.split("|"))]) as server,
        run_service(settings, make_model(server, WAIT_S)) as url,
    ):
        streamed = httpx.post(f"{url}/v1/answers", json=BODY, headers=STREAMED, timeout=WAIT_S)
        whole = httpx.post(f"{url}/v1/answers", json=BODY, timeout=WAIT_S).json()
    events = list(EventDecoder().feed(streamed.content))
    names = [name for name, _ in events]
    assert names[:2] == ["start", "sources"]
    assert names[2:-1] == ["delta"] * (len(names) - 3)
    assert len(names) == 5
    name, done = events[-1]
    assert (name, done["kind"], done["complete"]) == ("done", "generated", True)
    assert read_text(events) == done["text"] == TEXT.replace("|", "")
    assert events[0][1]["model"] == done["model"] == "m"
    told = done.keys() - {"answer_id", "timings_ms"}
    assert {key: done[key] for key in told} == {key: whole[key] for key in told}
    assert events[1][1] == {key: whole[key] for key in ("confidence", "sources")}


FAILURES = [
    Reply(401, {"error": {"message": f"wrong key {KEY}"}}),
    Reply(500, headers=AT_ONCE),
    Reply(body=b"data: {broken\n\n"),
    stream_reply(),
    stream_reply("Half a", finish=None, fault="cut"),
]
"""One failure of each kind of error. The tests of the chat model have the others."""


@pytest.mark.parametrize("reply", FAILURES)
def test_the_book_is_quoted_if_the_model_fails(settings: Settings, reply: Reply) -> None:
    with serve([reply]) as server, run_service(settings, make_model(server, 1.0)) as url:
        whole = httpx.post(f"{url}/v1/answers", json=BODY, timeout=WAIT_S)
        streamed = httpx.post(f"{url}/v1/answers", json=BODY, headers=STREAMED, timeout=WAIT_S)
        metrics = httpx.get(f"{url}/metrics").text
    content = whole.json()
    assert (whole.status_code, content["kind"], content["model"]) == (200, "extracted", None)
    assert content["passages"]
    assert content["notices"][-1]["code"] == "model_unavailable"
    events = list(EventDecoder().feed(streamed.content))
    assert [name for name, _ in events] == ["start", "sources", "delta", "done"]
    assert read_text(events) == events[-1][1]["text"] == content["text"]
    assert KEY not in whole.text + streamed.text
    assert server.url not in whole.text + streamed.text
    code = content["notices"][-1]["data"]["error"]
    assert f'robotutor_model_failures_total{{code="{code}"}} 2.0' in metrics
    assert 'robotutor_answer_notices_total{code="model_unavailable"} 2.0' in metrics


@pytest.mark.parametrize(
    "reply",
    [
        ENDLESS[0],
        Reply(body=b"", headers=CLOSING, fault="stall"),
        stream_reply("Chocolate [1]. ", "an ", finish=None, fault="stall"),
        stream_reply("Chocolate [1]. ", "an ", finish=None, fault="murmur"),
    ],
)
def test_the_book_is_quoted_if_the_model_is_slow_or_silent(
    settings: Settings, reply: Reply
) -> None:
    with serve([reply]) as server:
        events = stream(settings, server, timeout_s=0.3)
    assert [name for name, _ in events if name in {"done", "error"}] == ["done"]
    assert events[-1][1]["notices"][-1]["data"] == {"error": "ANSWER_TIMEOUT"}


def test_text_that_was_shown_stays_when_the_model_breaks_off(settings: Settings) -> None:
    first = TEXT.split("|", maxsplit=1)[0] + TEXT.split("|")[1]
    with serve([stream_reply(first, "And", finish=None, fault="cut")]) as server:
        events = stream(settings, server)
    done = events[-1][1]
    assert (done["kind"], done["complete"]) == ("generated", False)
    assert done["text"].startswith(first.strip())
    assert done["passages"]
    assert read_text(events) == done["text"]


@pytest.mark.parametrize(
    "pieces", [(DECLINED,), (DECLINED[:9], DECLINED[9:]), tuple(DECLINED), (DECLINED, " [1]")]
)
def test_a_model_that_declines_does_not_overrule_the_book(
    settings: Settings, pieces: tuple[str, ...]
) -> None:
    with serve([stream_reply(*pieces)]) as server:
        events = stream(settings, server)
    assert [name for name, _ in events] == ["start", "sources", "delta", "done"]
    done = events[-1][1]
    assert (done["kind"], done["notices"][-1]["code"]) == ("extracted", "model_declined")
    assert DECLINED not in str(events)


def test_a_disconnect_closes_the_request_to_the_model(settings: Settings) -> None:
    reply = stream_reply(
        "Soft fingers close around an egg [1]. ", "close", finish=None, fault="stall"
    )
    with serve([reply]) as server, run_service(settings, make_model(server, 60)) as url:
        asked = httpx.stream("POST", f"{url}/v1/answers", json=BODY, headers=STREAMED)
        with asked as response:
            decoder = EventDecoder()
            events = (event for data in response.iter_raw() for event in decoder.feed(data))
            assert any(name == "delta" for name, _ in events)
        assert server.hung_up.wait(WAIT_S)
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}


FOLLOW_UP = {
    "question": "And why does it need no sensor?",
    "history": [{"question": "What does a soft gripper do?", "answer": "It holds an egg."}],
}
CHAT = {"messages": [{"role": "user", "content": BODY["question"]}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/answers", FOLLOW_UP),
        ("/v1/answers", BODY),
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", CHAT | {"stream": True}),
    ],
)
def test_a_client_that_gives_up_ends_the_request_to_the_model(
    settings: Settings, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assistant, "REWORDING_S", 10 * WAIT_S)  # only the disconnect ends a request
    asked = Flag()

    def reply(_: Received) -> Reply:
        asked.set()
        return stream_reply("Soft", finish=None, fault="stall")

    model_s = 10 * WAIT_S
    with serve(reply) as server, run_service(settings, make_model(server, model_s)) as url:
        host, port = url.removeprefix("http://").split(":")
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((host, int(port))) as connection:
            length = f"Content-Length: {len(content)}\r\n\r\n"
            connection.sendall((head + length).encode() + content)
            assert asked.wait(WAIT_S)
        assert server.hung_up.wait(WAIT_S)
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        assert len(server.received) == 1


def test_fifty_slow_streams_at_once_are_all_done(settings: Settings) -> None:
    together = Barrier(50)

    def reply(_: Received) -> Reply:
        together.wait(WAIT_S)  # no model answers before all are asked
        return stream_reply("Soft fingers ", "close around it [1].")

    async def ask(url: str) -> list[list[Event]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=WAIT_S) as client:
            asked = [
                client.post(f"{url}/v1/answers", json=BODY, headers=STREAMED) for _ in range(50)
            ]
            responses = await asyncio.gather(*asked)
        return [list(EventDecoder().feed(response.content)) for response in responses]

    with serve(reply) as server:
        with run_service(settings, make_model(server, WAIT_S)) as url:
            answers = asyncio.run(ask(url))
        assert server.most_in_flight == 50
    for events in answers:
        assert [name for name, _ in events if name in {"done", "error"}] == ["done"]
        assert read_text(events) == "Soft fingers close around it [1]."
