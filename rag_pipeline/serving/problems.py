"""Errors as `application/problem+json`, without paths, keys or tracebacks."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.serving.public_messages import describe_publicly

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

_CODES: Final = {
    400: "REQUEST_INVALID",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "BODY_TOO_LARGE",
}
_RETRY_AFTER_S: Final = 1.0


def make_problem(
    status: int,
    code: str,
    detail: str,
    *,
    headers: dict[str, str] | None = None,
    errors: list[dict[str, str]] | None = None,
) -> JSONResponse:
    """Return an error response; `errors` lists the invalid fields of the request."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors is not None:
        body["errors"] = errors
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def read_public_message(error: RagPipelineError) -> str:
    """Return the message of an error that may leave this machine."""
    return describe_publicly(error)


def describe_error(error: Exception) -> tuple[str, str, bool, float | None]:
    """Return the code, the message, if a retry can help, and after how many seconds."""
    if isinstance(error, RagPipelineError):
        wait = error.retry_after_s
        if wait is None and error.transient:
            wait = _RETRY_AFTER_S
        return error.code, read_public_message(error), error.transient, wait
    return "INTERNAL_ERROR", "The service failed. Try again later.", False, None


def add_problem_handlers(app: FastAPI) -> None:
    """Make an app answer all errors with problem documents."""

    async def answer_known(_: Request, error: Exception) -> JSONResponse:
        code, message, _transient, wait = describe_error(error)
        status = error.http_status if isinstance(error, RagPipelineError) else 500
        headers = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
        return make_problem(status, code, message, headers=headers)

    async def answer_http(_: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(getattr(error, "headers", None) or {})
        code, phrase = _CODES.get(status, "HTTP_ERROR"), HTTPStatus(status).phrase
        return make_problem(status, code, phrase, headers=headers)

    async def answer_invalid(_: Request, error: Exception) -> JSONResponse:
        found = error.errors() if isinstance(error, RequestValidationError) else []
        errors = [
            {"field": ".".join(map(str, entry["loc"][1:])), "problem": str(entry["msg"])}
            for entry in found
        ]
        named = ", ".join(entry["field"] for entry in errors if entry["field"]) or "the body"
        return make_problem(422, "REQUEST_INVALID", f"Not valid: {named:.300}", errors=errors)

    app.add_exception_handler(RagPipelineError, answer_known)
    app.add_exception_handler(HTTPException, answer_http)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(Exception, answer_known)
