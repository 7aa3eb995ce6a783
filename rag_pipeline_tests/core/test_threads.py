"""Threads that a signal does not wait for."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Timer
from typing import TYPE_CHECKING

from rag_pipeline.core.threads import LeavableThreads

if TYPE_CHECKING:
    from concurrent.futures import Future


def leave(error: BaseException, gate: Event) -> tuple[Future[bool], Future[bool]]:
    """End a pool by an error while one call waits for the gate, with another one behind it."""
    has_begun = Event()

    def wait() -> bool:
        has_begun.set()
        return gate.wait(30)

    calls: list[Future[bool]] = []
    with suppress(type(error)), LeavableThreads(1) as threads:
        calls += [threads.submit(wait), threads.submit(wait)]
        assert has_begun.wait(30)
        raise error
    return calls[0], calls[1]


def test_a_signal_leaves_a_call_that_has_begun() -> None:
    gate = Event()
    first, second = leave(KeyboardInterrupt(), gate)
    assert first.running()
    assert second.cancelled()
    gate.set()
    assert first.result(30)


def test_an_error_waits_for_a_call_that_has_begun() -> None:
    gate = Event()
    Timer(0.05, gate.set).start()
    first, second = leave(ValueError(), gate)
    assert first.done()
    assert second.cancelled() or second.done()
