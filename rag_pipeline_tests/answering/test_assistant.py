"""Tests of the assistant: one retriever and model for many answers, with and without threads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import AnswerKind, Assistant, Turn, Voice, preparing
from rag_pipeline.answering.assistant import THREADS
from rag_pipeline.answering.streams import AsyncAnswerStream
from rag_pipeline.core.errors import (
    AnswerError,
    AnswerServiceError,
    QueryEmptyError,
    StoreTimeoutError,
)
from rag_pipeline.retrieval.limits import Protection, ServiceLimits
from rag_pipeline.retrieval.queries import Query
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import (
    FixedRetriever,
    ScriptedModel,
    WaitingModel,
    make_chunk,
)
from rag_pipeline_tests.loopback import Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.protocols import ChatModel
    from rag_pipeline.retrieval.logs import Operation
    from rag_pipeline.retrieval.models import RetrievalResult

QUESTION = "How does a walking robot keep its balance with the capture point?"
QUERY = Query(QUESTION)
PLACED = "It places its foot on the capture point [1]."
FIRST = "The robot places its foot on the capture point [1]."
SECOND = "Ankle torque corrects small errors [1]."


@dataclass(slots=True)
class ClosableRetriever(FixedRetriever):
    """A retriever with fixed passages whose searches can be made to wait."""

    gate: Event | None = None
    closed: bool = False

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the fixed passages when the gate, if there is one, is open."""
        if self.gate is not None:
            self.gate.wait(30)
        return FixedRetriever.retrieve(self, query)

    def close(self) -> None:
        """Remember the call."""
        self.closed = True


@dataclass(slots=True)
class Observed:
    """The operations that a protection reported."""

    seen: list[tuple[str, str, str]] = field(default_factory=list)

    def __call__(self, operation: Operation, error: Exception | None) -> None:
        self.seen.append((operation.name, operation.status, type(error).__name__))


def make_assistant(model: ChatModel | None, **parts: object) -> Assistant:
    return Assistant(ClosableRetriever((make_chunk(),), **parts), model)  # type: ignore[arg-type]  # a retriever by its shape


def test_a_prepared_answer_can_be_written_twice_in_both_ways() -> None:
    model = ScriptedModel(["It places its foot on the capture ", "point [1]."])
    with make_assistant(model) as assistant:
        prepared = assistant.prepare(QUERY)
        assert model.told == []
        first, second = (assistant.write(prepared).answer for _ in range(2))
        third = asyncio.run(write_later(assistant, prepared))
    assert first == second == third
    assert (first.kind, first.text) == (
        AnswerKind.GENERATED,
        "It places its foot on the capture point [1].",
    )
    assert first.question == QUESTION
    assert len(assistant.retriever.asked) == 1  # type: ignore[attr-defined]  # a fixed retriever


async def write_later(assistant: Assistant, prepared: preparing.PreparedAnswer) -> object:
    async with await assistant.awrite(prepared) as stream:
        pieces = [piece async for piece in stream]
        given = await stream.answer()
    assert "".join(pieces) == given.text
    assert stream.prepared is prepared
    return given


@pytest.mark.parametrize("question", [QUESTION, "Hello", "Which glue holds wooden chairs?"])
@pytest.mark.parametrize("model", [ScriptedModel([FIRST]), None])
def test_answers_with_and_without_threads_are_equal(
    question: str, model: ScriptedModel | None
) -> None:
    with make_assistant(model) as assistant:
        given = assistant.answer(Query(question))
        assert asyncio.run(assistant.aanswer(Query(question))) == given


def test_what_a_follow_up_searches_is_part_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "complete_question", lambda q, turns: f"{turns[0].question} {q}")
    with make_assistant(None) as assistant:
        prepared = assistant.prepare(Query("Why is that?"), history=[Turn(QUESTION)])
    assert prepared.search_question == f"{QUESTION} Why is that?"
    assert prepared.result.search_question == prepared.search_question
    assert prepared.turns == (Turn(QUESTION),)
    assert assistant.retriever.asked[0].question == prepared.search_question  # type: ignore[attr-defined]  # a fixed retriever


def test_an_observer_sees_each_operation_once() -> None:
    observed = Observed()
    protection = Protection(observe=observed)
    with make_assistant(ScriptedModel([f"{FIRST} ", SECOND]), protection=protection) as one:
        one.answer(QUERY)
        asyncio.run(one.aanswer(QUERY))
        with pytest.raises(QueryEmptyError):
            one.answer(Query(" "))
        with one.stream(QUERY) as stream:
            next(stream)
    assert observed.seen == [
        ("answer", "success", "NoneType"),
        ("answer", "success", "NoneType"),
        ("answer", "error", "QueryEmptyError"),
        ("answer", "aborted", "NoneType"),
    ]


def test_the_wait_for_a_thread_counts_towards_the_time_limit() -> None:
    gate = Event()
    protection = Protection(ServiceLimits(query_s=0.2))

    async def ask(assistant: Assistant) -> None:
        running = [asyncio.ensure_future(assistant.aprepare(QUERY)) for _ in range(THREADS)]
        await asyncio.sleep(0)
        with pytest.raises(StoreTimeoutError, match="too many questions"):
            await assistant.aprepare(QUERY)
        gate.set()
        assert [entry.query for entry in await asyncio.gather(*running)] == [QUERY] * THREADS

    with make_assistant(None, gate=gate, protection=protection) as assistant:
        asyncio.run(ask(assistant))
    assert assistant.retriever.closed  # type: ignore[attr-defined]  # a fixed retriever


@pytest.mark.parametrize("way", ["close", "cancel"])
def test_a_disconnect_frees_the_request_and_counts_as_an_abort(way: str) -> None:
    observed = Observed()
    protection = Protection(observe=observed)

    async def ask(assistant: Assistant, hung_up: Event) -> None:
        stream = await assistant.astream(QUERY)
        assert await anext(stream) == FIRST
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
        assert await asyncio.to_thread(hung_up.wait, 5)
        await stream.aclose()
        with pytest.raises(AnswerError, match="ended before"):
            await stream.answer()

    reply = stream_reply(f"{FIRST} ", "More", finish=None, fault="stall")
    model = partial(make_model, timeout_s=60)
    with serve([reply]) as server, make_assistant(model(server), protection=protection) as one:
        asyncio.run(ask(one, server.hung_up))
    assert observed.seen == [("answer", "aborted", "NoneType")]


@pytest.mark.parametrize("error", [AnswerServiceError("down"), ValueError("broken")])
def test_an_error_after_another_task_closed_the_stream_is_an_abort(error: Exception) -> None:
    observed = Observed()
    protection = Protection(ServiceLimits(breaker_failures=1), observe=observed)

    async def ask() -> None:
        model = WaitingModel(error)
        with make_assistant(model, protection=protection) as assistant:
            stream = await assistant.astream(QUERY)
            reader = asyncio.ensure_future(anext(stream, "end"))
            await model.reading.wait()
            await stream.aclose()
            assert await reader == "end"

    asyncio.run(ask())
    assert observed.seen == [("answer", "aborted", "NoneType")]
    assert protection.chat_model.state == "closed"


@pytest.mark.parametrize("model", [None, ScriptedModel([FIRST])])
def test_a_stream_that_is_closed_while_a_thread_works_is_aborted(
    model: ScriptedModel | None,
) -> None:
    observed = Observed()

    async def ask(prepared: preparing.PreparedAnswer) -> None:
        working, gate = asyncio.Event(), asyncio.Event()

        async def run(action: Callable[[], object]) -> object:
            working.set()
            await gate.wait()
            return action()

        stream = AsyncAnswerStream(prepared, model, Protection(observe=observed), run, Voice())
        reader = asyncio.ensure_future(stream.answer())
        await working.wait()
        await stream.aclose()
        gate.set()
        with pytest.raises(AnswerError, match="ended before"):
            await reader

    with make_assistant(model) as assistant:
        asyncio.run(ask(assistant.prepare(QUERY)))
    assert observed.seen == [("answer", "aborted", "NoneType")]


def test_a_model_that_fails_again_and_again_is_not_asked_and_the_passages_are_quoted() -> None:
    observed = Observed()
    protection = Protection(ServiceLimits(breaker_failures=2), observe=observed)
    with (
        serve([Reply(500, {}, {"Retry-After": "0"})]) as server,
        make_assistant(make_model(server), protection=protection) as assistant,
    ):
        given = assistant.answer(QUERY)
        assert asyncio.run(assistant.aanswer(QUERY)) == given
        before = len(server.received)
        paused = [assistant.answer(QUERY), asyncio.run(assistant.aanswer(QUERY))]
        assert len(server.received) == before
    assert all(one.passages == given.passages for one in paused)
    assert {one.notices[-1].code for one in paused} == {"model_unavailable"}
    assert [status for _, status, _ in observed.seen] == ["success"] * 4


def test_a_failure_of_the_model_is_a_part_of_the_log_line() -> None:
    seen: list[dict[str, object]] = []
    protection = Protection(observe=lambda operation, _: seen.append(operation.details))
    model = ScriptedModel([], error=AnswerServiceError("down"))
    with make_assistant(model, protection=protection) as assistant:
        assistant.answer(QUERY)
    assert seen[0]["model_error"] == "ANSWER_SERVICE_UNAVAILABLE"
    assert seen[0]["notices"] == ["model_unavailable"]


def test_a_completed_question_that_is_too_long_is_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparing, "complete_question", lambda *_: "robot " * 5_000)
    with make_assistant(None) as assistant:
        prepared = assistant.prepare(QUERY, history=[Turn("What is a robot?")])
    assert prepared.result.query.question == QUESTION
    assert prepared.search_question is None
