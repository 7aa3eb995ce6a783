"""`POST /v1/answers`: answers as one JSON document or as a stream of events."""

# ruff: noqa: TC001, TC003  # FastAPI reads the annotations at run time

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import anyio
import structlog
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from rag_pipeline.answering.assistant import AsyncAnswerStream, PreparedAnswer
from rag_pipeline.answering.conversations.history import Turn
from rag_pipeline.answering.models import Answer, AnswerKind
from rag_pipeline.core.protocols.question_log import LoggedAnswer
from rag_pipeline.serving.events import encode_event
from rag_pipeline.serving.messages import (
    PROTOCOL,
    AnswerRequest,
    describe_answer,
    is_refused,
    list_sources,
)
from rag_pipeline.serving.problems import describe_error
from rag_pipeline.serving.state import Service, get_service

router = APIRouter(prefix="/v1")


@dataclass(frozen=True)
class Asked:
    """A question whose passages were found, before its answer is written."""

    service: Service
    body: AnswerRequest
    prepared: PreparedAnswer
    conversation_id: str
    started: float
    prepared_ms: float
    answer_id: str = field(default_factory=lambda: uuid.uuid4().hex)


async def prepare(body: AnswerRequest, service: Annotated[Service, Depends(get_service)]) -> Asked:
    """Validate a question and find its passages, so that failures still have a status."""
    started = time.perf_counter()
    conversation_id = body.conversation_id or uuid.uuid4().hex
    turns = body.to_turns()
    if turns is None:
        turns = service.conversations.read(conversation_id)
    prepared = await service.assistant.aprepare(
        body.to_query(), history=turns, even_if_unrelated=body.even_if_unrelated
    )
    prepared_ms = (time.perf_counter() - started) * 1000
    return Asked(service, body, prepared, conversation_id, started, prepared_ms)


@router.post("/answers", response_model=None)
async def answer_question(request: Request, asked: Annotated[Asked, Depends(prepare)]) -> Response:
    """Answer a question from the book, as JSON or as server-sent events."""
    stream = await asked.service.assistant.awrite(asked.prepared)
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            _stream_events(asked, stream), media_type="text/event-stream", headers=headers
        )
    async with stream:
        answer = await stream.answer()
    return JSONResponse(_finish(asked, answer))


async def _stream_events(asked: Asked, stream: AsyncAnswerStream) -> AsyncIterator[bytes]:
    prepared = asked.prepared
    model = asked.service.assistant.chat_model
    start = {
        "protocol": PROTOCOL,
        "answer_id": asked.answer_id,
        "conversation_id": asked.conversation_id,
        "mode": prepared.query.mode.value,
        "search_question": prepared.search_question,
        "index_id": prepared.index_id,
        "model": model.name if model else None,
    }
    try:
        yield encode_event("start", start)
        grounding = prepared.grounding
        sources = list_sources(grounding)
        yield encode_event("sources", {"confidence": grounding.confidence, "sources": sources})
        if not is_refused(grounding):
            async for piece in stream:
                yield encode_event("delta", {"text": piece})
        content = _finish(asked, await stream.answer())
        if content["refusal"] is not None:
            yield encode_event("refusal", content["refusal"])
        yield encode_event("done", content)
    except Exception as error:  # noqa: BLE001  # the status is sent already, so an event tells
        structlog.get_logger(__name__).warning("stream_failed", error=type(error).__name__)
        code, message, transient, wait = describe_error(error)
        failure = {"code": code, "message": message, "transient": transient}
        yield encode_event("error", {**failure, "retry_after_s": wait})
    finally:
        with anyio.CancelScope(shield=True):
            await stream.aclose()


def _finish(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Remember and log a complete answer, and return its content."""
    service, prepared = asked.service, asked.prepared
    total_ms = (time.perf_counter() - asked.started) * 1000
    selected = prepared.query.selected_text
    turn = Turn(asked.body.question, answer.text, selected)
    service.conversations.add(asked.conversation_id, turn)
    if service.log is not None:
        keeps_text = service.settings.log_questions
        service.log.record(
            LoggedAnswer(
                answer_id=asked.answer_id,
                conversation_id=asked.conversation_id,
                asked_at=datetime.now(UTC),
                mode=prepared.query.mode.value,
                kind=answer.kind.value,
                level=answer.grounding.level.value,
                reason=answer.grounding.reason.value,
                question=asked.body.question if keeps_text else None,
                search_question=prepared.search_question if keeps_text else None,
                confidence=answer.grounding.confidence,
                sources=tuple(dict.fromkeys(entry.url for entry in answer.citations)),
                model=answer.model if answer.kind is not AnswerKind.REPLY else None,
                index_id=prepared.index_id,
                latency_ms=total_ms,
            )
        )
    return {
        "answer_id": asked.answer_id,
        "conversation_id": asked.conversation_id,
        **describe_answer(answer, prepared),
        "timings_ms": {"prepare": round(asked.prepared_ms, 1), "total": round(total_ms, 1)},
    }
