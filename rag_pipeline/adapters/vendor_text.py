"""What of a service may stand in a message: its host and a short line of its words, no secret."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_LONGEST_QUOTE: Final = 200  # characters; a message is one line


def name_host(url: str) -> str:
    """Host and port of an address; user, password, path and query are left out."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.hostname or 'an address without a host'}{port}"


def quote_vendor(text: object, secret: str) -> str:
    """A vendor's message on one line, at most 200 characters, the secret replaced by ***."""
    line = " ".join(str(text).split())
    if secret:
        line = line.replace(secret, "***")
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 3] + "..."
