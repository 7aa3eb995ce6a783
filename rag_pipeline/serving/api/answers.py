"""`POST /v1/answers`: answers as one JSON document or as a stream of events."""

# ruff: noqa: TC001  # FastAPI reads the annotations at run time

from __future__ import annotations

import asyncio
import re
import time
import uuid
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response

from rag_pipeline.answering import AsyncAnswerStream, PreparedAnswer
from rag_pipeline.answering.grounding import decline, make_refusal
from rag_pipeline.answering.models import Answer, AnswerKind, Level
from rag_pipeline.core.protocols import LoggedAnswer
from rag_pipeline.serving.api import bodies
from rag_pipeline.serving.api.problems import describe_error, document_problems, log_failure
from rag_pipeline.serving.api.service import Service, get_service
from rag_pipeline.serving.replies import (
    EVENT_STREAM,
    AsciiJsonResponse,
    EventResponse,
    answer_disconnected,
    prefers,
    run_while_connected,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


KEEP_ALIVE_S: Final = 15.0
"""Seconds without an event after which a comment is sent, so that no proxy ends the connection."""

_OWN_ID: Final = re.compile(r"[0-9a-f]{32}")
"""The ids of conversations that the service gives."""

router = APIRouter(prefix="/v1")
_PROBLEMS: Final = document_problems(400, 415, 422, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question whose passages were found, before its answer is written."""

    service: Service
    body: bodies.AnswerRequest
    prepared: PreparedAnswer
    conversation_id: str
    started: float
    asked_at: datetime
    answer_id: str = field(default_factory=lambda: uuid.uuid4().hex)


async def prepare(
    request: Request, body: bodies.AnswerRequest, service: Annotated[Service, Depends(get_service)]
) -> Asked | None:
    """Validate a question and find its passages, so that failures still have a status.

    Returns:
        None if the client disconnected meanwhile.
    """
    started, asked_at = time.perf_counter(), datetime.now(UTC)
    preparing = service.assistant.aprepare(
        body.to_query(), history=body.to_turns(), even_if_unrelated=body.even_if_unrelated
    )
    prepared = await run_while_connected(request.receive, preparing)
    if prepared is None:
        return None
    given = body.conversation_id or ""
    # Nobody can choose an id that another reader guesses.
    conversation_id = given if _OWN_ID.fullmatch(given) else uuid.uuid4().hex
    return Asked(service, body, prepared, conversation_id, started, asked_at)


@router.post(
    "/answers",
    responses={
        200: {"model": bodies.AnswerBody, "content": {EVENT_STREAM: bodies.describe_events()}},
        **_PROBLEMS,
    },
)
async def answer_question(
    request: Request, asked: Annotated[Asked | None, Depends(prepare)]
) -> Response:
    """Answer a question from the book.

    The answer is one JSON document, or a stream of events for a client that accepts
    `text/event-stream`. A stream ends with exactly one event `done` or `error`; a stream without
    either was cut off. A `refusal` replaces the text so far.
    """
    if asked is None:
        return answer_disconnected()
    stream = await asked.service.assistant.awrite(asked.prepared)
    if prefers(request.headers.get("accept", ""), EVENT_STREAM, "application/json"):
        return EventResponse(_stream_events(asked, stream))
    async with stream:
        answer = await run_while_connected(request.receive, stream.answer())
    if answer is None:
        return answer_disconnected()
    return AsciiJsonResponse(_finish(asked, answer))


async def _stream_events(asked: Asked, stream: AsyncAnswerStream) -> AsyncGenerator[bytes, None]:
    grounding = asked.prepared.grounding
    try:
        async with stream, aclosing(_read_pieces(stream)) as pieces:
            model = asked.service.assistant.chat_model
            start = {
                "protocol": bodies.PROTOCOL,
                "answer_id": asked.answer_id,
                "conversation_id": asked.conversation_id,
                "mode": asked.prepared.query.mode.value,
                "search_question": asked.prepared.search_question,
                "index_id": asked.prepared.index_id,
                "model": model.name if model else None,
            }
            yield bodies.encode_event("start", start)
            sources = bodies.list_sources(grounding)
            yield bodies.encode_event(
                "sources", {"confidence": grounding.confidence, "sources": sources}
            )
            voice = asked.service.assistant.voice
            declined = make_refusal(decline(grounding, voice), voice).text
            async for piece in pieces:
                if piece is None:
                    yield bodies.KEEP_ALIVE
                elif piece != declined and grounding.level is not Level.NOT_COVERED:
                    yield bodies.encode_event("delta", {"text": piece})
            content = _finish(asked, await stream.answer())
        if content["refusal"] is not None:
            yield bodies.encode_event("refusal", content["refusal"])
        done = {
            name: value
            for name, value in content.items()
            if name in bodies.DoneBody.__annotations__
        }
        yield bodies.encode_event("done", done)
    except Exception as error:  # noqa: BLE001  # the status is sent already, so an event tells
        code, message, transient, wait = describe_error(error)
        log_failure("stream_failed", error)
        failure = {"code": code, "message": message, "transient": transient}
        yield bodies.encode_event("error", {**failure, "retry_after_s": wait})


async def _read_pieces(stream: AsyncAnswerStream) -> AsyncGenerator[str | None, None]:
    """Yield the pieces of an answer, and None each time nothing was written for 15 seconds."""
    while True:
        reading = asyncio.ensure_future(anext(stream, None))
        try:
            while not (await asyncio.wait([reading], timeout=KEEP_ALIVE_S))[0]:
                yield None
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait([reading])
        piece = reading.result()
        if piece is None:
            return
        yield piece


def _finish(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Log a complete answer, and return its content."""
    service, prepared = asked.service, asked.prepared
    total_ms = (time.perf_counter() - asked.started) * 1000
    if service.log is not None:
        service.log.record(_make_entry(asked, answer, total_ms))
    steps = {**prepared.timings_ms, "total": total_ms}
    return {
        "answer_id": asked.answer_id,
        "conversation_id": asked.conversation_id,
        **bodies.describe_answer(answer, prepared),
        "timings_ms": {name: round(spent, 1) for name, spent in steps.items()},
    }


def _make_entry(asked: Asked, answer: Answer, latency_ms: float) -> LoggedAnswer:
    prepared, grounding = asked.prepared, answer.grounding
    keeps_text = asked.service.settings.log_questions
    return LoggedAnswer(
        answer_id=asked.answer_id,
        conversation_id=asked.conversation_id,
        asked_at=asked.asked_at,
        mode=prepared.query.mode.value,
        kind=answer.kind.value,
        level=grounding.level.value,
        reason=grounding.reason.value,
        question=asked.body.question if keeps_text else None,
        search_question=prepared.search_question if keeps_text else None,
        confidence=grounding.confidence,
        sources=tuple(dict.fromkeys(entry.url for entry in answer.citations if entry.url)),
        model=answer.model if answer.kind is not AnswerKind.REPLY else None,
        index_id=prepared.index_id,
        latency_ms=latency_ms,
    )
