"""One Qdrant server, reached by REST: every call with timeout, three tries, and our errors.

Belongs here: what can go wrong between us and a server. Does not belong here: what is asked of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_pipeline.adapters.retrying import call_with_retries, read_retry_after
from rag_pipeline.adapters.slow_answers import limit_answers
from rag_pipeline.adapters.vendor_text import name_host, quote_vendor, separate_login
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    StoreError,
    StoreTimeoutError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

_LONGEST_WAIT_S: Final = 2.0  # between tries; somebody may be waiting for an answer
_KEPT_CONNECTIONS: Final = 16
_KEEP_ALIVE_S: Final = 20.0


class QdrantConnection:
    """A client and the rules for calling it; safe with several threads.

    Args:
        client: The vendor's.
        place: Host and port for messages.
        timeout_s: For messages; the client keeps it.
        api_key: To be kept out of messages.
        sleep: Waits between tries.
        is_server: False for the client's own engine, which knows no payload index.
    """

    def __init__(
        self,
        client: QdrantClient,
        place: str,
        *,
        timeout_s: float = 0.0,
        api_key: str = "",
        sleep: Callable[[float], None] = time.sleep,
        is_server: bool = True,
    ) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._api_key = api_key
        self._sleep = sleep
        self.place = place
        self.is_server = is_server

    def call(self, action: Callable[[QdrantClient], _Result], collection: str = "") -> _Result:
        """Run an action that may be repeated.

        Args:
            action: Asks the client once; doing it twice must do no harm.
            collection: Named in the message where the server does not know it.

        Raises:
            StoreTimeoutError: No answer in time, three times.
            StoreUnavailableError: Refused, reset, overloaded or failing, three times.
            ConfigurationError: The server refused the key.
            CollectionMissingError: The server does not know the collection.
            StoreError: It answered something that cannot be used, or refused the request.
        """

        def try_once() -> _Result:
            try:
                return action(self._client)
            except ResponseHandlingException as error:
                raise self._translate_transport(error.source) from error
            except UnexpectedResponse as error:
                raise self._translate_status(error, collection) from None  # may echo the request
            except QdrantException as error:
                raise self._translate_limit(error) from error
            # The client asserts that an answer has a result, and parses it by recursion.
            except (ValueError, TypeError, AssertionError, RecursionError) as error:
                raise self._translate_value(error, collection) from error

        result, _ = call_with_retries(try_once, longest_wait_s=_LONGEST_WAIT_S, sleep=self._sleep)
        return result

    def describe_stranger(self, detail: str) -> StoreError:
        """What to raise for an answer that Qdrant would not give."""
        return StoreError(
            f"{self.place} did not answer as Qdrant does ({detail}). Check QDRANT_URL"
        )

    def _translate_transport(self, source: Exception) -> StoreError | ConfigurationError:
        if isinstance(source, httpx.TimeoutException):
            return StoreTimeoutError(
                f"Qdrant at {self.place} did not answer within {self._timeout_s:g} s, three times. "
                "Try again later or raise QDRANT_TIMEOUT_S"
            )
        if isinstance(source, httpx.TransportError):
            return StoreUnavailableError(
                f"Qdrant at {self.place} cannot be reached ({type(source).__name__}). Start it, or "
                "check QDRANT_URL and the network"
            )
        return self.describe_stranger(type(source).__name__)

    def _translate_status(
        self, error: UnexpectedResponse, collection: str
    ) -> StoreError | ConfigurationError:
        status = error.status_code or 0
        said = quote_vendor(error.content.decode("utf-8", "replace"), self._api_key)
        if status in {401, 403}:
            problem = f"Qdrant at {self.place} refused it (HTTP {status})"
            return ConfigurationError("QDRANT_API_KEY", problem, "Set a key that may use it")
        if status in {408, 429} or status >= 500:
            failure = StoreUnavailableError(
                f"Qdrant at {self.place} failed three times (HTTP {status}: {said}). Try again "
                "later or look into its log"
            )
            failure.retry_after_s = read_retry_after(error.headers.get("retry-after"))
            return failure
        if status == 404 and collection:
            return CollectionMissingError(collection, f"Qdrant at {self.place}")
        if status == 404:
            return self.describe_stranger("HTTP 404")
        return StoreError(
            f"Qdrant at {self.place} refused a request (HTTP {status}: {said}). Check its version "
            "(1.16 or later) and the collection"
        )

    def _translate_limit(self, error: QdrantException) -> StoreUnavailableError:
        failure = StoreUnavailableError(
            f"Qdrant at {self.place} is overloaded (HTTP 429), three times. Try again later"
        )
        if isinstance(error, ResourceExhaustedResponse):
            failure.retry_after_s = read_retry_after(str(error.retry_after_s))
        return failure

    def _translate_value(self, error: Exception, collection: str) -> StoreError:
        if "not found" in str(error) and collection:  # how the client's own memory says 404
            return CollectionMissingError(collection, self.place)
        return self.describe_stranger(type(error).__name__)


def connect_server(
    url: str, *, api_key: str, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> QdrantConnection:
    """Prepare to call a server or Qdrant Cloud; nothing is sent yet.

    Args:
        url: With scheme; port 6333 where it names none.
        api_key: Empty for none.
        timeout_s: For one try, rounded up to whole seconds by the client.
        sleep: Waits between tries.

    Raises:
        ConfigurationError: The address cannot be used.
    """
    limits = httpx.Limits(
        max_keepalive_connections=_KEPT_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S
    )
    try:
        address, headers = separate_login(url)
        if api_key:
            headers["api-key"] = api_key
        client = QdrantClient(
            url=address,
            timeout=timeout_s,  # type: ignore[arg-type]  # the client rounds it up itself
            # As a header, since the client's own argument prints a warning for every http address.
            headers=headers,
            check_compatibility=False,  # it would ask from a thread and print
            limits=limits,  # by default connections to this machine are not kept
            event_hooks=limit_answers(httpx, timeout_s),
        )
    except (ValueError, TypeError) as error:
        problem = f"{name_host(url)} is no usable address"
        raise ConfigurationError("QDRANT_URL", problem, "Use such as http://host:6333") from error
    return QdrantConnection(
        client, name_host(url), timeout_s=timeout_s, api_key=api_key, sleep=sleep
    )


def connect_memory() -> QdrantConnection:
    """The client's own engine in this process's memory: for trials and for tests."""
    return QdrantConnection(QdrantClient(":memory:"), "memory", is_server=False)
