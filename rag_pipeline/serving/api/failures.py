"""Unexpected errors: one log line on standard error and one answer for the client."""

from __future__ import annotations

import logging
import traceback
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import structlog
from starlette.requests import ClientDisconnect

from rag_pipeline.serving.api.problems import describe_error
from rag_pipeline.serving.protection.responses import send_problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    _structure().warning(
        event, code=describe_error(error)[0], error=_name_causes(error), where=where
    )


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
                await send_problem(send, 500, code, detail)

    return caught


def _name_causes(error: BaseException) -> list[str]:
    """Return the names of the classes of an error and of the errors that caused it."""
    names: list[str] = []
    found: BaseException | None = error
    while found is not None and len(names) < _FRAMES:
        names.append(type(found).__name__)
        found = found.__cause__ or found.__context__
    return names


@cache
def _structure() -> structlog.stdlib.BoundLogger:
    # structlog's own default would print to standard output, which belongs to the user.
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        _logger,
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger
