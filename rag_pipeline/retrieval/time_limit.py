"""Waiting for a call no longer than a caller will."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.errors import RagPipelineError

_Result = TypeVar("_Result")

_MAX_RUNNING: Final = 32
"""Calls under way at once, those given up on included: a hung service cannot pile up threads."""

_running = threading.BoundedSemaphore(_MAX_RUNNING)


def run_within(
    seconds: float,
    action: Callable[[], _Result],
    on_timeout: Callable[[float], RagPipelineError],
) -> _Result:
    """Run an action in a thread of its own and wait for it at most some seconds.

    A thread cannot be stopped: one that was given up on ends by the adapters' own time limits, and
    never keeps the process alive.

    Raises:
        RagPipelineError: What `on_timeout` builds from the seconds, or the action's own.
    """
    if not _running.acquire(timeout=max(seconds, 0.0)):
        raise on_timeout(seconds)
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as error:  # noqa: BLE001  # handed on to the waiting caller
            future.set_exception(error)
        finally:
            _running.release()

    threading.Thread(target=run, name="retrieval-call", daemon=True).start()
    try:
        return future.result(timeout=max(seconds, 0.0))
    except FutureTimeoutError:
        if future.done():  # the action's own TimeoutError
            raise
        raise on_timeout(seconds) from None
