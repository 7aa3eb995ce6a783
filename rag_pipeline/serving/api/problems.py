"""Errors as `application/problem+json`, without paths, keys or tracebacks, and their codes."""

from __future__ import annotations

import logging
import math
import traceback
from http import HTTPStatus
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NotRequired

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from typing_extensions import TypedDict  # pydantic cannot document typing.TypedDict in Python 3.11

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.retrieval.logs import write_json
from rag_pipeline.serving.api.bodies import make_schema
from rag_pipeline.serving.replies import PROBLEM, AsciiJsonResponse, make_problem, word_invalid

if TYPE_CHECKING:
    from fastapi import FastAPI, Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_KNOWN: Final = {
    400: ("REQUEST_INVALID", "The body is not valid JSON."),
    404: ("NOT_FOUND", "This service has nothing at this address."),
    405: ("METHOD_NOT_ALLOWED", "This address does not accept this method."),
    413: ("BODY_TOO_LARGE", "The body is too large."),
}
_RETRY_AFTER_S: Final = 1.0
_MAX_FIELDS: Final = 20


class FieldProblem(TypedDict):
    """A field of a request that is not valid, such as `filters.tags`; empty for the whole body."""

    field: str
    problem: str


class Problem(TypedDict):
    """An error. The code is stable; `errors` lists at most 20 invalid fields of the request."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[FieldProblem]]


class ProblemError(HTTPException):
    """An error that has no class of its own, with the stable code for its problem document."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        self.code = code
        super().__init__(status, detail)


def describe_error(error: Exception) -> tuple[str, str, bool, float | None]:
    """Return the code, the message, if a retry can help, and after how many seconds."""
    if isinstance(error, RagPipelineError):
        wait = error.retry_after_s
        if wait is None and error.transient:
            wait = _RETRY_AFTER_S
        return error.code, error.public_message, error.transient, wait
    return "INTERNAL_ERROR", "The service failed. Try again later.", False, None


def document_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a route for the OpenAPI document."""
    content = {PROBLEM: {"schema": make_schema(TypeAdapter(Problem))}}
    documented: dict[int | str, dict[str, Any]] = {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses
    }
    for status in {429, 503, 504}.intersection(statuses):
        schema = {"type": "integer", "minimum": 0}
        description = "Seconds to wait before the next try; missing if no time is known."
        documented[status]["headers"] = {"Retry-After": {"schema": schema}}
        documented[status]["headers"]["Retry-After"]["description"] = description
    return documented | {"default": {"description": "An error", "content": content}}


def add_problem_handlers(app: FastAPI) -> None:
    """Make an app answer all errors with problem documents."""
    app.add_exception_handler(RagPipelineError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(Exception, _answer_error)  # of the parts around `catch_errors`


async def _answer_error(_: Request, error: Exception) -> AsciiJsonResponse:
    code, message, _transient, wait = describe_error(error)
    status = error.http_status if isinstance(error, RagPipelineError) else 500
    headers = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
    return make_problem(status, code, message, headers=headers)


async def _answer_http(_: Request, error: Exception) -> AsciiJsonResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(getattr(error, "headers", None) or {})
    if isinstance(error, ProblemError):
        return make_problem(status, error.code, error.detail)
    code, detail = _KNOWN.get(status, ("HTTP_ERROR", HTTPStatus(status).phrase))
    return make_problem(status, code, detail, headers=headers)


async def _answer_invalid(request: Request, error: Exception) -> AsciiJsonResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    if any(entry["type"] == "json_invalid" for entry in found):
        return make_problem(400, *_KNOWN[400])
    if any(isinstance(entry.get("input"), bytes) for entry in found):
        named = request.headers.get("content-type", "")
        detail = f"Send the body as application/json, not as {named:.80}."
        return make_problem(
            415, "MEDIA_TYPE_UNSUPPORTED", detail.replace("as .", "without a type.")
        )
    errors = [
        {"field": ".".join(map(str, entry["loc"][1:]))[:200], "problem": word_invalid(entry)}
        for entry in found[:_MAX_FIELDS]
    ]
    told = "; ".join(f"{one['field'] or 'the body'}: {one['problem']}" for one in errors)
    return make_problem(422, "REQUEST_INVALID", f"Not valid: {told:.300}", errors=errors)


_FRAMES: Final = 5
_logger = logging.getLogger(__name__)


def log_failure(event: str, error: Exception) -> None:
    """Log an error as one JSON line, without its message, which could contain a question.

    The line names the classes of the error and its causes, and where the error was raised.

    Args:
        event: The name of what failed, such as `stream_failed`.
        error: The error.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    where = [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    code, causes = describe_error(error)[0], _name_causes(error)
    write_json(_logger, "event").warning(event, code=code, error=causes, where=where)


def catch_errors(app: ASGIApp) -> ASGIApp:
    """Return the application with an answer for every error that it does not handle itself.

    The answer is a problem document with the status 500. If a response has already begun, it is cut
    off, because its status cannot be changed.
    """

    async def caught(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, note)
        except ClientDisconnect:
            return  # nobody waits for an answer
        except Exception as error:  # noqa: BLE001  # every error needs an answer
            log_failure("request_failed", error)
            if not has_begun:
                code, detail, _transient, _wait = describe_error(error)
                await make_problem(500, code, detail)(scope, receive, send)

    return caught


def _name_causes(error: BaseException) -> list[str]:
    """Return the names of the classes of an error and of the errors that caused it."""
    names: list[str] = []
    found: BaseException | None = error
    while found is not None and len(names) < _FRAMES:
        names.append(type(found).__name__)
        found = found.__cause__ or found.__context__
    return names
