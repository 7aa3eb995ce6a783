"""Tests of retries and their waits, and of texts that are safe to show."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rag_pipeline.adapters.http import (
    acall_with_retries,
    call_with_retries,
    name_host,
    quote_vendor,
    read_retry_after,
)
from rag_pipeline.core.errors import StoreError, StoreUnavailableError


def fail_with(*errors: Exception | None) -> tuple[list[int], object]:
    """Return a list with one entry per call, and an action that raises these errors in turn."""
    calls: list[int] = []

    def action() -> str:
        calls.append(1)
        error = errors[len(calls) - 1]
        if error:
            raise error
        return "done"

    return calls, action


def test_success_needs_no_wait() -> None:
    waits: list[float] = []
    assert call_with_retries(lambda: 5, longest_wait_s=9, sleep=waits.append) == (5, 0)
    assert waits == []


@pytest.mark.parametrize("error", [StoreError("for good"), KeyError("a bug")])
def test_an_error_that_is_not_transient_is_not_retried(error: Exception) -> None:
    calls, action = fail_with(error, None)
    with pytest.raises(type(error)):
        call_with_retries(action, longest_wait_s=9, sleep=pytest.fail)  # type: ignore[arg-type]  # never called
    assert len(calls) == 1


def test_waits_grow_up_to_their_limit() -> None:
    waits: list[float] = []
    calls, action = fail_with(*[StoreUnavailableError("later")] * 3)
    with pytest.raises(StoreUnavailableError):
        call_with_retries(action, longest_wait_s=0.9, sleep=waits.append)  # type: ignore[arg-type]  # a callable
    assert len(calls) == 3
    assert 0.5 <= waits[0] <= 0.75
    assert waits[1] == 0.9


def test_the_last_error_is_raised_if_the_next_wait_would_end_too_late() -> None:
    calls: list[int] = []
    waits: list[float] = []

    async def fail() -> None:
        calls.append(1)
        raise StoreUnavailableError("later")

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with pytest.raises(StoreUnavailableError, match="later"):
        asyncio.run(acall_with_retries(fail, longest_wait_s=9, longest_s=0.9, sleep=wait))
    assert (len(calls), len(waits)) == (2, 1)


def test_retry_after_is_read_in_every_form() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert read_retry_after("12") == 12
    assert read_retry_after("0.5") == 0.5
    assert read_retry_after(soon) == pytest.approx(30, abs=3)
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert read_retry_after("-5") == 0
    too_far = "Wed, 21 Oct 99999999999 07:28:00 GMT"
    for unusable in (None, "", "soon", "nan", "inf", too_far):
        assert read_retry_after(unusable) is None


def test_a_quoted_message_is_one_short_line_without_the_secret() -> None:
    assert quote_vendor("a\n b  KEY", "KEY") == "a b ***"
    assert len(quote_vendor("x" * 1000, "")) == 200


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:pass@host.example:6333/path?key=1", "host.example:6333"),
        ("http://127.0.0.1/v1", "127.0.0.1"),
        ("localhost:6333", "localhost:6333"),
        ("http://host:port", "not readable"),
    ],
)
def test_a_host_is_shown_without_user_password_path_and_query(url: str, host: str) -> None:
    assert name_host(url) == host
