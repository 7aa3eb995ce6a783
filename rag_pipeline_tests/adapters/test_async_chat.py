"""Tests of asynchronous answers: OpenAI's real client against a local server that may fail."""

from __future__ import annotations

import asyncio
import threading
from threading import Event
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import (
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
    ConfigurationError,
    RagPipelineError,
)
from rag_pipeline.core.protocols.chat import AsyncChatModel, ChatMessage
from rag_pipeline_tests.adapters.test_chat_model import (
    CLOSING,
    KEY,
    MESSAGES,
    make_model,
    stream_reply,
)
from rag_pipeline_tests.loopback import (
    ENDLESS,
    FLOOD,
    HANG,
    RESET,
    LoopbackServer,
    Received,
    Reply,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine


def run_in(loop: str, action: Coroutine[object, object, None]) -> None:
    """Run a coroutine in an event loop of `asyncio` or of `uvloop`, which services use."""
    module = asyncio if loop == "asyncio" else pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=module.new_event_loop) as runner:
        runner.run(action)


def read(server: LoopbackServer, timeout_s: float = 5.0) -> tuple[str, bool]:
    """Read a whole answer, and return its text and if it is complete."""

    async def run() -> tuple[str, bool]:
        stream = make_model(server, timeout_s).astream(MESSAGES)
        text = "".join([piece async for piece in stream])
        return text, stream.complete

    return asyncio.run(run())


def test_the_model_is_an_asynchronous_chat_model() -> None:
    assert isinstance(make_model("http://127.0.0.1:1"), AsyncChatModel)


def test_pieces_arrive_in_order_and_the_request_has_model_limit_and_messages() -> None:
    with serve([stream_reply("Because ", "it ", "does.")]) as server:
        assert read(server) == ("Because it does.", True)
    request = server.received[0]
    assert (request.path, request.body["model"]) == ("/v1/chat/completions", "m")
    assert (request.body["stream"], request.body["max_tokens"]) == (True, 100)
    assert request.body["messages"][1] == {"role": "user", "content": "Why?"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["A \ud83d", "", "\ude00."], "A \U0001f600."),
        (["A \ud83d", " b \ude00."], "A \ufffd b \ufffd."),
        (["A \ud83d"], "A \ufffd"),
    ],
)
def test_split_surrogate_pairs_are_joined(pieces: list[str], shown: str) -> None:
    with serve([stream_reply(*pieces)]) as server:
        assert read(server) == (shown, True)


def test_lone_surrogates_are_sent_as_question_marks() -> None:
    async def ask(server: LoopbackServer) -> None:
        stream = make_model(server).astream([ChatMessage("user", "Why \ud800?")])
        assert await anext(stream) == "Fine."
        await stream.aclose()

    with serve([stream_reply("Fine.")]) as server:
        asyncio.run(ask(server))
    assert server.received[0].body["messages"][0]["content"] == "Why ??"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_cut_by_a_limit_or_a_filter_is_incomplete(finish: str) -> None:
    with serve([stream_reply("Becau", finish=finish)]) as server:
        assert read(server) == ("Becau", False)


def test_an_answer_of_a_server_that_ignores_the_limit_is_cut_off() -> None:
    with serve([stream_reply(*["word " * 10_000] * 40)]) as server:
        text, is_complete = read(server)
    assert len(text) < 100_000
    assert not is_complete


@pytest.mark.parametrize(
    "first", [Reply(429, headers={"Retry-After": "0"}), Reply(503, headers={"Retry-After": "0"})]
)
def test_a_transient_failure_before_the_first_piece_is_retried(first: Reply) -> None:
    with serve([first, stream_reply("Fine.")]) as server:
        assert read(server)[0] == "Fine."
        assert len(server.received) == 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(429, headers={"Retry-After": "0"}), AnswerServiceError),
        (Reply(500, headers={"Retry-After": "0"}), AnswerServiceError),
        (Reply(304, fault="cut"), AnswerError),
        (Reply(400, {"error": {"message": "bad"}}), AnswerError),
        (Reply(401, {"error": {"message": f"wrong key {KEY}"}}), ConfigurationError),
        (Reply(404, {"error": {"message": "no such model"}}), ConfigurationError),
        (
            Reply(429, {"error": {"message": "pay", "code": "insufficient_quota"}}),
            ConfigurationError,
        ),
        (Reply(body=b'data: {"choices": [{"delta": {"content": 7}}]}\n\n'), AnswerError),
        (Reply(body=b"data: " + b"[" * 100_000 + b"\n\n"), AnswerError),
        (Reply(body=b"<html>hello</html>"), AnswerError),
        (Reply(body=b"data: {broken\n\n"), AnswerError),
        (Reply(body=b'data: {"error": {"message": "overloaded"}}\n\n'), AnswerServiceError),
        (stream_reply("Half an ", finish=None), AnswerServiceError),
        (stream_reply("Half an ", finish=None, fault="cut"), AnswerServiceError),
    ],
)
def test_each_failure_raises_its_error_without_showing_the_key(
    reply: Reply, error: type[RagPipelineError]
) -> None:
    with serve([reply]) as server, pytest.raises(error) as caught:
        read(server)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reply", [RESET, Reply(500, fault="cut"), FLOOD])
def test_a_broken_connection_is_an_error(reply: Reply) -> None:
    with serve([reply]) as server, pytest.raises(AnswerServiceError, match=r"OPENAI_BASE_URL|HTTP"):
        read(server, 0.4)  # the wait before a retry would exceed the time limit
    assert server.flooded_bytes < 30_000_000


@pytest.mark.parametrize(
    "reply",
    [
        *ENDLESS,
        stream_reply("Wait ", finish=None, fault="stall"),
        stream_reply("Wait ", finish=None, fault="murmur"),
        Reply(body=b"", headers=CLOSING, fault="stall"),
        Reply(401, fault="stall"),
    ],
)
def test_a_request_to_a_silent_service_times_out(reply: Reply) -> None:
    pattern = r"0\.3 s.*ANSWER_TIMEOUT_S"
    with serve([reply]) as server, pytest.raises(AnswerTimeoutError, match=pattern):
        read(server, 0.3)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("way", ["close", "cancel", "close in another task"])
def test_a_request_that_nobody_waits_for_is_freed(way: str, loop: str) -> None:
    async def ask(server: LoopbackServer) -> None:
        stream = make_model(server, 60).astream(MESSAGES)
        assert await anext(stream) == "First"
        if way == "close":
            await stream.aclose()
            assert [piece async for piece in stream] == []
        else:
            reader = asyncio.ensure_future(anext(stream, "end"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if way == "cancel":
                reader.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reader
            else:
                await stream.aclose()
                assert await reader == "end"
        assert await asyncio.to_thread(server.hung_up.wait, 5)
        await stream.aclose()

    with serve([stream_reply("First", finish=None, fault="stall")]) as server:
        run_in(loop, ask(server))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_stream_can_be_closed_twice_after_its_end(loop: str) -> None:
    async def ask(server: LoopbackServer) -> None:
        stream = make_model(server).astream(MESSAGES)
        assert [piece async for piece in stream] == ["Fine."]
        await stream.aclose()
        await stream.aclose()

    with serve([stream_reply("Fine.")]) as server:
        run_in(loop, ask(server))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_stream_that_is_closed_while_it_connects_ends(loop: str) -> None:
    async def ask(server: LoopbackServer) -> None:
        stream = make_model(server, 60).astream(MESSAGES)
        reader = asyncio.ensure_future(anext(stream, "end"))
        await asyncio.sleep(0)
        await stream.aclose()
        assert await reader == "end"

    with serve([HANG]) as server:
        run_in(loop, ask(server))


def test_a_stream_can_be_cancelled_before_the_response_begins() -> None:
    asked = Event()

    def answer(_: Received) -> Reply:
        asked.set()
        return HANG

    async def ask(server: LoopbackServer) -> None:
        reader = asyncio.ensure_future(anext(make_model(server, 60).astream(MESSAGES)))
        assert await asyncio.to_thread(asked.wait, 5)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    with serve(answer) as server:
        asyncio.run(ask(server))


def test_nothing_is_sent_before_the_first_piece_is_asked_for() -> None:
    with serve([stream_reply("x")]) as server:
        asyncio.run(make_model(server).astream(MESSAGES).aclose())
        assert server.received == []


def test_fifty_streams_need_no_threads() -> None:
    async def ask(server: LoopbackServer) -> int:
        model = make_model(server, 60)
        streams = [model.astream(MESSAGES) for _ in range(50)]
        before = threading.active_count()  # the threads of the server begin with the requests
        firsts = await asyncio.gather(*(anext(stream) for stream in streams))
        assert firsts == ["First"] * 50
        ours = threading.active_count() - before - server.most_in_flight
        await asyncio.gather(*(stream.aclose() for stream in streams))
        return ours

    with serve([stream_reply("First", finish=None, fault="stall")]) as server:
        assert asyncio.run(ask(server)) <= 8  # a few threads of the event loop look up host names
