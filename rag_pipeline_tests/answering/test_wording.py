"""Tests of rewording a follow-up question, by a real client of a model on 127.0.0.1."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import Assistant, Turn, assistant, preparing
from rag_pipeline.answering.assistant import reword, translate
from rag_pipeline.answering.models import Level
from rag_pipeline.answering.preparing import Plan
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.retrieval.limits import Protection, ServiceLimits
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import (
    FixedRetriever,
    WaitingModel,
    make_chunk,
)
from rag_pipeline_tests.loopback import ENDLESS, RESET, Received, Reply, serve

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import ChatModel

FIRST = "What is the capture point of a walking robot?"
ASKED = "Why does it move?"
COMPLETED = f"{FIRST} {ASKED}"
WORDED = "Why does the capture point of a walking robot move?"
FOLLOW_UP = Plan(Query(ASKED), ASKED, COMPLETED, "", (Turn(FIRST, "A point on the ground."),))
AT_ONCE = {"Retry-After": "0"}


def word(plan: Plan, model: ChatModel, protection: Protection) -> str:
    """Return the wording of a model, in an event loop of its own."""
    return asyncio.run(reword(plan, model, protection))


def test_a_model_words_a_follow_up() -> None:
    with serve([stream_reply("Question: ", f'"{WORDED}"')]) as server:
        assert word(FOLLOW_UP, make_model(server), Protection()) == WORDED
    (request,) = server.received
    told = request.body["messages"][1]["content"]
    assert told.index(FIRST) < told.index(ASKED)


@pytest.mark.parametrize(
    "replies",
    [
        [Reply(401, {"error": {"message": "wrong key"}})],
        [Reply(429, headers=AT_ONCE)],
        [Reply(500, headers=AT_ONCE)],
        [Reply(body=b"data: {broken\n\n")],
        [Reply(body=b"<html>hello</html>")],
        [stream_reply("Why does", finish=None, fault="cut")],
        [stream_reply("How is bread made?")],
        [stream_reply()],
        [stream_reply("Sure, here is an answer: it moves with the velocity [1].")],
        [stream_reply("Line.\nAnother line.")],
        [stream_reply("Why? " * 1_000)],
        [stream_reply("\ud83d")],
    ],
)
def test_a_model_that_fails_or_writes_something_else_changes_nothing(replies: list[Reply]) -> None:
    with serve(replies) as server:
        assert word(FOLLOW_UP, make_model(server), Protection()) == COMPLETED
    assert server.received


@pytest.mark.parametrize("reply", [*ENDLESS, stream_reply("Why", finish=None, fault="murmur")])
def test_a_slow_model_changes_nothing_and_its_request_is_freed(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assistant, "REWORDING_S", 0.2)
    with serve([reply]) as server:
        assert word(FOLLOW_UP, make_model(server, 60), Protection()) == COMPLETED
        if (
            reply.fault != "hang"
        ):  # the server does not watch a request that it leaves without a reply
            assert server.hung_up.wait(5)


def test_a_model_that_cannot_be_reached_changes_nothing() -> None:
    with serve([RESET]) as server:
        assert word(FOLLOW_UP, make_model(server, 0.4), Protection()) == COMPLETED


def test_no_model_is_asked_without_need() -> None:
    complete = Plan(Query(FIRST), FIRST, FIRST, "", FOLLOW_UP.turns)
    failing = Protection(ServiceLimits(breaker_failures=1))
    with pytest.raises(AnswerServiceError), failing.chat_model.passing():
        raise AnswerServiceError("down")
    with serve([stream_reply(WORDED)]) as server:
        model = make_model(server)
        assert word(complete, model, Protection()) == FIRST
        assert word(FOLLOW_UP, model, failing) == COMPLETED
    assert server.received == []


GERMAN = "Was ist der Fangpunkt und wie haelt der Roboter damit die Balance?"
TRANSLATED = "What is the capture point and how does the robot keep its balance with it?"
PLAN = Plan(Query(GERMAN), GERMAN, GERMAN, "", ())


def put(plan: Plan, model: ChatModel) -> str:
    """Return a question in the language of an English passage, in an event loop of its own."""
    return asyncio.run(translate(plan, plan.completed, [make_chunk()], model, Protection()))


def test_a_model_translates_a_question_into_the_language_of_the_book() -> None:
    with serve([stream_reply("Translation: ", f'"{TRANSLATED}"')]) as server:
        assert put(PLAN, make_model(server)) == TRANSLATED
    (request,) = server.received
    told = [message["content"] for message in request.body["messages"]]
    assert "English" in told[0]
    assert GERMAN in told[1]


@pytest.mark.parametrize(
    "replies",
    [
        [Reply(401, {"error": {"message": "wrong key"}})],
        [Reply(body=b"data: {broken\n\n")],
        [stream_reply()],
        [stream_reply(GERMAN)],
        [stream_reply("Der Fangpunkt ist der Punkt, auf den der Roboter tritt.")],
        [stream_reply("Sure, it is the point on which the robot steps [1].")],
        [stream_reply("Line.\nAnother line.")],
        [stream_reply("What is it? " * 1_000)],
    ],
)
def test_a_failed_translation_gives_no_question(replies: list[Reply]) -> None:
    with serve(replies) as server:
        assert put(PLAN, make_model(server)) == ""
    assert server.received


def test_no_model_translates_a_question_in_the_language_of_the_book() -> None:
    with serve([stream_reply(TRANSLATED)]) as server:
        model = make_model(server)
        assert put(Plan(Query(FIRST), FIRST, FIRST, "", ()), model) == ""
        selected = Query(GERMAN, mode=Mode.SELECTED_TEXT_ONLY, selected_text="A robot walks.")
        assert put(Plan(selected, GERMAN, GERMAN, "", ()), model) == ""
    assert server.received == []


@pytest.mark.parametrize(
    ("first", "searched"),
    [(stream_reply(TRANSLATED), TRANSLATED), (Reply(400, {"error": {"message": "bad"}}), None)],
)
def test_an_assistant_searches_the_translation_and_answers_the_question_as_asked(
    first: Reply, searched: str | None
) -> None:
    def reply(request: Received) -> Reply:
        is_translation = "Translate" in request.body["messages"][0]["content"]
        return first if is_translation else stream_reply("Der Fuss tritt auf den Fangpunkt [1].")

    with serve(reply) as server:
        retriever = FixedRetriever([make_chunk()])
        assistant = Assistant(retriever, make_model(server))  # type: ignore[arg-type]  # a retriever by its shape
        prepared = assistant.prepare(Query(GERMAN))
        later = asyncio.run(assistant.aprepare(Query(GERMAN)))
        given = assistant.write(prepared).answer
    if searched:
        assert prepared.search_question == later.search_question == searched
        assert retriever.asked[-1].question == searched
    assert prepared.grounding.level is not Level.NOT_COVERED
    assert given.question == GERMAN
    assert GERMAN in json.dumps(server.received[-1].body)


def test_cancelling_the_rewording_frees_the_request() -> None:
    async def ask() -> None:
        model = WaitingModel(AnswerServiceError("down"))
        task = asyncio.ensure_future(reword(FOLLOW_UP, model, Protection()))
        await model.reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.ended.is_set()

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("first", "searched"),
    [(stream_reply(WORDED), WORDED), (Reply(400, {"error": {"message": "bad"}}), COMPLETED)],
)
def test_an_assistant_searches_the_models_wording_and_answers_the_question_as_asked(
    first: Reply, searched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "complete_question", lambda *_: COMPLETED)

    def reply(request: Received) -> Reply:
        is_rewording = "Rewrite" in request.body["messages"][0]["content"]
        return (
            first
            if is_rewording
            else stream_reply("The capture point depends on the velocity [1].")
        )

    history = [Turn(FIRST)]
    with serve(reply) as server:
        retriever = FixedRetriever([make_chunk()])
        assistant = Assistant(retriever, make_model(server))  # type: ignore[arg-type]  # a retriever by its shape
        prepared = assistant.prepare(Query(ASKED), history=history)
        later = asyncio.run(assistant.aprepare(Query(ASKED), history=history))
        given = assistant.write(prepared).answer
    assert prepared.search_question == later.search_question == searched
    assert [query.question for query in retriever.asked] == [searched] * 2
    assert (given.question, given.text) == (ASKED, "The capture point depends on the velocity [1].")
    assert ASKED in json.dumps(server.received[-1].body)
