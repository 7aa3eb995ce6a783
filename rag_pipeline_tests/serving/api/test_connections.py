"""Work that ends when its client disconnects."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.serving.replies import EventResponse, run_while_connected

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, MutableMapping


class Connection:
    """The ASGI side of a connection, with the messages that were sent."""

    def __init__(self, *, fails: bool = False) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.has_event = asyncio.Event()
        self._fails = fails

    async def receive(self) -> dict[str, Any]:
        """Return a part of the body first, and then wait until the client is gone."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Record a message, or fail as servers do after a disconnect."""
        if self._fails:
            raise OSError
        self.sent.append(dict(message))
        if message.get("body"):
            self.has_event.set()


class Source:
    """Events that never end, and the knowledge whether they were closed."""

    def __init__(self) -> None:
        self.closed = False

    async def write(self) -> AsyncGenerator[bytes, None]:
        """Yield one event and then wait for ever."""
        try:
            yield b"data: {}\n\n"
            await asyncio.Event().wait()
        finally:
            self.closed = True


def test_work_ends_with_its_result_or_its_error() -> None:
    async def run() -> None:
        connection = Connection()
        assert await run_while_connected(connection.receive, asyncio.sleep(0, "done")) == "done"
        with pytest.raises(ZeroDivisionError):
            await run_while_connected(connection.receive, fail())

    async def fail() -> None:
        raise ZeroDivisionError

    asyncio.run(run())


def test_an_error_of_cancelled_work_is_not_logged() -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a secret")

    async def run() -> None:
        logged: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        connection = Connection()
        running = asyncio.ensure_future(run_while_connected(connection.receive, work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the work has begun
        connection.gone.set()
        assert await running is None
        gc.collect()  # tasks report errors that nobody read when they are collected
        assert logged == []

    asyncio.run(run())


def test_a_disconnect_cancels_work_and_closes_events() -> None:
    async def run() -> None:
        connection, source = Connection(), Source()
        connection.gone.set()
        assert await run_while_connected(connection.receive, asyncio.Event().wait()) is None
        await EventResponse(source.write())({}, connection.receive, connection.send)
        assert source.closed

    asyncio.run(run())


def test_a_cancelled_response_closes_its_events() -> None:
    async def run() -> None:
        connection, source = Connection(), Source()
        response = EventResponse(source.write())({}, connection.receive, connection.send)
        task = asyncio.ensure_future(response)
        await connection.has_event.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert source.closed

    asyncio.run(run())


def test_a_server_that_raises_after_a_disconnect_is_no_fault() -> None:
    async def run() -> None:
        connection, source = Connection(fails=True), Source()
        await EventResponse(source.write())({}, connection.receive, connection.send)
        assert connection.sent == []

    asyncio.run(run())
