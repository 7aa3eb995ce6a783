"""Calls to services over HTTP: which error a failure becomes, when a call is tried again, and which
words of a service may be shown.
"""

from __future__ import annotations

import base64
import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote, urlsplit

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

TRIES: Final = 3
_FIRST_WAIT_S: Final = 0.5  # doubled for each further try
_LONGEST_QUOTE: Final = 200  # characters; a message is one line

UNREADABLE: Final = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
)
"""Errors that reading an answer raises if the answer does not have the service's form."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that is called over HTTP, and the one table from its failures to our errors.

    Attributes:
        name: The service in a message, such as "the embedding service".
        kind: What the service should be, such as "an embedding service".
        host: Host and port, without a login.
        api_key: Replaced by *** in messages; empty for none.
        refused_error: Raised if the same call would fail again.
        failed_error: Raised if the same call may succeed later.
        late_error: Raised if no answer came in time.
        key_setting: Setting of the key.
        url_setting: Setting of the address.
        hint: What to do if the service refuses a request.
        late_hint: What to do if no answer came in time.
        model: The model that is asked for; empty if the service has no models.
        model_setting: Setting of the model.
        tries: How often the call was made before an error is shown; empty if that differs.
        transient_statuses: Statuses below 500 after which the call is tried again.
    """

    name: str
    kind: str
    host: str
    api_key: str
    refused_error: type[RagPipelineError]
    failed_error: type[RagPipelineError]
    late_error: type[RagPipelineError]
    key_setting: str
    url_setting: str
    hint: str
    late_hint: str
    model: str = ""
    model_setting: str = ""
    tries: str = " three times"
    transient_statuses: frozenset[int] = frozenset({408, 429})

    @property
    def place(self) -> str:
        """Name and host."""
        return f"{self.name} at {self.host}"

    @property
    def _request(self) -> str:
        return f"a request for model {self.model}" if self.model else "a request"

    def translate_status(
        self, status: int, text: object, retry_after: str | None, *, has_quota: bool = True
    ) -> RagPipelineError:
        """Return the error for an HTTP status.

        Args:
            status: Of the answer; 0 if the answer could not be read that far.
            text: The service's own message.
            retry_after: Its Retry-After header.
            has_quota: False if the service says that the account's quota is spent.
        """
        said = f"HTTP {status}: {quote_vendor(text, self.api_key)}"
        if status in {401, 403}:
            problem = f"{self.place} refused it (HTTP {status})"
            mend = f"Set a key that may use {'the model' if self.model else 'it'}"
            return ConfigurationError(self.key_setting, problem, mend)
        if not has_quota:
            problem = f"its account at {self.host} has no quota left (HTTP {status})"
            return ConfigurationError(self.key_setting, problem, "Add credit or use another key")
        if status in self.transient_statuses or status >= 500:
            failure = self.fail(f"failed{self.tries} ({said}). Try again later")
            failure.retry_after_s = read_retry_after(retry_after)
            return failure
        if status == 404 and self.model:
            problem = f"the service at {self.host} does not know {self.model} ({said})"
            mend = f"Check it and {self.url_setting}"
            return ConfigurationError(self.model_setting, problem, mend)
        if status == 404 or status < 300:
            return self.describe_unreadable("HTTP 404" if status == 404 else "malformed JSON")
        return self.refused_error(f"{self.place} refused {self._request} ({said}). {self.hint}")

    def describe_late(self, timeout_s: float) -> RagPipelineError:
        """Return the error for no answer in time."""
        tries = f",{self.tries}" if self.tries else ""
        return self.late_error(
            f"{self.place} did not complete {self._request} within {timeout_s:g} s{tries}. "
            f"{self.late_hint}"
        )

    def describe_unreachable(self, cause: BaseException | None) -> RagPipelineError:
        """Return the error for a connection that was not made, or that broke."""
        reason = type(cause).__name__ if cause else "no connection"
        check = f"Check that it runs, {self.url_setting} and the network"
        return self.fail(f"cannot be reached or broke off ({reason}). {check}")

    def describe_unreadable(self, detail: str) -> RagPipelineError:
        """Return the error for an answer that such a service would not give."""
        settings = (
            f"{self.url_setting} and {self.model_setting}" if self.model else self.url_setting
        )
        return self.refused_error(
            f"{self.host} did not answer as {self.kind} does ({detail}). Check {settings}"
        )

    def fail(self, problem: str) -> RagPipelineError:
        """Return the error for a failure after which the same call may succeed."""
        return self.failed_error(f"{self.place} {problem}")


def call_with_retries(
    action: Callable[[], _Result],
    *,
    longest_wait_s: float,
    sleep: Callable[[float], None],
    longest_s: float = math.inf,
) -> tuple[_Result, int]:
    """Run an action until it succeeds, fails for good, or has failed three times.

    Only a `RagPipelineError` with `transient` set is tried again. The wait is the error's
    `retry_after_s` if the service named one, else 0.5 s doubled each time, plus up to half of that
    at random so that callers do not come back together.

    Args:
        action: Raises errors of this package.
        longest_wait_s: Bound on any single wait, a Retry-After included.
        sleep: Takes seconds; `time.sleep` outside tests.
        longest_s: Bound on all tries and waits together. The call gives up with the last error
            instead of a wait that would end later.

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
    """Return the seconds that a Retry-After header asks for, or None if it cannot be read.

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


def name_host(url: str) -> str:
    """Return host and port of an address, without user, password, path and query."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.hostname or 'an address without a host'}{port}"


def separate_login(url: str) -> tuple[str, dict[str, str]]:
    """Split an address into one without a login, and the header that carries the login.

    HTTP clients write addresses to their logs. The header is missing if the address has no user.
    """
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    token = base64.b64encode(login.encode("utf-8")).decode("ascii")
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def quote_vendor(text: object, secret: str) -> str:
    """Return a service's message on one line, at most 200 characters, the secret as ***."""
    line = " ".join(str(text).split())
    if secret:
        line = line.replace(secret, "***")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 3] + "..."
