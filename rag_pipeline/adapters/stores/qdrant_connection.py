"""Connection to a Qdrant server over REST, with a timeout, retries and error translation."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, TypeVar

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_pipeline.adapters.http import (
    Service,
    call_with_retries,
    limit_answers,
    name_host,
    quote_vendor,
    reading_environment,
    separate_login,
)
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    RequestTooLargeError,
    StoreError,
    StoreNotWritableError,
    StoreTimeoutError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.errors import RagPipelineError

_Result = TypeVar("_Result")

_MOVES: Final = re.compile(r"HTTP 5\d\d: .*\b(shard|replica)", re.IGNORECASE)
_MOVE_WAIT_S: Final = 5.0
_MOVE_WAITS: Final = 12
_LONGEST_WAIT_S: Final = 2.0  # between two attempts; a reader may be waiting
_KEPT_CONNECTIONS: Final = 16
_REFUSES_WRITES: Final = re.compile(
    r"no space left|disk (?:is )?full|out of disk|read-?only (?:file ?system|mode)"
    r"|write operations? (?:are|is) (?:forbidden|locked)|quota",
    re.IGNORECASE,
)
_MAY_ONLY_READ: Final = re.compile(r"(manage|write) access|read-?only", re.IGNORECASE)
_TOO_LARGE: Final = re.compile(r"larger than allowed|too large|upsert limit", re.IGNORECASE)
_KEEP_ALIVE_S: Final = 20.0


class QdrantConnection:
    """A Qdrant client with retries and error translation; several threads may use it.

    Args:
        client: Client of the package qdrant_client.
        host: Host and port of the server, for messages.
        timeout_s: Time limit of one request in seconds, for messages. The client enforces it.
        api_key: API key, which messages never show.
        sleep: Function that waits the given number of seconds between two attempts.
    """

    def __init__(
        self,
        client: QdrantClient,
        host: str,
        *,
        timeout_s: float = 0.0,
        api_key: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self.timeout_s = timeout_s
        self._sleep = sleep
        self._has_answered = False
        self.service = Service(
            "Qdrant",
            "Qdrant",
            host,
            api_key,
            refused_error=StoreError,
            failed_error=StoreUnavailableError,
            late_error=StoreTimeoutError,
            key_setting="QDRANT_API_KEY",
            url_setting="QDRANT_URL",
            hint="Check its version (1.16 or later) and the collection",
            late_hint="Try again later or raise QDRANT_TIMEOUT_S",
        )

    @property
    def place(self) -> str:
        """Name and host of the server, for messages."""
        return self.service.place

    def call(
        self,
        action: Callable[[QdrantClient], _Result],
        collection: str = "",
        *,
        is_patient: bool = False,
    ) -> _Result:
        """Run an action with the client, up to three times, and return its result.

        If a server that has answered before cannot be reached, the action is tried for
        `timeout_s` seconds instead: a restart takes a few seconds.

        Args:
            action: Function that sends one request with the client it is given. It must be safe to
                repeat.
            collection: Name of the collection, for the error if the server does not have it.
            is_patient: Try again for up to a minute while the server says that a shard or replica
                is not available, which is so while a cluster moves a shard to another node.

        Raises:
            StoreTimeoutError: The server did not respond in time, three times.
            StoreUnavailableError: The server was unreachable, overloaded or failing, three times.
            ConfigurationError: The server rejected the key.
            StoreNotWritableError: The server accepts no changes, for example because its disk is
                full. No further attempt is made.
            RequestTooLargeError: The server accepts only smaller requests.
            CollectionMissingError: The server does not have the collection.
            StoreError: The server rejected the request, or its response cannot be used.
        """

        def try_once() -> _Result:
            try:
                result = action(self._client)
            except ResponseHandlingException as error:
                raise self._translate_transport(error.source) from error
            except UnexpectedResponse as error:
                raise self._translate_status(
                    error, collection
                ) from None  # it may quote the request
            except QdrantException as error:
                seconds = (
                    error.retry_after_s if isinstance(error, ResourceExhaustedResponse) else ""
                )
                raise self.service.translate_status(429, "overloaded", str(seconds)) from error
            # The client asserts that a response has a result, and parses it recursively.
            except (ValueError, TypeError, AssertionError, RecursionError) as error:
                if "not found" in str(error) and collection:  # as the in-memory engine says it
                    raise CollectionMissingError(collection, self.place) from error
                raise self.service.describe_unreadable(error) from error
            self._has_answered = True
            return result

        for _ in range(_MOVE_WAITS if is_patient else 0):
            try:
                return self._retry(try_once)
            except StoreUnavailableError as error:
                if not _MOVES.search(str(error)):
                    raise
                self._sleep(_MOVE_WAIT_S)
        return self._retry(try_once)

    def _retry(self, action: Callable[[], _Result]) -> _Result:
        began = time.monotonic()
        while True:
            try:
                return call_with_retries(action, longest_wait_s=_LONGEST_WAIT_S, sleep=self._sleep)[
                    0
                ]
            except StoreUnavailableError as error:
                patient = self._has_answered and _is_lost(error)
                if not patient or time.monotonic() - began >= self.timeout_s:
                    raise

    def _translate_transport(self, source: Exception) -> RagPipelineError:
        if isinstance(source, httpx.TimeoutException):
            return self.service.describe_late(self.timeout_s)
        if isinstance(source, httpx.TransportError):
            return self.service.describe_unreachable(source)
        return self.service.describe_unreadable(source)

    def _translate_status(self, error: UnexpectedResponse, collection: str) -> RagPipelineError:
        if error.status_code == 404 and collection:
            return CollectionMissingError(collection, self.place)
        said = error.content.decode("utf-8", "replace")
        quoted = quote_vendor(said, self.service.api_key)
        if _REFUSES_WRITES.search(said):
            return StoreNotWritableError(self.place, f"HTTP {error.status_code}: {quoted}")
        if error.status_code in {400, 403, 413} and _TOO_LARGE.search(said):
            remedy = "Raise max_request_size_mb or, in strict mode, upsert_max_batchsize"
            return RequestTooLargeError(
                f"{self.place} refused a large request ({quoted}). {remedy}"
            )
        if error.status_code == 403 and _MAY_ONLY_READ.search(said):
            problem = f"the key may only read from {self.place} (HTTP 403: {quoted})"
            return ConfigurationError("QDRANT_API_KEY", problem, "Set a key that may write")
        retry_after = error.headers.get("retry-after")
        return self.service.translate_status(error.status_code or 0, said, retry_after)


def _is_lost(error: StoreUnavailableError) -> bool:
    """Return True if a connection could not be made or was closed, but no time limit ended."""
    cause = error.__cause__
    return isinstance(cause, ResponseHandlingException) and not isinstance(
        cause.source, httpx.TimeoutException
    )


def connect_server(
    url: str, *, api_key: str, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> QdrantConnection:
    """Create a connection to a Qdrant server or Qdrant Cloud, without sending a request.

    Args:
        url: URL of the server. Without a port in the URL, port 6333 is used.
        api_key: API key. Empty for a server that needs no key.
        timeout_s: Time limit in seconds from the start of a request to the last byte of its
            response.
        sleep: Function that waits the given number of seconds between two attempts.

    Raises:
        ConfigurationError: The URL is not valid.
    """
    limits = httpx.Limits(
        max_keepalive_connections=_KEPT_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S
    )
    try:
        address, headers = separate_login(url)
        if api_key:
            headers["api-key"] = api_key
        # The server sends a compressed answer in two small packets, and the second waits 40 ms for
        # the delayed acknowledgement of the first, also behind a proxy.
        headers["accept-encoding"] = "identity"
        with reading_environment():
            client = QdrantClient(
                url=address,
                timeout=timeout_s,  # type: ignore[arg-type]  # the client rounds it up
                # Not the argument for a key, which prints a warning for http URLs.
                headers=headers,
                check_compatibility=False,  # the check would print from a thread
                limits=limits,  # the default keeps no connections to this machine
                event_hooks=limit_answers(httpx, timeout_s),
            )
    except (ValueError, TypeError) as error:
        problem = f"the address is not valid (host: {name_host(url)})"
        raise ConfigurationError("QDRANT_URL", problem, "Example: http://localhost:6333") from error
    return QdrantConnection(
        client, name_host(url), timeout_s=timeout_s, api_key=api_key, sleep=sleep
    )
