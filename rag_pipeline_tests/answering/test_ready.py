"""Tests of answers that quote passages because the service of the model fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import AnswerKind, Assistant
from rag_pipeline.answering.ready import UNAVAILABLE_NOTICE
from rag_pipeline.core.errors import AnswerError, AnswerServiceError
from rag_pipeline.retrieval.protection.limits import Protection, ServiceLimits
from rag_pipeline.retrieval.queries import Query
from rag_pipeline_tests.adapters.test_chat_model import make_model, stream_reply
from rag_pipeline_tests.answering.factories import FixedRetriever, make_chunk
from rag_pipeline_tests.loopback import Reply, serve

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.chat import ChatModel

QUERY = Query("How does a walking robot keep its balance with the capture point?")


def make_quoting_assistant(model: ChatModel, protection: Protection) -> Assistant:
    searcher = FixedRetriever((make_chunk(),), protection=protection)
    return Assistant(searcher, model, quotes_on_failure=True)  # type: ignore[arg-type]  # a retriever by its shape


def test_passages_are_quoted_if_the_service_of_the_model_fails() -> None:
    protection = Protection(ServiceLimits(breaker_failures=2))
    with (
        serve([Reply(500, {}, {"Retry-After": "0"})]) as server,
        make_quoting_assistant(make_model(server), protection) as assistant,
    ):
        given = assistant.answer(QUERY)
        assert asyncio.run(assistant.aanswer(QUERY)) == given
        before = len(server.received)
        paused = [assistant.answer(QUERY), asyncio.run(assistant.aanswer(QUERY))]
        assert len(server.received) == before
    quoted = Assistant(FixedRetriever((make_chunk(),))).answer(QUERY)  # type: ignore[arg-type]  # a retriever by its shape
    assert (given.kind, given.model, given.text) == (AnswerKind.EXTRACTED, None, quoted.text)
    assert given.notices[-1].startswith(f"{UNAVAILABLE_NOTICE} Error ANSWER_SERVICE_UNAVAILABLE: ")
    assert len(given.notices) == len(quoted.notices)
    assert all(one.text == quoted.text and "paused" in one.notices[-1] for one in paused)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (stream_reply("Half [1]. ", "an ", finish=None, fault="cut"), AnswerServiceError),
        (Reply(body=b"<html>hello</html>"), AnswerError),
    ],
)
def test_other_failures_of_a_model_are_errors(reply: Reply, error: type[Exception]) -> None:
    with (
        serve([reply]) as server,
        make_quoting_assistant(make_model(server), Protection()) as assistant,
    ):
        with pytest.raises(error):
            assistant.answer(QUERY)
        with pytest.raises(error):
            asyncio.run(assistant.aanswer(QUERY))
