"""Work that ends when its client disconnects."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from fastapi.responses import StreamingResponse

from rag_pipeline.serving.api.responses import MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from typing import Any

    from starlette.types import Receive, Scope, Send

_Result = TypeVar("_Result")


class EventResponse(StreamingResponse):
    """A stream of server-sent events, which is closed as soon as its client disconnects.

    Starlette's own class notices that only when it sends the next event.

    Args:
        events: The encoded events. The generator is closed in any case.
    """

    media_type = MEDIA_TYPE

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
