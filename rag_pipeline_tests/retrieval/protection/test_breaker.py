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


class Breaking:
    """A breaker that opens after one failure for ten seconds, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.breaker = CircuitBreaker(1, 10.0, StoreUnavailableError, "store", lambda: self.now)

    def fail(self, match: str) -> None:
        """Let a call fail; the error must say something."""

        def fail() -> None:
            raise StoreUnavailableError("down")

        with pytest.raises(StoreUnavailableError, match=match):
            call(self.breaker, fail)


@pytest.fixture
def breaking() -> Breaking:
    """A breaker, and what makes it open."""
    return Breaking()


def test_a_failed_probe_keeps_the_breaker_open(breaking: Breaking) -> None:
    for expected in ("down", "calls are paused"):
        breaking.fail(expected)
    breaking.now = 11.0
    assert breaking.breaker.state == "half-open"
    breaking.fail("down")
    assert breaking.breaker.state == "open"
    breaking.now = 22.0
    assert call(breaking.breaker, lambda: 7) == 7
    assert breaking.breaker.state == "closed"


def test_only_one_probe_passes_at_a_time(breaking: Breaking) -> None:
    breaking.fail("down")
    breaking.now = 11.0

    def probe() -> int:
        breaking.fail("paused")
        return 7

    assert call(breaking.breaker, probe) == 7


def test_the_success_of_a_call_from_before_the_breaker_opened_is_ignored(
    breaking: Breaking,
) -> None:
    def fail_while_open() -> int:
        breaking.fail("down")
        return 7

    assert call(breaking.breaker, fail_while_open) == 7  # it began while the breaker was closed
    assert breaking.breaker.state == "open"


def test_an_interrupted_probe_neither_opens_nor_closes_the_breaker(breaking: Breaking) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    breaking.fail("down")
    breaking.now = 11.0
    with pytest.raises(KeyboardInterrupt):
        call(breaking.breaker, interrupt)
    assert breaking.breaker.state == "half-open"
    assert call(breaking.breaker, lambda: 7) == 7


def test_errors_that_are_not_transient_never_open_the_breaker(breaking: Breaking) -> None:
    for _ in range(3):
        with pytest.raises(QueryError):
            call(breaking.breaker, lambda: (_ for _ in ()).throw(QueryError("bad")))
    assert breaking.breaker.state == "closed"
