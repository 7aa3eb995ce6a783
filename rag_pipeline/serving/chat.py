"""The OpenAI-compatible endpoint, for chat programs such as Open WebUI and LibreChat.

The last user message is the question, and the messages before it are its conversation. System
messages are ignored, because the instructions of the answering model are RoboTutor's own. A task
about a conversation, such as naming it, gets a short reply without a search. A task is recognized
by its structure: it contains the conversation, and often an example of the JSON that it asks for.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urljoin

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from rag_pipeline.answering import Answer, AnswerKind, AsyncAnswerStream, Turn
from rag_pipeline.answering.voice import list_shown
from rag_pipeline.core.errors import QueryEmptyError, QueryTooLongError, RagPipelineError
from rag_pipeline.core.site.addresses import encode_target, escape_label
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import Citation, Query
from rag_pipeline.serving import MAX_QUESTION_CHARS
from rag_pipeline.serving.api.problems import describe_error, log_failure
from rag_pipeline.serving.api.service import get_service
from rag_pipeline.serving.replies import (
    EventResponse,
    answer_disconnected,
    run_while_connected,
    word_invalid,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import JsonValue


_TAGGED: Final = re.compile(r"<([A-Za-z][\w-]*)>(.*?)</\1>", re.DOTALL)
_SPEAKER: Final = re.compile(
    r"^[ \t|>*#-]*(?P<role>user|human|assistant|ai|bot|model|response|system)\b[*_ ]*:[*_]*[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_READER_ROLES: Final = ("user", "human")
_LABEL: Final = re.compile(r"^#{1,6}[ \t]+[^\n]{1,60}:[*_ \t]*$", re.MULTILINE)
_MIN_LABELS: Final = 2
_MAX_TITLE_WORDS: Final = 6
_MAX_TITLE_CHARS: Final = 60
_MAX_DEPTH: Final = 5


class _Transcript(NamedTuple):
    """A conversation within a message.

    Attributes:
        question: What the reader said first.
        has_reply: True if the assistant says something in it.
        is_tagged: True if it is enclosed in tags.
        rest: The message without the conversation.
    """

    question: str
    has_reply: bool
    is_tagged: bool
    rest: str


def answer_task(
    message: str, response_format: Mapping[str, JsonValue] | None, *, is_streamed: bool
) -> str | None:
    """Return the reply to a task, or None if the message is a question of a reader.

    The reply is JSON if the message shows an example of it, or if the request asks for it. A title
    is the beginning of the conversation's first question. All other texts and lists are empty, so
    that a program shows no suggestions instead of wrong ones.

    Args:
        message: The last message of the user.
        response_format: The field `response_format` of the request.
        is_streamed: True if the program shows the reply while it is written. A task without tags
            and without JSON is then a question of a reader who quotes a conversation.
    """
    found = _find_transcript(message)
    example = _find_example(found.rest if found else message)
    schema = _read_schema(response_format)
    if found is None:
        if example is None or len(_LABEL.findall(message)) < _MIN_LABELS:
            return None
        found = _Transcript("", has_reply=False, is_tagged=False, rest=message)
    asks_for_json = example is not None or schema is not None
    if not (found.is_tagged or asks_for_json or (found.has_reply and not is_streamed)):
        return None
    title = _shorten(found.question)
    if not asks_for_json:
        return title
    filled = _fill_schema(schema, title) if schema else _fill(example or {}, title)
    return json.dumps(filled, ensure_ascii=False)


def _find_transcript(message: str) -> _Transcript | None:
    for tagged in _TAGGED.finditer(message):
        found = _read_turns(tagged[2])
        if found is not None:
            rest = message[: tagged.start()] + message[tagged.end() :]
            return _Transcript(*found, is_tagged=True, rest=rest)
    first = next(
        (one for one in _SPEAKER.finditer(message) if one["role"].lower() in _READER_ROLES), None
    )
    found = _read_turns(message[first.start() :]) if first else None
    if first is None or found is None:
        return None
    return _Transcript(*found, is_tagged=False, rest=message[: first.start()])


def _read_turns(text: str) -> tuple[str, bool] | None:
    """Return what the reader says first, and if the assistant speaks; None without a reader."""
    turns = _read_json_turns(text)
    if turns is None:
        labels = list(_SPEAKER.finditer(text))
        if not labels or text[: labels[0].start()].strip():
            return None
        ends = [*(label.start() for label in labels[1:]), len(text)]
        turns = [
            (label["role"].lower(), text[label.end() : end].strip())
            for label, end in zip(labels, ends, strict=True)
        ]
    asked = [said for role, said in turns if role in _READER_ROLES]
    has_reply = any(role not in (*_READER_ROLES, "system") for role, _ in turns)
    return (asked[0], has_reply) if asked else None


def _read_json_turns(text: str) -> list[tuple[str, str]] | None:
    """Return the turns of a conversation in OpenAI's format; None if the text is not one."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, list):
        return None
    return [
        (str(entry["role"]).lower(), str(entry["content"]))
        for entry in entries
        if isinstance(entry, dict) and {"role", "content"} <= entry.keys()
    ]


def _find_example(text: str) -> dict[str, JsonValue] | None:
    """Return the first JSON object with a field in the text."""
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{\s*\"", text):
        try:
            found, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        return dict(found)
    return None


def _read_schema(response_format: Mapping[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return the JSON schema that a request asks for; None if it asks for plain text."""
    kind = (response_format or {}).get("type")
    described = (response_format or {}).get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    if kind == "json_schema" and isinstance(schema, dict):
        return schema
    return {} if kind == "json_object" else None


def _fill_schema(
    schema: Mapping[str, JsonValue], title: str, name: str = "", depth: int = 0
) -> JsonValue:
    """Return a value that fits a JSON schema, for the types that such requests use."""
    choices, properties = schema.get("enum"), schema.get("properties")
    if isinstance(choices, list) and choices:
        return choices[0]
    if isinstance(properties, dict) and depth < _MAX_DEPTH:
        return {
            key: _fill_schema(inner, title, key, depth + 1)
            for key, inner in properties.items()
            if isinstance(inner, dict)
        }
    empty: dict[str, JsonValue] = {"object": {}, "array": [], "number": 0, "integer": 0}
    empty |= {"boolean": False, "null": None}
    kind = schema.get("type", "object" if depth == 0 else "string")
    return empty[str(kind)] if str(kind) in empty else _fill("", title, name)


def _fill(form: JsonValue, title: str, name: str = "") -> JsonValue:
    """Return a value of the same form. A text is the title if its field is a title."""
    if isinstance(form, dict):
        return {key: _fill(value, title, key) for key, value in form.items()}
    if isinstance(form, list):
        return []
    if isinstance(form, str):
        return title if "title" in name.lower() else ""
    return form


def _shorten(question: str) -> str:
    """Return the first words of a question, as the title of a conversation."""
    words = re.sub(r"[*_`#>\[\]\"]+", " ", question).split()
    title = " ".join(words[:_MAX_TITLE_WORDS])
    return title[:_MAX_TITLE_CHARS].rstrip(" ,;:.?!")


SOURCES_TITLE: Final = "\n\n**Where the book says this**\n"
_RELATED_TITLE: Final = "\n\n**Related sections**\n"
_NOTICES_TITLE: Final = "\n\n**Please note**\n"
_TITLES: Final = (SOURCES_TITLE, _RELATED_TITLE, _NOTICES_TITLE)
"""The lines before what is added to an answer. A model's answer contains none of them."""

_MARK: Final = re.compile(r"\[(\d+)\]")


def cite_sources(
    answer: Answer, base_url: str, offset: int = 0
) -> tuple[str, list[dict[str, object]]]:
    """Return the links to an answer's sources as Markdown, and an annotation for each citation.

    An annotation covers a citation such as `[1]` that a model wrote, and the link itself. Notices
    for the reader precede the links.

    Args:
        answer: The answer, whose text the links follow.
        base_url: The address of the service, with which the URLs of citations become absolute.
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
        named = {"url": encode_target(urljoin(base_url, citation.url)), "title": citation.place}
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
        link = f"[{escape_label(citation.place)}]({encode_target(urljoin(base_url, citation.url))})"
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

    def count_usage(self, content: str) -> dict[str, int]:
        """Return the numbers of cl100k_base tokens of the messages and of the reply."""
        sent = sum(count_tokens(entry.text) for entry in self.messages)
        written = count_tokens(content)
        total = sent + written
        return {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": total}


router = APIRouter(include_in_schema=False)
"""The routes of the service that OpenAI's own OpenAPI document describes."""


@router.get("/v1/models")
async def list_models() -> dict[str, object]:
    """Return the only model."""
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
    return {"object": "list", "data": [model]}


@router.post("/v1/chat/completions")
async def complete_chat(request: Request) -> Response:
    """Return a completion, or a stream of chunks."""
    try:
        body = ChatRequest.model_validate_json(await request.body())
        asked = [entry.text for entry in body.messages if entry.role == "user"]
        form = body.response_format if isinstance(body.response_format, dict) else None
        reply = answer_task(asked[-1], form, is_streamed=body.stream) if asked else None
        if reply is None:
            return await _answer(request, body)
    except (ValidationError, RagPipelineError) as error:
        status, content = _describe(error)
        wait_s = describe_error(error)[3]
        headers = {} if wait_s is None else {"Retry-After": str(max(1, round(wait_s)))}
        return JSONResponse(content, status, headers)
    if body.stream:
        return EventResponse(_stream_reply(body, reply))
    return JSONResponse(_complete(body, reply))


async def _answer(request: Request, body: ChatRequest) -> Response:
    question, history = read_conversation(body.messages)
    preparing = get_service(request).assistant.astream(Query(question), history=history)
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
    links, annotations = cite_sources(answer, base_url)
    finish = "stop" if answer.complete else "length"
    return JSONResponse(_complete(body, answer.text + links, annotations, finish))


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
    options = body.stream_options
    if isinstance(options, dict) and options.get("include_usage") is True:
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
    except Exception as error:  # noqa: BLE001  # the status is sent, so the client needs an event
        if not isinstance(error, RagPipelineError):
            log_failure("stream_failed", error)
        yield _encode_data(_describe(error)[1])
        return
    is_continued = answer.text.startswith(sent)
    rest = answer.text[len(sent) :] if is_continued else f"\n\n{answer.text}"
    before = 0 if is_continued else len(sent) + 2
    links, annotations = cite_sources(answer, base_url, before)
    yield _encode(head, {"content": rest + links, "annotations": annotations})
    finish = "stop" if answer.complete else "length"
    for event in _end_stream(body, head, sent + rest + links, finish):
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


def _describe(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status of an error, and its description in OpenAI's form."""
    param: str | None = None
    status = error.http_status if isinstance(error, RagPipelineError) else 500
    code, message, _transient, _wait_s = describe_error(error)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        status, code = 400, "REQUEST_INVALID"
        message = f"{param or 'the body'} is invalid: {word_invalid(first)}"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return status, {"error": {"message": message, "type": kind, "param": param, "code": code}}
