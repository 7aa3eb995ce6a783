"""The circuit breaker, tested with a clock that the test sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from rag_pipeline.core.errors import QueryError, StoreUnavailableError
from rag_pipeline.retrieval.limits import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


def call(breaker: CircuitBreaker, action: Callable[[], _Result]) -> _Result:
    """Run an action through a breaker."""
    with breaker.passing():
        return action()


def test_a_failed_probe_keeps_the_breaker_open() -> None:
    now = [0.0]
    breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store", lambda: now[0])

    def fail() -> None:
        raise StoreUnavailableError("down")

    for expected in ("down", "calls are paused"):
        with pytest.raises(StoreUnavailableError, match=expected):
            call(breaker, fail)
    now[0] = 11.0
    assert breaker.state == "half-open"
    with pytest.raises(StoreUnavailableError, match="down"):
        call(breaker, fail)
    assert breaker.state == "open"
    now[0] = 22.0
    assert call(breaker, lambda: 7) == 7
    assert breaker.state == "closed"


def test_only_one_probe_passes_at_a_time() -> None:
    now = [0.0]
    breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store", lambda: now[0])

    def fail() -> None:
        raise StoreUnavailableError("down")

    with pytest.raises(StoreUnavailableError, match="down"):
        call(breaker, fail)
    now[0] = 11.0

    def probe() -> int:
        with pytest.raises(StoreUnavailableError, match="paused"):
            call(breaker, lambda: 0)
        return 7

    assert call(breaker, probe) == 7


def test_the_success_of_a_call_from_before_the_breaker_opened_is_ignored() -> None:
    now = [0.0]
    breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store", lambda: now[0])

    def fail() -> None:
        raise StoreUnavailableError("down")

    def fail_while_open() -> int:
        with pytest.raises(StoreUnavailableError, match="down"):
            call(breaker, fail)
        return 7

    assert call(breaker, fail_while_open) == 7  # the call began while the breaker was closed
    assert breaker.state == "open"


def test_an_interrupted_probe_neither_opens_nor_closes_the_breaker() -> None:
    now = [0.0]
    breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store", lambda: now[0])

    def fail() -> None:
        raise StoreUnavailableError("down")

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(StoreUnavailableError, match="down"):
        call(breaker, fail)
    now[0] = 11.0
    with pytest.raises(KeyboardInterrupt):
        call(breaker, interrupt)
    assert breaker.state == "half-open"
    assert call(breaker, lambda: 7) == 7


def test_errors_that_are_not_transient_never_open_the_breaker() -> None:
    breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store")
    for _ in range(3):
        with pytest.raises(QueryError):
            call(breaker, lambda: (_ for _ in ()).throw(QueryError("bad")))
    assert breaker.state == "closed"
