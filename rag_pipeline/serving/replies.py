"""How the service replies: JSON, descriptions of errors, and streams of events."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.responses import JSONResponse, Response, StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

EVENT_STREAM: Final = "text/event-stream"
PROBLEM: Final = "application/problem+json"
_CLIENT_CLOSED_REQUEST: Final = 499

_Result = TypeVar("_Result")


class AsciiJsonResponse(JSONResponse):
    """A JSON response in ASCII, so that it can carry any text, also unpaired surrogates."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401  # any JSON, as the base class has it
        """Return the encoded content."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


_WORDED: Final = {
    "missing": "this field is required",
    "extra_forbidden": "there is no such field",
    "model_attributes_type": "this must be a JSON object",
}
"""What is wrong with a value, for kinds of pydantic's errors whose own words are not plain."""


def word_invalid(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, in at most 500 characters.

    Args:
        error: One of the `errors()` of pydantic.
    """
    return _WORDED.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")[:500]


def answer_disconnected() -> Response:
    """Return the response to a request whose client has disconnected.

    The client never sees it. Its status 499, which is nginx's, keeps the request from being counted
    as a success.
    """
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


def prefers(accept: str, wanted: str, default: str) -> bool:
    """Return True if a client asks for a media type by name, and rather than for the default.

    Args:
        accept: The `Accept` header; may be empty.
        wanted: The media type, such as `text/event-stream`. Wildcards do not ask for it.
        default: The media type that is sent otherwise.
    """
    quality: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [_read_weight(text) for text in parameters if text.startswith("q=")]
        quality[media] = weights[0] if weights else 1.0
    asked = quality.get(wanted, 0.0)
    return asked > 0 and asked >= quality.get(default, 0.0)


def _read_weight(parameter: str) -> float:
    try:
        weight = float(parameter.removeprefix("q="))
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


def describe_problem(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return the description of an error, for the media type `application/problem+json`."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }


def make_problem(
    status: int,
    code: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    *,
    errors: Sequence[Mapping[str, str]] | None = None,
) -> AsciiJsonResponse:
    """Return the response that describes an error as `application/problem+json`.

    Args:
        status: The HTTP status.
        code: The stable upper-case name of the error.
        detail: One or two sentences for people.
        headers: More headers of the response.
        errors: The invalid fields of the request, if they are known.
    """
    body = describe_problem(status, code, detail)
    if errors is not None:
        body["errors"] = errors
    return AsciiJsonResponse(body, status, headers, media_type=PROBLEM)


class EventResponse(StreamingResponse):
    """A stream of server-sent events, which is closed as soon as its client disconnects.

    Starlette's own class notices that only when it sends the next event.

    Args:
        events: The encoded events. The generator is closed in any case.
    """

    media_type = EVENT_STREAM

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the last one, or until the client disconnects."""
        del scope
        try:
            with suppress(OSError):  # some servers raise it if the client has disconnected
                await run_while_connected(receive, self.stream_response(send))
        finally:
            await self._events.aclose()


async def run_while_connected(
    receive: Receive, work: Coroutine[Any, Any, _Result]
) -> _Result | None:
    """Return the result of some work, or cancel it and return None if the client disconnects.

    Args:
        receive: Receives the messages of a request whose body has been read.
        work: What to do for the request.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        watching.cancel()
        # An error of cancelled work that nobody reads would be logged with its message.
        await asyncio.gather(working, watching, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
