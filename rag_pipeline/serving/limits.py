"""All limits of requests, with the limits of questions per client and in total."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import math
import os
import re
import secrets
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from limits import RateLimitItem, parse_many
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter as SharedLimiter
from limits.errors import ConfigurationError as UnusableAddressError
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter as LocalLimiter

from rag_pipeline.core.errors import ConfigurationError, describe_kind
from rag_pipeline.serving.replies import make_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from rag_pipeline.core.settings import Settings


MAX_HEADERS: Final = 100
"""Headers of one request."""

MAX_HEAD_BYTES: Final = 32 * 1024
"""Bytes of the request line and all headers of one request."""

MAX_BODY_BYTES: Final = 256 * 1024
"""Bytes of the body of one request."""

FIRST_BYTE_S: Final = 10.0
"""Seconds from the connection to the first byte of a request."""

HEAD_S: Final = 10.0
"""Seconds from the first byte to the end of the headers."""

BODY_S: Final = 30.0
"""Seconds from the end of the headers to the end of the body."""

WRITE_S: Final = 30.0
"""Seconds in which a client reads nothing of a response that waits for it."""

KEEP_ALIVE_S: Final = 75
"""Seconds that an idle connection stays open.

That is longer than proxies keep theirs, usually 60 s. With uvicorn's own 5 s, a proxy or a busy
machine could send a question on a connection that was being closed.
"""

MAX_SELECTION_PARTS: Final = 2_000
"""Lines and sentences of a selected text. A page of 20,000 characters has about 400."""

QUOTE_S: Final = 20.0
"""Seconds for choosing and quoting passages, the wait for a thread included."""

ANSWER_S: Final = 600.0
"""Seconds for the whole text of a model. What it has not written by then is quoted."""

MAX_CONNECTIONS: Final = 512
"""Open connections. For a new one, the connection is closed that has been idle for longest."""

CLIENT_WAITING: Final = 20
"""Questions of one client that wait for others of it (SERVE_CLIENT_ANSWERS). More are refused."""

READ_RATE: Final = "600/minute"
"""The highest rate of other requests of one client to the API, such as those for sections."""

KEY_RATE: Final = "20/minute"
"""The highest rate of wrong keys of one client."""


LIMITED_PATHS: Final = ("/v1/answers", "/v1/search", "/v1/chat/completions", "/mcp")
"""The paths whose POST requests count as questions."""

_LOG_PATHS: Final = re.compile("/v1/feedback|/v1/(?:answers|conversations)/[^/]+")
"""The paths whose POST and DELETE requests change the question log."""

_READ_PATHS: Final = ("/v1/", "/mcp", "/metrics", "/openapi.json")
"""The start of the paths whose other requests count as reading."""

_OWN_RATES: Final = {"read": parse_many(READ_RATE), "key": parse_many(KEY_RATE)}
_TOO_MANY: Final = {
    "question": "That was a lot of questions.",
    "change": "Too many ratings or deletions.",
    "read": "Too many requests.",
}
_BUSY_S: Final = 2.0  # after which a client with too many waiting questions tries again

CLIENT_KEY_FILE: Final = "client-key"
"""The file with the key of the hashes, in the state folder of the docs folder."""

_SECRET_BYTES: Final = 32
_SHARED_TIMEOUT_S: Final = 0.5
_SHARED_PAUSE_S: Final = 10.0
_IPV6_CLIENT_BITS: Final = 64  # one household or one machine usually has a whole /64 network

_logger = logging.getLogger(__name__)


class RateLimits:
    """Counts requests per client and in total, in this process or in Redis.

    Addresses of clients are stored only as keyed hashes. If Redis fails, this process counts by
    itself for ten seconds, and then tries Redis again.

    Args:
        settings: SERVE_CLIENT_RATE, SERVE_TOTAL_RATE and SERVE_RATE_URL are read. Without a URL,
            each process counts by itself.
        on_failure: Called each time Redis fails.

    Raises:
        ConfigurationError: A rate or the address of Redis is not valid, or the key in DATA_DIR is
            empty, or cannot be read or made.
    """

    def __init__(self, settings: Settings, on_failure: Callable[[], None] | None = None) -> None:
        self._client = _parse_rate("SERVE_CLIENT_RATE", settings.serve_client_rate)
        self._total = _parse_rate("SERVE_TOTAL_RATE", settings.serve_total_rate)
        self._on_failure = on_failure or (lambda: None)
        self._local = LocalLimiter(MemoryStorage())
        self._shared: SharedLimiter | None = None
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        if settings.serve_rate_url:  # all processes that count together share the key
            self._secret = _read_secret(settings.state_dir / CLIENT_KEY_FILE)
            self._shared = _connect(settings.serve_rate_url)
        self._shared_from = -math.inf

    async def count(
        self, address: str, kind: str = "question", *, hit: bool = True
    ) -> float | None:
        """Count one request of a client.

        Args:
            address: The IP address of the client; empty if it is unknown.
            kind: `question`, `change` (of the question log), `read` or `key` (a wrong key). Each
                kind is counted apart. The last two have their own limits.
            hit: False to ask if a request would be allowed, without counting it.

        Returns:
            Seconds until the next request is allowed, more than 0, if the request exceeds a
            limit. Otherwise None.
        """
        client = self.hash_client(address)
        keys = [(item, f"{kind}:client", client) for item in _OWN_RATES.get(kind, self._client)]
        if kind not in _OWN_RATES:
            keys += [(item, f"{kind}:total", "") for item in self._total]
        if self._shared is not None and time.monotonic() >= self._shared_from:
            try:
                async with asyncio.timeout(_SHARED_TIMEOUT_S):
                    return await self._count_shared(self._shared, keys, hit=hit)
            except Exception as error:  # noqa: BLE001  # any fault of Redis must not stop answers
                self._shared_from = time.monotonic() + _SHARED_PAUSE_S
                self._on_failure()
                _logger.warning(
                    "SERVE_RATE_URL does not answer (%s); this process counts by itself for %.0f s",
                    describe_kind(error),
                    _SHARED_PAUSE_S,
                )
        for item, *key in keys:
            if not (self._local.hit if hit else self._local.test)(item, *key):
                return _wait_s(self._local.get_window_stats(item, *key).reset_time)
        return None

    async def _count_shared(
        self, shared: SharedLimiter, keys: list[tuple[RateLimitItem, str, str]], *, hit: bool
    ) -> float | None:
        for item, *key in keys:
            if not await (shared.hit if hit else shared.test)(item, *key):
                return _wait_s((await shared.get_window_stats(item, *key)).reset_time)
        return None

    def hash_client(self, address: str) -> str:
        """Return a keyed hash of a client's address; IPv6 clients are counted by network."""
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
            if isinstance(found, ipaddress.IPv6Address):
                network = ipaddress.ip_network((found, _IPV6_CLIENT_BITS), strict=False)
                address = str(found.ipv4_mapped or network)
        except ValueError:
            pass  # a Unix socket or a proxy's own name
        return hashlib.blake2b(address.encode(), digest_size=16, key=self._secret).hexdigest()


def _read_secret(path: Path) -> bytes:
    """Return the key of the hashes in Redis; make it if it is missing.

    Without the key, all IPv4 addresses could be tried to find the clients of a copy of Redis.
    """
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()[:64]
    except OSError as error:
        problem = f"the key {path.name} cannot be kept in it ({error.strerror or error})"
        raise ConfigurationError("DATA_DIR", problem, "Use a folder that you can write") from error
    if not secret:
        problem = f"the key in its file {path.name} is empty"
        raise ConfigurationError("DATA_DIR", problem, "Delete the file, or copy the key again")
    return secret


def _make_secret(path: Path) -> None:
    """Write a new key, unless another process has written one meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
        with suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


class Turns:
    """The questions of each client that are answered at the same time.

    Others of the client wait, so that one client never occupies all threads.

    Args:
        running: Questions of one client that are answered at the same time.
        waiting: Questions of one client that wait; more are refused.
    """

    def __init__(self, running: int, waiting: int = CLIENT_WAITING) -> None:
        self._running = running
        self._most = running + waiting
        self._clients: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def take(self, client: str) -> AsyncIterator[bool]:
        """Wait for a turn of a client; yield False at once if too many of its questions wait."""
        turns, count = self._clients.get(client, (asyncio.Semaphore(self._running), 0))
        if count >= self._most:
            yield False
            return
        self._clients[client] = turns, count + 1
        try:
            async with turns:
                yield True
        finally:
            turns, count = self._clients[client]
            self._clients[client] = turns, count - 1
            if count == 1:
                del self._clients[client]


def limit_rate(
    app: ASGIApp,
    limits: RateLimits,
    on_refusal: Callable[[], None] | None = None,
    turns: Turns | None = None,
) -> ASGIApp:
    """Return the application behind the rate limits.

    Ratings and deletions are counted apart from questions, so that a reader who has asked a lot can
    still rate the answers. A request that exceeds a limit gets the status 429 with `Retry-After`.

    Args:
        app: The application.
        limits: Counts the requests.
        on_refusal: Called for each request that is refused.
        turns: Limits the questions of a client that are answered at the same time; None for no
            limit.
    """

    def refuse(kind: str, wait_s: float) -> ASGIApp:
        if on_refusal is not None:
            on_refusal()
        seconds = math.ceil(wait_s)
        detail = f"{_TOO_MANY[kind]} Try again in {seconds} seconds."
        return make_problem(429, "RATE_LIMITED", detail, {"retry-after": str(seconds)})

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        kind = _find_kind(scope) if scope["type"] == "http" else None
        if kind is not None:
            client = (scope.get("client") or ("",))[0]
            wait_s = await limits.count(client, kind)
            if wait_s is not None:
                await refuse(kind, wait_s)(scope, receive, send)
                return
            if kind == "question" and turns is not None:
                async with turns.take(limits.hash_client(client)) as has_turn:
                    chosen = app if has_turn else refuse(kind, _BUSY_S)
                    await chosen(scope, receive, send)
                return
        await app(scope, receive, send)

    return limited


def _find_kind(scope: Scope) -> str | None:
    """Return the kind of a request, or None for a request without a limit."""
    path, method = str(scope["path"]).rstrip("/"), scope["method"]
    if method == "POST" and path in LIMITED_PATHS:
        return "question"
    if method in {"POST", "DELETE"} and _LOG_PATHS.fullmatch(path):
        return "change"
    return "read" if path.startswith(_READ_PATHS) else None


def _wait_s(reset_time: float) -> float:
    return max(1.0, reset_time - time.time())  # limits counts in wall-clock time


def _parse_rate(setting: str, text: str) -> list[RateLimitItem]:
    if not text.strip():
        return []
    try:
        items = list(parse_many(text))
    except ValueError:
        items = []
    if not items or any(item.amount < 1 for item in items):
        problem = f"{text!r} is not a rate"
        remedy = "Use a rate such as 30/minute, or several such as 5/second;200/hour"
        raise ConfigurationError(setting, problem, remedy)
    return items


def _connect(redis_url: str) -> SharedLimiter:
    if redis_url.startswith(("redis://", "rediss://", "redis+unix://")):
        with suppress(ValueError, UnusableAddressError):  # their messages may contain a password
            return SharedLimiter(RedisStorage(f"async+{redis_url}", implementation="redispy"))
    problem = "it is not an address of Redis"
    remedy = "Use an address with a port, such as redis://127.0.0.1:6379"
    raise ConfigurationError("SERVE_RATE_URL", problem, remedy)
