"""The one retry policy towards services: three tries, growing random waits, Retry-After honoured.

Belongs here: when to try again and how long to wait. Does not belong here: which vendor error is
transient; each adapter says that by the error it raises.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from rag_pipeline.core.errors import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

TRIES: Final = 3
_FIRST_WAIT_S: Final = 0.5  # doubled for each further try


def call_with_retries(
    action: Callable[[], _Result],
    *,
    longest_wait_s: float,
    sleep: Callable[[float], None],
    longest_s: float = math.inf,
) -> tuple[_Result, int]:
    """Run an action until it succeeds, fails for good, or has failed three times.

    Only a `RagPipelineError` with `transient` set is tried again. The wait is its `retry_after_s`
    where the service named one, else 0.5 s doubled each time, plus up to half of that at random so
    that callers do not come back together.

    Args:
        action: Raises errors of this package.
        longest_wait_s: Bound on any single wait, a Retry-After included.
        sleep: Takes seconds; `time.sleep` outside tests.
        longest_s: Of all tries and waits; a wait that would end later gives up with the last error.

    Returns:
        The action's result and how many retries it took.
    """

    def wait_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_s = getattr(error, "retry_after_s", None)
        backoff_s = _FIRST_WAIT_S * 2 ** (state.attempt_number - 1)
        backoff_s *= 1 + random.random() / 2  # noqa: S311  # spreads load, keeps no secret
        return float(min(backoff_s if asked_s is None else asked_s, longest_wait_s))

    retrying = Retrying(
        stop=stop_after_attempt(TRIES) | stop_before_delay(longest_s),
        retry=retry_if_exception(lambda e: isinstance(e, RagPipelineError) and e.transient),
        wait=wait_s,
        sleep=sleep,
        reraise=True,
    )
    result = retrying(action)
    return result, int(retrying.statistics["attempt_number"]) - 1


def read_retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for; None for none or one that cannot be read.

    Source:
        RFC 9110, section 10.2.3: a number of seconds or an HTTP date.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (zoned - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
