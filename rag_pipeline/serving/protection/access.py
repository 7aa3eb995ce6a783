"""The rules of who may call the service, read from the settings."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        if _is_below(path, _API):
            return True
        return not (path == "/" or (self.site_path or "/").startswith(path + "/")) and not (
            self.site_path and path.startswith(self.site_path)
        )

    def needs_key(self, path: str) -> bool:
        """Return True if requests for the path must send the key."""
        return bool(self.api_key) and self.is_api(path) and path not in _HEALTH

    def needs_host(self, path: str) -> bool:
        """Return True if requests for the path must name a known host.

        Health checks need not, because orchestrators send them to the address of a container.
        """
        return path not in _HEALTH


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
    named = [_check_host(host) for host in split_list(settings.serve_hosts)]
    more = [strip_port(_bracket(host)) for host in hosts]
    return AccessRules(
        hosts=frozenset((*_OWN_HOSTS, *more, *named)),
        origins=frozenset(_check_origin(origin) for origin in split_list(settings.serve_origins)),
        api_key=_check_key(settings.serve_api_key.get_secret_value()),
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


def _is_below(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


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


def _check_key(key: str) -> str:
    if key and not re.fullmatch(r"[\x21-\x7e]+", key):
        problem = "the key contains blanks or characters outside ASCII"
        raise ConfigurationError("SERVE_API_KEY", problem, "Choose letters, digits, - and _")
    return key
