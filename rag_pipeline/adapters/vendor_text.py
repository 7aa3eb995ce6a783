"""What of a service may be shown: its host and a short line of its words, but no secret. And what
reading its answer raises where it is none.
"""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import unquote, urlsplit

UNREADABLE: Final = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
)
"""What reading an answer raises that has another form than a service's."""

_LONGEST_QUOTE: Final = 200  # characters; a message is one line


def name_host(url: str) -> str:
    """Host and port of an address; user, password, path and query are left out."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.hostname or 'an address without a host'}{port}"


def separate_login(url: str) -> tuple[str, dict[str, str]]:
    """An address without user and password, and the header that brings them: clients log addresses.

    Returns:
        The address, and no header where it has no user.
    """
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    token = base64.b64encode(login.encode("utf-8")).decode("ascii")
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {token}"}


def quote_vendor(text: object, secret: str) -> str:
    """A vendor's message on one line, at most 200 characters, the secret replaced by ***."""
    line = " ".join(str(text).split())
    if secret:
        line = line.replace(secret, "***")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 3] + "..."
