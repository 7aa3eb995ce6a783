"""Tests of the chat model: OpenAI's real client against a local server that streams or fails."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from threading import Event

import pytest

from rag_pipeline.adapters.chat_model import (
    DEFAULT_BASE_URL,
    DEFAULT_MODEL,
    OpenAIChatModel,
    OpenAIChatStream,
    name_limit,
)
from rag_pipeline.adapters.connect import connect_chat_model
from rag_pipeline.core.errors import (
    AnswerError,
    AnswerServiceError,
    AnswerTimeoutError,
    ConfigurationError,
    RagPipelineError,
)
from rag_pipeline.core.protocols import ChatMessage
from rag_pipeline.core.settings import Settings
from rag_pipeline_tests.adapters.embedders.test_openai import KEY
from rag_pipeline_tests.loopback import (
    ENDLESS,
    RESET,
    LoopbackServer,
    Received,
    Reply,
    serve,
)

FAR = "Wed, 21 Oct 99999999999 07:28:00 GMT"
CLOSING = {"Content-Type": "text/event-stream", "Connection": "close"}
MESSAGES = [ChatMessage("system", "Be short."), ChatMessage("user", "Why?")]


def stream_reply(*pieces: str, finish: str | None = "stop", fault: str | None = None) -> Reply:
    """Build a streamed answer of server-sent events, as chat services send it."""
    choices = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    if finish:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [
        {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [c]}
        for c in choices
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    end = "" if fault or finish is None else "data: [DONE]\n\n"
    headers = {"Content-Type": "text/event-stream"}
    return Reply(body=(body + end).encode(), headers=headers, fault=fault)  # type: ignore[arg-type]  # one of the fault names


def make_model(
    server: LoopbackServer | str,
    timeout_s: float = 5.0,
    waits: list[float] | None = None,
) -> OpenAIChatModel:
    url = server if isinstance(server, str) else server.url

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    return OpenAIChatModel(
        model="m",
        api_key=KEY,
        base_url=f"{url}/v1",
        timeout_s=timeout_s,
        max_tokens=100,
        sleep=sleep,
    )


def read(model: OpenAIChatModel) -> tuple[str, bool]:
    """Read a whole answer, and return its text and if it is complete."""

    async def collect() -> tuple[str, bool]:
        async with aclosing(model.stream(MESSAGES)) as stream:
            return "".join([piece async for piece in stream]), stream.complete

    return asyncio.run(collect())


def test_pieces_arrive_in_order_and_the_request_has_model_limit_and_messages() -> None:
    with serve([stream_reply("Because ", "it ", "does.")]) as server:
        assert read(make_model(server)) == ("Because it does.", True)
    request = server.received[0]
    assert request.path == "/v1/chat/completions"
    assert request.body["model"] == "m"
    assert request.body["stream"] is True
    assert request.body["max_tokens"] == 100
    assert request.body["messages"][1] == {"role": "user", "content": "Why?"}
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("", "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://EU.api.OpenAI.com/v1", "max_completion_tokens"),
        ("https://notopenai.com/v1", "max_tokens"),
        ("https://openai.com.example/v1", "max_tokens"),
        ("https://mine.openai.azure.com/openai/v1", "max_tokens"),
        ("http://127.0.0.1:8000/v1", "max_tokens"),
    ],
)
def test_the_token_limit_has_the_name_that_the_service_accepts(address: str, name: str) -> None:
    assert name_limit(address or DEFAULT_BASE_URL) == name


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["A \ud83d", "\ude00."], "A \U0001f600."),
        (["A \ud83d", "", "\ude00."], "A \U0001f600."),
        (["A \ud83d", " b \ude00."], "A \ufffd b \ufffd."),
        (["A \ud83d"], "A \ufffd"),
        (["A \U0001f600 \u2192"], "A \U0001f600 \u2192"),
    ],
)
def test_split_surrogate_pairs_are_joined_and_lone_halves_are_replaced(
    pieces: list[str], shown: str
) -> None:
    with serve([stream_reply(*pieces)]) as server:
        assert read(make_model(server)) == (shown, True)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_cut_by_a_limit_or_a_filter_is_incomplete(finish: str) -> None:
    with serve([stream_reply("Becau", finish=finish)]) as server:
        assert read(make_model(server)) == ("Becau", False)


def test_an_answer_of_a_server_that_ignores_the_limit_is_cut_off() -> None:
    with serve([stream_reply(*["word " * 10_000] * 40)]) as server:
        text, is_complete = read(make_model(server))
    assert len(text) < 100_000
    assert not is_complete


def test_nothing_is_sent_before_the_first_piece_is_asked_for() -> None:
    with serve([stream_reply("x")]) as server:
        asyncio.run(make_model(server).stream(MESSAGES).aclose())
        assert server.received == []


@pytest.mark.parametrize(
    ("reply", "error", "tries"),
    [
        (Reply(401, fault="cut"), AnswerServiceError, 3),
        (Reply(304, fault="cut"), AnswerError, 1),
        (Reply(429, headers={"Retry-After": FAR}), AnswerServiceError, 3),
        (Reply(400, {"error": {"message": "bad"}}), AnswerError, 1),
        (Reply(404, {"error": {"message": "no such model"}}), ConfigurationError, 1),
        (
            Reply(429, {"error": {"message": "pay", "code": "insufficient_quota"}}),
            ConfigurationError,
            1,
        ),
        (Reply(body=b'data: {"choices": [{"delta": {"content": 7}}]}\n\n'), AnswerError, 1),
        (
            Reply(body=b'data: {"choices": [{"finish_reason": [1]}]}\n\n'),
            AnswerError,
            1,
        ),
        (Reply(body=b"data: " + b"[" * 100_000 + b"\n\n"), AnswerError, 1),
        (Reply(body=b"<html>hello</html>"), AnswerError, 1),
        (Reply(body=b"data: {broken\n\n"), AnswerError, 1),
        (Reply(body=b'data: {"choices": [{"delta": 7}]}\n\n'), AnswerError, 1),
        (Reply(body=b'data: {"error": {"message": "overloaded"}}\n\n'), AnswerServiceError, 1),
    ],
)
def test_each_failure_raises_its_error_without_showing_the_key(
    reply: Reply, error: type[RagPipelineError], tries: int
) -> None:
    with serve([reply]) as server, pytest.raises(error) as caught:
        read(make_model(server))
    assert len(server.received) == tries
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_stream_raises_an_error_after_the_received_pieces() -> None:
    async def collect(model: OpenAIChatModel) -> None:
        stream = model.stream(MESSAGES)
        assert await anext(stream) == "Half an "
        with pytest.raises(AnswerServiceError):
            await anext(stream)

    with serve([stream_reply("Half an ", finish=None, fault="cut")]) as server:
        asyncio.run(collect(make_model(server)))


def test_a_text_that_breaks_off_without_a_reason_is_incomplete() -> None:
    with serve([stream_reply("Half an ", finish=None)]) as server:
        assert read(make_model(server)) == ("Half an ", False)


def test_lone_surrogates_are_sent_as_question_marks() -> None:
    async def ask(model: OpenAIChatModel) -> None:
        async with aclosing(model.stream([ChatMessage("user", "Why \ud800?")])) as stream:
            assert await anext(stream) == "Fine."

    with serve([stream_reply("Fine.")]) as server:
        asyncio.run(ask(make_model(server)))
    assert server.received[0].body["messages"][0]["content"] == "Why ??"


@pytest.mark.parametrize(
    "reply",
    [
        *ENDLESS,
        stream_reply("Wait ", finish=None, fault="stall"),
        stream_reply("Wait ", finish=None, fault="murmur"),
        Reply(body=b"", headers=CLOSING, fault="stall"),
        Reply(body=b"", headers=CLOSING, fault="murmur"),
        Reply(401, fault="stall"),
        Reply(500, fault="murmur"),
    ],
)
def test_a_request_to_a_silent_service_times_out(reply: Reply) -> None:
    pattern = r"0\.3 s.*ANSWER_TIMEOUT_S"
    with serve([reply]) as server, pytest.raises(AnswerTimeoutError, match=pattern):
        read(make_model(server, timeout_s=0.3))


@pytest.mark.parametrize(
    ("reply", "timeout_s"),
    [(Reply(429, headers={"Retry-After": "60"}), 1.5), (Reply(500), 0.4), (RESET, 0.4)],
)
def test_the_failure_is_raised_if_the_next_wait_would_exceed_the_time_limit(
    reply: Reply, timeout_s: float
) -> None:
    waits: list[float] = []
    with serve([reply]) as server, pytest.raises(AnswerServiceError):
        read(make_model(server, timeout_s, waits))
    assert (len(server.received), waits) == (1, [])


@pytest.mark.parametrize(
    "reply", [Reply(fault="hints"), stream_reply("First", finish=None, fault="murmur")]
)
def test_another_task_can_close_the_stream(reply: Reply) -> None:
    asked = Event()

    def answer(_: Received) -> Reply:
        asked.set()
        return reply

    async def ask(model: OpenAIChatModel) -> None:
        stream = model.stream(MESSAGES)
        reader = asyncio.ensure_future(_collect(stream))
        assert await asyncio.to_thread(asked.wait, 5)
        await stream.aclose()
        await stream.aclose()
        assert set(await reader) <= {"First"}
        assert await anext(stream, "end") == "end"

    with serve(answer) as server:
        asyncio.run(ask(make_model(server, 60)))
        assert server.hung_up.wait(5)


async def _collect(stream: OpenAIChatStream) -> list[str]:
    return [piece async for piece in stream]


@pytest.mark.parametrize(
    ("base_url", "address", "header"),
    [
        ("", "https://api.openai.com/v1/chat/completions", "Authorization"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions", "Authorization"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions", "Authorization"),
        (
            "https://a.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
            "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            "api-key",
        ),
        (
            "https://a.openai.azure.com/openai/v1",
            "https://a.openai.azure.com/openai/v1/chat/completions",
            "api-key",
        ),
    ],
)
def test_the_address_and_the_header_of_the_key_fit_the_service(
    base_url: str, address: str, header: str
) -> None:
    model = OpenAIChatModel(model="m", api_key=KEY, base_url=base_url, timeout_s=1, max_tokens=9)
    assert model.url == address
    assert KEY in model.headers[header]


def make_settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type, call-arg]  # pydantic checks them


def test_the_settings_decide_if_there_is_a_chat_model() -> None:
    assert connect_chat_model(make_settings()) is None
    assert connect_chat_model(make_settings(answer_model="m")) is None
    keyed = connect_chat_model(make_settings(openai_api_key=KEY))
    assert keyed is not None
    assert keyed.name == DEFAULT_MODEL
    local = connect_chat_model(make_settings(answer_model="m", openai_base_url="http://x/v1"))
    assert local is not None
    assert local.name == "m"
