"""The OpenAI-compatible endpoint, for chat programs such as Open WebUI and LibreChat.

The last user message is the question, and the messages before it are its conversation. System
messages are ignored, because the instructions of the answering model are RoboTutor's own. A task
about a conversation, such as naming it, gets a short reply without a search.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import urljoin

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from rag_pipeline.answering import AnswerKind, Turn
from rag_pipeline.answering.voice import list_shown
from rag_pipeline.core.errors import QueryEmptyError, QueryTooLongError, RagPipelineError
from rag_pipeline.core.site.addresses import encode_target, escape_label
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import Query
from rag_pipeline.serving import MAX_QUESTION_CHARS
from rag_pipeline.serving.api.connections import EventResponse, run_while_connected
from rag_pipeline.serving.api.problems import log_failure
from rag_pipeline.serving.api.schemas import answer_disconnected
from rag_pipeline.serving.chat.tasks import answer_task

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from rag_pipeline.answering import Answer, Assistant, AsyncAnswerStream
    from rag_pipeline.retrieval import Citation


SOURCES_TITLE: Final = "\n\n**Where the book says this**\n"
_RELATED_TITLE: Final = "\n\n**Related sections**\n"
_NOTICES_TITLE: Final = "\n\n**Please note**\n"
_TITLES: Final = (SOURCES_TITLE, _RELATED_TITLE, _NOTICES_TITLE)
"""The lines before what is added to an answer. A model's answer contains none of them."""

_MARK: Final = re.compile(r"\[(\d+)\]")


def cite_sources(
    answer: Answer, resolve: Callable[[str], str], offset: int = 0
) -> tuple[str, list[dict[str, object]]]:
    """Return the links to an answer's sources as Markdown, and an annotation for each citation.

    An annotation covers a citation such as `[1]` that a model wrote, and the link itself. Notices
    for the reader precede the links.

    Args:
        answer: The answer, whose text the links follow.
        resolve: Turns the URL of a citation into an absolute one.
        offset: Number of characters before the answer's text in the message.

    Returns:
        The text to append, empty if there is nothing to add, and annotations of the type
        `url_citation`. Their indices count the characters of the message; the end is exclusive.
    """
    numbered = answer.numbered_citations
    sources = {number: citation for number, citation in numbered.items() if citation.url}
    annotations: list[dict[str, object]] = []

    def annotate(start: int, end: int, citation: Citation) -> None:
        place = {"start_index": offset + start, "end_index": offset + end}
        named = {"url": encode_target(resolve(citation.url)), "title": citation.place}
        annotations.append({"type": "url_citation", "url_citation": {**place, **named}})

    if answer.kind is AnswerKind.GENERATED:
        for mark in _MARK.finditer(answer.text):
            if int(mark[1]) in sources:
                annotate(mark.start(), mark.end(), sources[int(mark[1])])
    notices = list_shown(answer)
    links = _NOTICES_TITLE if notices else ""
    links += "".join(f"\n- {notice.text}" for notice in notices)
    if sources:
        links += _RELATED_TITLE if answer.kind is AnswerKind.REFUSED else SOURCES_TITLE
    for number, citation in sources.items():
        links += f"\n{number}. "
        link = f"[{escape_label(citation.place)}]({encode_target(resolve(citation.url))})"
        start = len(answer.text) + len(links)
        annotate(start, start + len(link), citation)
        links += link
    return links, annotations


def remove_additions(text: str) -> str:
    """Return the text of an answer without the notices and links that `cite_sources` appends."""
    return text[: min(at for at in (*map(text.find, _TITLES), len(text)) if at >= 0)].strip()


MODEL: Final = "robotutor"


class TextPart(BaseModel):
    """A part of a message's content; parts of other types than text are ignored."""

    type: str
    text: str = ""


class ChatMessage(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """The text of the message; its parts are joined by line breaks."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class ChatRequest(BaseModel):
    """The fields of a request that have an effect; all others, such as temperature, have none."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: Any = None
    response_format: Any = None

    @property
    def wants_usage(self) -> bool:
        """True if a stream must end with the number of tokens."""
        options = self.stream_options
        return isinstance(options, dict) and options.get("include_usage") is True

    def answer_task(self) -> str | None:
        """Return the reply to a task of the chat program; None if a reader asks a question."""
        asked = [entry.text for entry in self.messages if entry.role == "user"]
        form = self.response_format if isinstance(self.response_format, dict) else None
        return answer_task(asked[-1], form, is_streamed=self.stream) if asked else None

    def count_usage(self, content: str) -> dict[str, int]:
        """Return the numbers of cl100k_base tokens of the messages and of the reply."""
        sent = sum(count_tokens(entry.text) for entry in self.messages)
        written = count_tokens(content)
        total = sent + written
        return {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": total}


def make_chat_router(get_assistant: Callable[[Request], Assistant]) -> APIRouter:
    """Return the routes `POST /v1/chat/completions` and `GET /v1/models`.

    The routes are not part of the service's OpenAPI document: OpenAI's own document describes them.

    Args:
        get_assistant: Returns the assistant that answers a request.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/v1/models")
    async def list_models() -> dict[str, object]:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
        return {"object": "list", "data": [model]}

    @router.post("/v1/chat/completions", response_model=None)
    async def complete_chat(request: Request) -> Response:
        try:
            body = ChatRequest.model_validate_json(await request.body())
            reply = body.answer_task()
            if reply is None:
                return await _answer(get_assistant(request), request, body)
        except (ValidationError, RagPipelineError) as error:
            return _respond_to(error)
        if body.stream:
            return EventResponse(_stream_reply(body, reply))
        return JSONResponse(_complete(body, reply))

    return router


async def _answer(assistant: Assistant, request: Request, body: ChatRequest) -> Response:
    question, history = read_conversation(body.messages)
    preparing = assistant.astream(Query(question), history=history)
    stream = await run_while_connected(request.receive, preparing)
    if stream is None:
        return answer_disconnected()
    base_url = str(request.base_url)
    if body.stream:
        return EventResponse(_stream_chunks(body, stream, base_url))
    async with stream:
        answer = await run_while_connected(request.receive, stream.answer())
    if answer is None:
        return answer_disconnected()
    links, annotations = cite_sources(answer, lambda url: urljoin(base_url, url))
    return JSONResponse(_complete(body, answer.text + links, annotations, _name_finish(answer)))


def read_conversation(messages: Sequence[ChatMessage]) -> tuple[str, list[Turn]]:
    """Return the question, which is the last user message, and the turns before it, oldest first.

    The notices and links that `cite_sources` adds to an answer are removed from the turns.

    Raises:
        QueryEmptyError: There is no user message.
        QueryTooLongError: The question has more than 2,000 characters.
    """
    at = max((at for at, entry in enumerate(messages) if entry.role == "user"), default=None)
    if at is None:
        raise QueryEmptyError
    question = messages[at].text
    if len(question.strip()) > MAX_QUESTION_CHARS:
        raise QueryTooLongError(len(question.strip()), MAX_QUESTION_CHARS)
    turns: list[Turn] = []
    for entry in messages[:at]:
        if entry.role == "user":
            turns.append(Turn(entry.text))
        elif entry.role == "assistant" and turns:
            turns[-1] = Turn(turns[-1].question, remove_additions(entry.text))
    return question, turns


def _complete(
    body: ChatRequest,
    content: str,
    annotations: Sequence[Mapping[str, object]] = (),
    finish: str = "stop",
) -> dict[str, object]:
    message = {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "annotations": list(annotations),
    }
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    head = _head("chat.completion")
    return {**head, "choices": [choice], "usage": body.count_usage(content)}


def _name_finish(answer: Answer) -> str:
    return "stop" if answer.complete else "length"


async def _stream_reply(body: ChatRequest, reply: str) -> AsyncGenerator[bytes, None]:
    """Yield the reply to a task as server-sent events."""
    head = _head("chat.completion.chunk")
    yield _encode(head, {"role": "assistant", "content": reply})
    for event in _end_stream(body, head, reply, "stop"):
        yield event


def _end_stream(
    body: ChatRequest, head: Mapping[str, object], content: str, finish: str
) -> Iterator[bytes]:
    """Yield the events after the content of a stream."""
    yield _encode(head, {}, finish)
    if body.wants_usage:
        yield _encode_data({**head, "choices": [], "usage": body.count_usage(content)})
    yield b"data: [DONE]\n\n"


async def _stream_chunks(
    body: ChatRequest, stream: AsyncAnswerStream, base_url: str
) -> AsyncGenerator[bytes, None]:
    """Yield an answer as server-sent events of chunks; the last chunk has the annotations.

    If the model declines after it has begun, its text stays and the refusal follows as a paragraph,
    because the protocol cannot take text back.
    """
    head = _head("chat.completion.chunk")
    yield _encode(head, {"role": "assistant", "content": ""})
    try:
        async with stream:
            sent = ""
            async for piece in stream:
                sent += piece
                yield _encode(head, {"content": piece})
            answer = await stream.answer()
    except RagPipelineError as error:
        yield _encode_data(_describe(error)[1])
        return
    except Exception as error:  # noqa: BLE001  # the status is sent, so the client needs an event
        log_failure("stream_failed", error)
        yield _encode_data(_INTERNAL)
        return
    is_continued = answer.text.startswith(sent)
    rest = answer.text[len(sent) :] if is_continued else f"\n\n{answer.text}"
    before = 0 if is_continued else len(sent) + 2
    links, annotations = cite_sources(answer, lambda url: urljoin(base_url, url), before)
    yield _encode(head, {"content": rest + links, "annotations": annotations})
    for event in _end_stream(body, head, sent + rest + links, _name_finish(answer)):
        yield event


def _head(kind: str) -> dict[str, object]:
    created = int(time.time())
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": created,
        "model": MODEL,
    }


def _encode(head: Mapping[str, object], delta: object, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _encode_data({**head, "choices": [choice]})


def _encode_data(content: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode("ascii")


_INTERNAL: Final = {
    "error": {
        "message": "the answer could not be completed. Try again",
        "type": "server_error",
        "param": None,
        "code": "INTERNAL_ERROR",
    }
}


def _respond_to(error: ValidationError | RagPipelineError) -> JSONResponse:
    status, content = _describe(error)
    headers = {}
    if isinstance(error, RagPipelineError) and (error.transient or error.retry_after_s):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s or 1)))
    return JSONResponse(content, status, headers)


def _describe(error: ValidationError | RagPipelineError) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status of an error, and its description in OpenAI's form."""
    param: str | None = None
    if isinstance(error, RagPipelineError):
        status, code = error.http_status, error.code
        message = error.public_message
    else:
        first = error.errors(include_url=False, include_input=False)[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        status, code = 400, "REQUEST_INVALID"
        message = f"{param or 'the body'} is invalid: {first['msg']}"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return status, {"error": {"message": message, "type": kind, "param": param, "code": code}}
