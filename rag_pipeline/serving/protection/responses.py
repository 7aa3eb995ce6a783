"""Responses to requests that the application does not see."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Send


def describe_problem(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return the description of an error, for the media type `application/problem+json`."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }


async def send_problem(
    send: Send, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> None:
    """Send a complete response that describes an error as `application/problem+json`.

    Args:
        send: The function that sends ASGI messages.
        status: The HTTP status.
        code: The stable upper-case name of the error.
        detail: One or two sentences for people.
        headers: More headers of the response.
    """
    body = json.dumps(describe_problem(status, code, detail)).encode()
    await send_response(
        send, status, body, {"content-type": "application/problem+json", **(headers or {})}
    )


async def send_response(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a complete response."""
    lines = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    if status != HTTPStatus.NO_CONTENT:
        lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
