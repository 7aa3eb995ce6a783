"""Checks of every request before the application sees it, and headers on every response.

The checks are plain ASGI functions, so that streams pass through them without being collected.
"""

from __future__ import annotations

import hmac
import math
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.serving.protection.access import AccessRules, read_access_rules, strip_port
from rag_pipeline.serving.protection.limits import MAX_BODY_BYTES
from rag_pipeline.serving.protection.responses import send_problem, send_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.serving.protection.limits import RateLimits

_LENGTH: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_MAX_DISCARDED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a body that is too large which are read anyway, so that the client sees the answer."""

_COMMON_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "strict-origin-when-cross-origin",
    "cross-origin-opener-policy": "same-origin",
}
_API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_SITE_POLICY: Final = "frame-ancestors 'self'; object-src 'none'; base-uri 'self'"
_PREFLIGHT: Final = {
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-allow-headers": "authorization, content-type, last-event-id, "
    "mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
    "access-control-max-age": "600",
}
"""What pages may send. The last four headers are those of the MCP protocol."""

_CORS_EXPOSED: Final = "retry-after, mcp-session-id"


def protect(
    app: ASGIApp,
    settings: Settings,
    hosts: Iterable[str] = (),
    *,
    site_path: str | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    rates: RateLimits | None = None,
) -> ASGIApp:
    """Return the application behind the checks of host, origin, key and body size.

    `app.add_middleware(protect, settings=settings)` adds the checks to a FastAPI application.

    Args:
        app: The application.
        settings: SERVE_HOSTS, SERVE_ORIGINS and SERVE_API_KEY are read.
        hosts: More host names that requests may name, such as the value of `--host`.
        site_path: The path below which the website is served; None if it is not served.
        max_body_bytes: The size of the largest request body.
        rates: Counts the wrong keys of each client; None for no limit.

    Raises:
        ConfigurationError: A setting contains a value that is not a host name or an origin.
    """
    return ProtectedApp(app, read_access_rules(settings, hosts, site_path), max_body_bytes, rates)


class ProtectedApp:
    """An ASGI application behind the checks of host, origin, key and body size.

    Args:
        app: The application.
        rules: Who may call the service.
        max_body_bytes: The size of the largest request body.
        rates: Counts the wrong keys of each client; None for no limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        rules: AccessRules,
        max_body_bytes: int = MAX_BODY_BYTES,
        rates: RateLimits | None = None,
    ) -> None:
        self._app = app
        self._rates = rates
        self._rules = rules
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request, and pass it to the application if all checks succeed."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # the service has no WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = read_headers(scope)
        sending = self._add_headers(scope["path"], headers, send)
        if problem := self._find_problem(scope, headers) or await self._check_key(scope, headers):
            await send_problem(sending, *problem)
        elif _is_preflight(scope, headers):
            await send_response(sending, 204, b"", _PREFLIGHT)
        else:
            await self._pass_body(scope, headers, receive, sending)

    def _find_problem(
        self, scope: Scope, headers: Mapping[str, str]
    ) -> tuple[int, str, str] | tuple[int, str, str, dict[str, str]] | None:
        """Return status, code, detail and headers of the refusal; None if nothing is wrong."""
        rules, path = self._rules, scope["path"]
        if rules.needs_host(path) and strip_port(headers.get("host", "")) not in rules.hosts:
            detail = (
                "This service does not answer under this host name. The operator can allow it "
                "with SERVE_HOSTS."
            )
            return 421, "HOST_NOT_ALLOWED", detail
        if rules.is_api(path) and not self._is_origin_allowed(headers):
            detail = (
                "Pages of this website may not call this service. The operator can allow it with "
                "SERVE_ORIGINS."
            )
            return 403, "ORIGIN_NOT_ALLOWED", detail
        length = headers.get("content-length")
        if length is not None and not _LENGTH.fullmatch(length):
            return 400, "REQUEST_INVALID", "The header Content-Length is not a number of bytes."
        return None

    async def _check_key(
        self, scope: Scope, headers: Mapping[str, str]
    ) -> tuple[int, str, str, dict[str, str]] | None:
        """Return the refusal of a request without the right key; None if nothing is wrong.

        A client that has sent too many wrong keys is refused before its key is compared, so that
        the answer does not tell if it has found the right one.
        """
        is_preflight = _is_preflight(scope, headers) and "origin" in headers
        if not self._rules.needs_key(scope["path"]) or is_preflight:
            return None
        client = (scope.get("client") or ("",))[0]
        if self._rates is not None:
            wait_s = await self._rates.count(client, "key", hit=False)
            if wait_s is not None:
                seconds = math.ceil(wait_s)
                detail = f"Too many wrong keys. Try again in {seconds} seconds."
                return 429, "RATE_LIMITED", detail, {"retry-after": str(seconds)}
        if self._has_key(headers):
            return None
        if self._rates is not None:
            await self._rates.count(client, "key")
        detail = "Send the key of this service as `Authorization: Bearer KEY`."
        return 401, "KEY_INVALID", detail, {"www-authenticate": 'Bearer realm="RoboTutor"'}

    def _is_origin_allowed(self, headers: Mapping[str, str]) -> bool:
        origin = headers.get("origin")
        if origin is None:
            return True
        found = origin.lower()
        own_host = headers.get("host", "").lower()
        return found in self._rules.origins or found in {
            f"http://{own_host}",
            f"https://{own_host}",
        }

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        expected = self._rules.api_key.encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(
            key.strip().encode("utf-8", "replace"), expected
        )

    def _add_headers(self, path: str, headers: Mapping[str, str], send: Send) -> Send:
        """Return a function that sends messages with the security and CORS headers added."""
        is_api = self._rules.is_api(path)
        added = _COMMON_HEADERS | {
            "content-security-policy": _API_POLICY if is_api else _SITE_POLICY
        }
        origin = headers.get("origin")
        if is_api and origin and origin.lower() in self._rules.origins:
            added |= {
                "access-control-allow-origin": origin,
                "access-control-expose-headers": _CORS_EXPOSED,
            }
        if is_api and self._rules.origins:
            added["vary"] = "Origin"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", [])}
                message["headers"] = [
                    *message.get("headers", []),
                    *(
                        (name.encode(), value.encode("latin-1", "replace"))
                        for name, value in added.items()
                        if name == "vary" or name.encode() not in present
                    ),
                ]
            await send(message)

        return send_with_headers

    async def _pass_body(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Pass the request on if its body is not too large.

        A body without a declared length is collected first. The server itself ensures that a body
        is not longer than declared.
        """
        length = headers.get("content-length")
        if length is not None:
            if int(length) > self._max_body_bytes:
                await self._refuse_body(receive, send, has_more=True)
                return
        elif "transfer-encoding" in headers:
            collected, size = await self._collect(receive)
            if size > self._max_body_bytes:
                has_more = collected[-1].get("more_body", False)
                await self._refuse_body(receive, send, has_more=has_more)
                return
            receive = _replay(collected, receive)
        await self._app(scope, receive, send)

    async def _collect(self, receive: Receive) -> tuple[list[Message], int]:
        """Return the messages of the body and its bytes, up to the first byte that is too much."""
        messages: list[Message] = []
        size = 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self._max_body_bytes or not message.get("more_body", False):
                return messages, size

    async def _refuse_body(self, receive: Receive, send: Send, *, has_more: bool) -> None:
        left = _MAX_DISCARDED_BYTES
        while has_more and left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            has_more = message.get("more_body", False)
        detail = f"The body of the request is larger than {self._max_body_bytes // 1024} kB."
        await send_problem(send, 413, "BODY_TOO_LARGE", detail)


def read_headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by lower-case name; repeated headers are joined by commas."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in headers.items()}


def _is_preflight(scope: Scope, headers: Mapping[str, str]) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """Return a function that receives the collected messages first."""
    left = iter(messages)

    async def receive_again() -> Message:
        message = next(left, None)
        return message if message is not None else await receive()

    return receive_again
