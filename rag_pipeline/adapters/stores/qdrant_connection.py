"""The connection to a Qdrant server by REST: time limit, three tries, and our errors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_pipeline.adapters.connections import limit_answers
from rag_pipeline.adapters.http import Service, call_with_retries, name_host, separate_login
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    StoreError,
    StoreTimeoutError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.errors import RagPipelineError

_Result = TypeVar("_Result")

_LONGEST_WAIT_S: Final = 2.0  # between tries; somebody may be waiting for an answer
_KEPT_CONNECTIONS: Final = 16
_KEEP_ALIVE_S: Final = 20.0


class QdrantConnection:
    """A client and the rules for calling it; safe with several threads.

    Args:
        client: The vendor's.
        host: Host and port for messages.
        timeout_s: For messages; the client keeps to it.
        api_key: Kept out of messages.
        sleep: Waits between tries.
        is_server: False for the client's own engine, which has no payload indexes.
    """

    def __init__(
        self,
        client: QdrantClient,
        host: str,
        *,
        timeout_s: float = 0.0,
        api_key: str = "",
        sleep: Callable[[float], None] = time.sleep,
        is_server: bool = True,
    ) -> None:
        self._client = client
        self.timeout_s = timeout_s
        self._sleep = sleep
        self.is_server = is_server
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
        """The server, for messages."""
        return self.service.place

    def call(self, action: Callable[[QdrantClient], _Result], collection: str = "") -> _Result:
        """Run an action that may be repeated.

        Args:
            action: Asks the client once; doing it twice must do no harm.
            collection: Named in the message if the server does not know it.

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

    def _translate_transport(self, source: Exception) -> RagPipelineError:
        if isinstance(source, httpx.TimeoutException):
            return self.service.describe_late(self.timeout_s)
        if isinstance(source, httpx.TransportError):
            return self.service.describe_unreachable(source)
        return self.service.describe_unreadable(type(source).__name__)

    def _translate_status(self, error: UnexpectedResponse, collection: str) -> RagPipelineError:
        if error.status_code == 404 and collection:
            return CollectionMissingError(collection, self.place)
        said = error.content.decode("utf-8", "replace")
        retry_after = error.headers.get("retry-after")
        return self.service.translate_status(error.status_code or 0, said, retry_after)

    def _translate_limit(self, error: QdrantException) -> RagPipelineError:
        seconds = error.retry_after_s if isinstance(error, ResourceExhaustedResponse) else ""
        return self.service.translate_status(429, "overloaded", str(seconds))

    def _translate_value(self, error: Exception, collection: str) -> RagPipelineError:
        if "not found" in str(error) and collection:  # the client's own engine says 404 so
            return CollectionMissingError(collection, self.place)
        return self.service.describe_unreadable(type(error).__name__)


def connect_server(
    url: str, *, api_key: str, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> QdrantConnection:
    """Prepare to call a server or Qdrant Cloud; nothing is sent yet.

    Args:
        url: With scheme; port 6333 if it names none.
        api_key: Empty for none.
        timeout_s: For one request, from its start to the last byte of its answer.
        sleep: Waits between tries.

    Raises:
        ConfigurationError: The address is not valid.
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
        problem = f"{name_host(url)} is not a valid address"
        raise ConfigurationError("QDRANT_URL", problem, "Example: http://host:6333") from error
    return QdrantConnection(
        client, name_host(url), timeout_s=timeout_s, api_key=api_key, sleep=sleep
    )


def connect_memory() -> QdrantConnection:
    """Connect to the client's own engine in this process's memory, for trials and tests."""
    return QdrantConnection(QdrantClient(":memory:"), "memory", is_server=False)
