"""Failing fast while a service is down, and trying it again after a while."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from rag_pipeline.core.errors import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


class CircuitBreaker:
    """Passes calls on until a service has failed several times in a row.

    Closed: calls pass. Open: calls fail at once. After `reset_s` one call at a time is let through
    as a probe: its success closes the breaker, its failure opens it for another `reset_s`. Only
    transient errors count: a damaged point or a wrong key says nothing about the service's health.

    Args:
        failures: Transient failures in a row that open it, 1 or more.
        reset_s: Seconds until a probe.
        refuse: Builds the error of a refused call from the seconds until the next probe.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        failures: int,
        reset_s: float,
        refuse: Callable[[float], RagPipelineError],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._reset_s = reset_s
        self._refuse = refuse
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        """`closed`, `open` or `half-open`."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "half-open" if self._wait_s() <= 0 else "open"

    def call(self, action: Callable[[], _Result]) -> _Result:
        """Run an action, or refuse it while the breaker is open.

        Raises:
            RagPipelineError: The action's own error, or the refusal with `retry_after_s`.
        """
        is_probe = self._enter()
        failed: bool | None = None  # of an interrupted call nothing is known
        try:
            result = action()
            failed = False
        except Exception as error:
            failed = isinstance(error, RagPipelineError) and error.transient
            raise
        finally:
            self._leave(failed=failed, is_probe=is_probe)
        return result

    def _enter(self) -> bool:
        with self._lock:
            if self._opened_at is None:
                return False
            wait_s = self._wait_s()
            if wait_s > 0 or self._probing:
                error = self._refuse(max(wait_s, 0.0))
                error.retry_after_s = max(wait_s, 0.0)
                raise error
            self._probing = True
            return True

    def _leave(self, *, failed: bool | None, is_probe: bool) -> None:
        with self._lock:
            if is_probe:
                self._probing = False
            elif self._opened_at is not None:
                return  # begun before it opened: it says nothing of the service as it is now
            if failed is None:
                return
            if not failed:
                self._failed, self._opened_at = 0, None
                return
            self._failed += 1
            if self._failed >= self._failures:
                self._opened_at = self._clock()

    def _wait_s(self) -> float:
        opened_at = self._opened_at if self._opened_at is not None else self._clock()
        return opened_at + self._reset_s - self._clock()
