"""Calls to HTTP services: addresses, clients, retries, and the error for each failure."""

from __future__ import annotations

import base64
import json
import math
import os
import random
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError, describe_kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from types import ModuleType

    from pydantic import SecretStr


_CERTIFICATES: Final = "SSL_CERT_FILE"
_MORE_CERTIFICATES: Final = "SSL_CERT_DIR"
_SCHEMES: Final = ("all", "https", "http")  # of the variables ALL_PROXY, HTTPS_PROXY, HTTP_PROXY


@contextmanager
def reading_environment() -> Iterator[None]:
    """Turn the errors of creating an HTTP client into errors that name an environment variable.

    The messages contain no proxy's address, because it may contain a password.

    Raises:
        ConfigurationError: The file of certificates cannot be read, or a proxy is not usable.
    """
    try:
        yield
    except ImportError as error:
        if not _list_proxies("socks"):
            raise
        problem = "a SOCKS proxy needs the package socksio, which is not installed"
        remedy = "Install it with `pip install socksio`, or unset the variable"
        raise ConfigurationError(_list_proxies("socks"), problem, remedy) from error
    except OSError as error:
        path = os.environ.get(_CERTIFICATES)
        if not path:
            raise
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
        problem = f"the certificates in {path} cannot be read ({reason})"
        raise ConfigurationError(
            _CERTIFICATES, problem, "Set it to a PEM file with certificates, or unset it"
        ) from error
    except ValueError as error:
        if not _list_proxies() or "proxy" not in str(error):
            raise
        problem = "the address of the proxy is not valid"
        raise ConfigurationError(
            _list_proxies(), problem, "Example: http://localhost:3128"
        ) from None


def share_certificates() -> ssl.SSLContext:
    """Return the certificates that all clients of `httpx2` share. To load them takes 0.1 s.

    Raises:
        ConfigurationError: The file of certificates cannot be read.
    """
    with reading_environment():
        return _load_certificates(*map(os.environ.get, (_CERTIFICATES, _MORE_CERTIFICATES)))


@cache
def _load_certificates(*_: str | None) -> ssl.SSLContext:
    import httpx2  # noqa: PLC0415  # installed with the openai client; other processes do not need it

    return httpx2.create_ssl_context()


def describe_broken(cause: BaseException | None) -> str:
    """Return why a connection was not made or broke off, such as `connect error`.

    For a failure of TLS, the reason says what is wrong with the certificate or the connection.
    """
    error = cause
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not accepted: {error.verify_message}; {_CERTIFICATES} can "
                "name a file with other certificates"
            )
        if isinstance(error, ssl.SSLError):
            return "it does not speak TLS, as https:// requires"
        error = error.__cause__ or error.__context__
    return describe_kind(cause) if cause else "no connection"


def advise_on_proxy(host: str) -> str:
    """Return a sentence about the proxy of the environment; empty if none is used for a host.

    Args:
        host: Host of the service, with or without a port.
    """
    names = _list_proxies()
    if not names or proxy_bypass(host):
        return ""
    return f". The environment names a proxy ({names}): check it, or add the host to NO_PROXY"


def _list_proxies(scheme: str = "") -> str:
    """Return the variables that name proxies whose addresses begin with a scheme."""
    proxies = getproxies()
    return ", ".join(
        f"{kind.upper()}_PROXY"
        for kind in _SCHEMES
        if proxies.get(kind, "").startswith(scheme) and kind in proxies
    )


_EXAMPLES: Final = {
    "QDRANT_URL": "http://localhost:6333",
    "OPENAI_BASE_URL": "http://localhost:8000/v1",
}
"""An address as an example for an error message, by setting."""


def read_key(setting: str, secret: SecretStr) -> str:
    """Return an API key without surrounding spaces, checked for use in an HTTP header.

    The check is made here because the error of an HTTP client would show the key.

    Raises:
        ConfigurationError: The key is empty, or contains spaces, control or non-ASCII characters.
    """
    key = secret.get_secret_value().strip()
    if not key:
        raise ConfigurationError(
            setting, "the key is not set", "Set it in the environment or in .env"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        problem = "the key contains spaces, line breaks or non-ASCII characters"
        raise ConfigurationError(setting, problem, "Copy it again, without quotes or line breaks")
    return key


def read_url(setting: str, url: str, *, has_query: bool = False) -> str:
    """Return a URL without surrounding spaces after checking it; an empty text stays empty.

    An error message never shows the URL, because the URL may contain a password.

    Args:
        setting: Name of the setting or option, for the error message.
        url: URL to check.
        has_query: Accept a query, such as the version of Azure's API.

    Raises:
        ConfigurationError: The URL does not begin with http:// or https://, has no valid host or
            port, or has a query or a fragment.
    """
    stripped = url.strip()
    example = f"Example: {_EXAMPLES.get(setting, 'http://localhost:8000')}"
    if stripped and not stripped.startswith(("http://", "https://")):
        problem = "the URL does not begin with http:// or https://"
        raise ConfigurationError(setting, problem, example)
    try:
        parts = urlsplit(stripped)
        is_usable = not stripped or bool(parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigurationError(setting, "the URL is not valid", example)
    if (parts.query and not has_query) or parts.fragment:
        problem = "the URL contains a query or a fragment (? or #)"
        raise ConfigurationError(
            setting, problem, "Remove that part; an API key has its own setting"
        )
    return stripped


def read_headers(setting: str, secret: SecretStr) -> dict[str, str]:
    """Return the headers in a JSON object; an error message never shows them.

    Raises:
        ConfigurationError: The text is not a JSON object of texts that a header can contain.
    """
    text = secret.get_secret_value().strip()
    try:
        headers = json.loads(text or "{}")
    except ValueError:
        headers = None
    usable = isinstance(headers, dict) and all(
        isinstance(value, str) and f"{name}{value}".isascii() and f"{name}{value}".isprintable()
        for name, value in headers.items()
    )
    if not isinstance(headers, dict) or not usable:
        problem = "the headers are not a JSON object of texts without line breaks"
        raise ConfigurationError(setting, problem, 'Example: {"X-Title": "My book"}')
    return headers


_CONNECTED = ("connect_tcp.complete", "start_tls.complete")  # ends of the trace events' names


def limit_answers(http: ModuleType, seconds: float) -> dict[str, list[Callable[[Any], None]]]:
    """Return event hooks that give an HTTP client a time limit for each whole request.

    A client's own read timeout starts again with every byte that arrives. It never stops a
    response whose headers, chunk lengths or trailers arrive byte by byte.

    Args:
        http: Module of the client, `httpx` or `httpx2`.
        seconds: Time limit from the start of a request to the last byte of its response. After
            that, a read raises the module's own ReadTimeout.

    Returns:
        Value for the client's `event_hooks` argument.
    """
    current = threading.local()  # a request is sent and its response read in one thread

    def begin(request: Any) -> None:  # noqa: ANN401  # a request class of `http`
        current.deadline = time.monotonic() + seconds
        request.extensions["trace"] = follow

    def follow(event: str, details: dict[str, Any]) -> None:
        if event.endswith(_CONNECTED):
            # The wrapper stays on the connection and also limits later requests. A custom transport
            # could do the same, but with one the clients ignore the proxies of the environment.
            stream = details["return_value"]
            stream.read = partial(read, stream.read)

    def read(
        read_more: Callable[..., bytes], max_bytes: int, timeout: float | None = None
    ) -> bytes:
        left_s = current.deadline - time.monotonic()
        if left_s <= 0:
            message = f"the response took longer than {seconds:g} s"
            raise http.ReadTimeout(message)
        return read_more(max_bytes, left_s if timeout is None else min(timeout, left_s))

    return {"request": [begin]}


_Result = TypeVar("_Result")

TRIES: Final = 3
_FIRST_WAIT_S: Final = 0.5  # doubled after each attempt
_LONGEST_QUOTE: Final = 200  # characters; a message is one line

UNREADABLE: Final = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
)
"""Exceptions raised while reading a response that does not have the expected form."""


@dataclass(frozen=True, slots=True)
class Service:
    """An HTTP service, with the rules that turn its failures into errors of this package.

    Attributes:
        name: Name of the service in messages, such as "the embedding service".
        kind: Kind of service that should be at the URL, such as "an embedding service".
        host: Host and port of the service, without user and password.
        api_key: API key, which messages show as ***. Empty if there is no key.
        refused_error: Error class for a call that would fail again.
        failed_error: Error class for a call that may succeed later.
        late_error: Error class for a call without a response in time.
        key_setting: Name of the setting for the API key.
        url_setting: Name of the setting for the URL.
        hint: Advice in the message if the service rejects a request.
        late_hint: Advice in the message if no response arrives in time.
        model: Name of the requested model. Empty if the service has no models.
        model_setting: Name of the setting for the model.
        tries: Number of attempts in messages, such as " three times"; empty if the number varies.
        transient_statuses: HTTP statuses below 500 after which a call is retried.
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
        """Name and host of the service, for messages."""
        return f"{self.name} at {self.host}"

    @property
    def _request(self) -> str:
        return f"a request for model {self.model}" if self.model else "a request"

    def translate_status(
        self, status: int, text: object, retry_after: str | None, *, has_quota: bool = True
    ) -> RagPipelineError:
        """Return the error for an HTTP status of the service.

        Args:
            status: HTTP status of the response, or 0 if it could not be read.
            text: The service's own error message, which the error quotes.
            retry_after: Value of the Retry-After header, or None.
            has_quota: False if the service says that the account's quota is used up.

        Returns:
            A `ConfigurationError` for a rejected key, a used-up quota or an unknown model. A
            `failed_error` for a status after which a call is retried. Otherwise a `refused_error`.
        """
        said = f"HTTP {status}: {quote_vendor(text, self.api_key)}"
        if status in {401, 403}:  # with 401, services quote a part of the key
            problem = f"{self.place} rejected the key ({said if status == 403 else 'HTTP 401'})"
            remedy = f"Set a key that may use {'the model' if self.model else 'the service'}"
            return ConfigurationError(self.key_setting, problem, remedy)
        if not has_quota:
            problem = f"the key's account at {self.host} has no quota left (HTTP {status})"
            return ConfigurationError(self.key_setting, problem, "Add credit or use another key")
        if status in self.transient_statuses or status >= 500:
            failure = self.fail(f"failed{self.tries} ({said}). Try again later")
            failure.retry_after_s = read_retry_after(retry_after)
            return failure
        if status == 404 and self.model:
            problem = f"the service at {self.host} does not have model {self.model} ({said})"
            remedy = f"Check the model's name and {self.url_setting}"
            return ConfigurationError(self.model_setting, problem, remedy)
        if status == 404 or status < 300:
            return self.describe_unreadable("HTTP 404" if status == 404 else "malformed JSON")
        return self.refused_error(f"{self.place} rejected {self._request} ({said}). {self.hint}")

    def describe_late(self, timeout_s: float) -> RagPipelineError:
        """Return the error for a call that got no complete response within `timeout_s` seconds."""
        tries = f" (tried{self.tries})" if self.tries else ""
        return self.late_error(
            f"{self.place} did not complete {self._request} within {timeout_s:g} s{tries}. "
            f"{self.late_hint}"
        )

    def describe_unreachable(self, cause: BaseException | None) -> RagPipelineError:
        """Return the error for a connection that could not be made, or that broke off.

        The error may be retried. Its message names the cause.
        """
        problem = f"cannot be reached or closed the connection ({describe_broken(cause)})"
        check = f"Check {self.url_setting}, the network, and that the service is running"
        return self.fail(f"{problem}. {check}{advise_on_proxy(self.host)}")

    def describe_unreadable(self, cause: str | Exception) -> RagPipelineError:
        """Return the error for a response that does not have the form of this kind of service.

        Args:
            cause: Short reason for the message, such as "malformed JSON", or the error that
                reading the response raised.
        """
        detail = cause if isinstance(cause, str) else describe_kind(cause)
        settings = (
            f"{self.url_setting} and {self.model_setting}" if self.model else self.url_setting
        )
        return self.refused_error(
            f"the response from {self.host} is not what {self.kind} would send ({detail}). Check "
            f"{settings}"
        )

    def fail(self, problem: str) -> RagPipelineError:
        """Return the error for a failure after which the same call may succeed later.

        Args:
            problem: End of the message, after the name and host of the service.
        """
        return self.failed_error(f"{self.place} {problem}")


def call_with_retries(
    action: Callable[[], _Result],
    *,
    longest_wait_s: float,
    sleep: Callable[[float], None],
    before_sleep: Callable[[RetryCallState], None] | None = None,
) -> tuple[_Result, int]:
    """Call an action until it succeeds, fails permanently, or has failed three times.

    Only a `RagPipelineError` whose `transient` attribute is True leads to a retry; the last error
    is raised. The wait before a retry is the error's `retry_after_s` if the service asked for one.
    Otherwise it is 0.5 s, doubled each time, plus a random part of up to a half, so that several
    callers do not retry at the same moment.

    Args:
        action: Function that makes the call once and raises errors of this package.
        longest_wait_s: Upper limit in seconds for a single wait, including a requested one.
        sleep: Function that waits the given number of seconds, such as `time.sleep`.
        before_sleep: Function that is called before each wait with the error and the wait.

    Returns:
        The action's result and the number of retries.
    """
    retrying = Retrying(sleep=sleep, before_sleep=before_sleep, **_plan_retries(longest_wait_s))
    result = retrying(action)
    return result, int(retrying.statistics["attempt_number"]) - 1


async def acall_with_retries(
    action: Callable[[], Coroutine[Any, Any, _Result]],
    *,
    longest_wait_s: float,
    sleep: Callable[[float], Awaitable[None]],
    longest_s: float,
) -> _Result:
    """Await an action by the rules of `call_with_retries`; return its result.

    The action is a coroutine function, or a `partial` of one. If the next wait would exceed
    `longest_s` seconds for all attempts and waits together, the last error is raised at once.
    """
    retrying = AsyncRetrying(sleep=sleep, **_plan_retries(longest_wait_s, longest_s))
    result: _Result = await retrying(action)
    return result


def _plan_retries(longest_wait_s: float, longest_s: float = math.inf) -> dict[str, Any]:
    def wait_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        requested_s = getattr(error, "retry_after_s", None)
        backoff_s = _FIRST_WAIT_S * 2 ** (state.attempt_number - 1)
        backoff_s *= 1 + random.random() / 2  # noqa: S311  # only spreads the load
        return float(min(backoff_s if requested_s is None else requested_s, longest_wait_s))

    return {
        "stop": stop_after_attempt(TRIES) | stop_before_delay(longest_s),
        "retry": retry_if_exception(lambda e: isinstance(e, RagPipelineError) and e.transient),
        "wait": wait_s,
        "reraise": True,
    }


def read_retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None without a valid value.

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
    """Return the host and port of a URL, without user, password, path and query.

    The result may be shown in messages. If the URL has no host or is not valid, the result is a
    short description instead.
    """
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "not readable"
    return f"{parts.hostname or 'an address without a host'}{port}"


def separate_login(url: str) -> tuple[str, dict[str, str]]:
    """Split a URL into the URL without user and password, and an Authorization header with them.

    HTTP clients write URLs to their logs, so a URL must not contain a password.

    Returns:
        The URL, and the headers for basic authentication; no headers if the URL has no user.
    """
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    token = base64.b64encode(login.encode("utf-8")).decode("ascii")
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def quote_vendor(text: object, secret: str) -> str:
    """Return a service's error message as one line that is safe to show.

    `secret` is replaced by ***, and a text over 200 characters is shortened to 200.
    """
    line = " ".join(str(text).split())
    if secret:
        line = line.replace(secret, "***")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 3] + "..."
