"""The proxies and certificates that HTTP clients take from the environment, and their errors."""

from __future__ import annotations

import os
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies, proxy_bypass

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.errors.hiding import describe_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_CERTIFICATES: Final = "SSL_CERT_FILE"
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
