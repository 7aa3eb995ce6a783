"""Checks of every request before the application sees it, and headers on every response.

The checks are plain ASGI functions, so that streams pass through them without being collected.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.limits import MAX_BODY_BYTES, RateLimits
from rag_pipeline.serving.replies import make_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rag_pipeline.core.settings import Settings


_OWN_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_API: Final = ("/v1", "/mcp", "/metrics", "/openapi.json", "/healthz", "/readyz")
_HEALTH: Final = ("/healthz", "/readyz")
_HOST: Final = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules of who may call the service.

    Attributes:
        hosts: The host names, in lower case and without a port, that requests may name.
        origins: The origins of other websites whose pages may call the service.
        api_key: The key that requests to the API must send; empty if no key is needed.
        site_path: The path below which the website is served; ends with a slash. None if no
            website is served.
    """

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    api_key: str = ""
    site_path: str | None = None

    def is_api(self, path: str) -> bool:
        """Return True if the path belongs to the API, and False if it belongs to the website."""
        if any(path == root or path.startswith(f"{root}/") for root in _API):
            return True
        return not (path == "/" or (self.site_path or "/").startswith(path + "/")) and not (
            self.site_path and path.startswith(self.site_path)
        )

    def needs_key(self, path: str) -> bool:
        """Return True if requests for the path must send the key."""
        return bool(self.api_key) and self.is_api(path) and path not in _HEALTH


def read_access_rules(
    settings: Settings, hosts: Iterable[str] = (), site_path: str | None = None
) -> AccessRules:
    """Return the rules that the settings describe.

    Args:
        settings: SERVE_HOSTS, SERVE_ORIGINS and SERVE_API_KEY are read.
        hosts: More host names that requests may name, such as the value of `--host`.
        site_path: The path below which the website is served; None if it is not served.

    Raises:
        ConfigurationError: A setting contains a value that is not a host name or an origin.
    """
    key = settings.serve_api_key.get_secret_value()
    if key and not re.fullmatch(r"[\x21-\x7e]+", key):
        problem = "the key contains blanks or characters outside ASCII"
        raise ConfigurationError("SERVE_API_KEY", problem, "Choose letters, digits, - and _")
    named = [_check_host(host) for host in split_list(settings.serve_hosts)]
    more = [strip_port(_bracket(host)) for host in hosts]
    return AccessRules(
        hosts=frozenset((*_OWN_HOSTS, *more, *named)),
        origins=frozenset(_check_origin(origin) for origin in split_list(settings.serve_origins)),
        api_key=key,
        site_path=site_path,
    )


def read_trusted_proxies(settings: Settings) -> list[str]:
    """Return the addresses and networks of the reverse proxies that the service trusts.

    An IPv4 network is followed by its IPv6 form: a socket for IPv6 and IPv4 names the client
    10.0.0.5 as ::ffff:10.0.0.5.

    Raises:
        ConfigurationError: SERVE_TRUSTED_PROXIES contains a value that is not an address.
    """
    trusted: list[str] = []
    for proxy in split_list(settings.serve_trusted_proxies):
        try:
            network = ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            problem = f"{proxy!r} is not an IP address or network"
            remedy = "Name addresses such as 10.0.0.5 or 10.0.0.0/8, separated by commas"
            raise ConfigurationError("SERVE_TRUSTED_PROXIES", problem, remedy) from None
        trusted.append(str(network))
        if network.version == 4:  # the version of the protocol
            trusted.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return trusted


def split_list(text: str) -> list[str]:
    """Return the parts of a text that are separated by commas, without blanks and empty parts."""
    return [part for part in (piece.strip() for piece in text.split(",")) if part]


def strip_port(host: str) -> str:
    """Return the host of a `Host` header in lower case, without its port."""
    return re.sub(r":\d*$", "", host.strip().lower())


def _bracket(host: str) -> str:
    is_plain_ipv6 = host.count(":") > 1 and not host.startswith("[")
    return f"[{host}]" if is_plain_ipv6 else host


def _check_host(host: str) -> str:
    found = strip_port(_bracket(host))
    if not _HOST.fullmatch(found):
        problem = f"{host!r} is not a host name"
        remedy = "Name hosts such as tutor.example.org, without https:// and without a wildcard"
        raise ConfigurationError("SERVE_HOSTS", problem, remedy)
    return found


def _check_origin(origin: str) -> str:
    try:
        parts = urlsplit(origin.lower())
        is_origin = (
            parts.scheme in {"http", "https"}
            and bool(_HOST.fullmatch(strip_port(parts.netloc)))
            and parts.geturl() == f"{parts.scheme}://{parts.netloc}"
            and parts.port != 0
        )
    except ValueError:
        is_origin = False
    if not is_origin:
        problem = f"{origin!r} is not an origin"
        remedy = (
            "Name origins such as https://book.example.org, without a path, a slash at the end "
            "or a wildcard"
        )
        raise ConfigurationError("SERVE_ORIGINS", problem, remedy)
    return origin.lower()


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
        refusal = self._refuse(scope, headers)
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if refusal is None and not (is_preflight and "origin" in headers):
            refusal = await self._check_key(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, sending)
        elif is_preflight:
            await Response(None, 204, _PREFLIGHT)(scope, receive, sending)
        else:
            await self._pass_body(scope, headers, receive, sending)

    def _refuse(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Return the refusal of a request, or None if nothing is wrong."""
        rules, path = self._rules, scope["path"]
        # Orchestrators send health checks to the address of a container.
        if path not in _HEALTH and strip_port(headers.get("host", "")) not in rules.hosts:
            detail = (
                "This service does not answer under this host name. The operator can allow it "
                "with SERVE_HOSTS."
            )
            return make_problem(421, "HOST_NOT_ALLOWED", detail)
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        allowed = rules.origins | {f"http://{host}", f"https://{host}"}
        if rules.is_api(path) and "origin" in headers and origin not in allowed:
            detail = (
                "Pages of this website may not call this service. The operator can allow it with "
                "SERVE_ORIGINS."
            )
            return make_problem(403, "ORIGIN_NOT_ALLOWED", detail)
        length = headers.get("content-length")
        if length is not None and not _LENGTH.fullmatch(length):
            detail = "The header Content-Length is not a number of bytes."
            return make_problem(400, "REQUEST_INVALID", detail)
        return None

    async def _check_key(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Return the refusal of a request without the right key; None if nothing is wrong.

        A client that has sent too many wrong keys is refused before its key is compared, so that
        the answer does not tell if it has found the right one.
        """
        if not self._rules.needs_key(scope["path"]):
            return None
        client = (scope.get("client") or ("",))[0]
        if self._rates is not None:
            wait_s = await self._rates.count(client, "key", hit=False)
            if wait_s is not None:
                seconds = math.ceil(wait_s)
                detail = f"Too many wrong keys. Try again in {seconds} seconds."
                return make_problem(429, "RATE_LIMITED", detail, {"retry-after": str(seconds)})
        scheme, _, key = headers.get("authorization", "").partition(" ")
        sent, expected = key.strip().encode("utf-8", "replace"), self._rules.api_key.encode()
        if scheme.lower() == "bearer" and hmac.compare_digest(sent, expected):
            return None
        if self._rates is not None:
            await self._rates.count(client, "key")
        detail = "Send the key of this service as `Authorization: Bearer KEY`."
        needed = {"www-authenticate": 'Bearer realm="RoboTutor"'}
        return make_problem(401, "KEY_INVALID", detail, needed)

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

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = list(message.get("headers", []))
                shown = MutableHeaders(scope=message)
                for name, value in added.items():
                    shown.setdefault(name, value)
                if is_api and self._rules.origins:
                    shown.append("vary", "Origin")
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
                await self._refuse_body(scope, receive, send, has_more=True)
                return
        elif "transfer-encoding" in headers:
            messages: list[Message] = []
            size, has_more = 0, True
            while has_more and size <= self._max_body_bytes:
                messages.append(await receive())
                size += len(messages[-1].get("body", b""))
                has_more = messages[-1].get("more_body", False)
            if size > self._max_body_bytes:
                await self._refuse_body(scope, receive, send, has_more=has_more)
                return
            collected, receive_more = iter(messages), receive

            async def receive() -> Message:
                return next(collected, None) or await receive_more()

        await self._app(scope, receive, send)

    async def _refuse_body(
        self, scope: Scope, receive: Receive, send: Send, *, has_more: bool
    ) -> None:
        left = _MAX_DISCARDED_BYTES
        while has_more and left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            has_more = message.get("more_body", False)
        detail = f"The body of the request is larger than {self._max_body_bytes // 1024} kB."
        await make_problem(413, "BODY_TOO_LARGE", detail)(scope, receive, send)


def read_headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by lower-case name; repeated headers are joined by commas."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in headers.items()}
