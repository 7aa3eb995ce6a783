"""Checks of the addresses and API keys of services. Their errors never show a secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

_EXAMPLES: Final = {
    "QDRANT_URL": "http://localhost:6333",
    "OPENAI_BASE_URL": "http://localhost:8000/v1",
}
"""An address as an example for an error message, by setting."""


def read_key(setting: str, secret: SecretStr) -> str:
    """Return an API key without surrounding spaces, checked for use in an HTTP header.

    The check is made here because the error of an HTTP client would show the key.

    Raises:
        ConfigurationError: The key is empty, or contains spaces, control or non-ASCII characters.
    """
    key = secret.get_secret_value().strip()
    if not key:
        raise ConfigurationError(
            setting, "the key is not set", "Set it in the environment or in .env"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        problem = "the key contains spaces, line breaks or non-ASCII characters"
        raise ConfigurationError(setting, problem, "Copy it again, without quotes or line breaks")
    return key


def read_url(setting: str, url: str, *, has_query: bool = False) -> str:
    """Return a URL without surrounding spaces after checking it; an empty text stays empty.

    An error message never shows the URL, because the URL may contain a password.

    Args:
        setting: Name of the setting or option, for the error message.
        url: URL to check.
        has_query: Accept a query, such as the version of Azure's API.

    Raises:
        ConfigurationError: The URL does not begin with http:// or https://, has no valid host or
            port, or has a query or a fragment.
    """
    stripped = url.strip()
    example = f"Example: {_EXAMPLES.get(setting, 'http://localhost:8000')}"
    if stripped and not stripped.startswith(("http://", "https://")):
        problem = "the URL does not begin with http:// or https://"
        raise ConfigurationError(setting, problem, example)
    try:
        parts = urlsplit(stripped)
        is_usable = not stripped or bool(parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigurationError(setting, "the URL is not valid", example)
    if (parts.query and not has_query) or parts.fragment:
        problem = "the URL contains a query or a fragment (? or #)"
        raise ConfigurationError(
            setting, problem, "Remove that part; an API key has its own setting"
        )
    return stripped


def read_headers(setting: str, secret: SecretStr) -> dict[str, str]:
    """Return the headers in a JSON object; an error message never shows them.

    Raises:
        ConfigurationError: The text is not a JSON object of texts that a header can contain.
    """
    text = secret.get_secret_value().strip()
    try:
        headers = json.loads(text or "{}")
    except ValueError:
        headers = None
    usable = isinstance(headers, dict) and all(
        isinstance(value, str) and f"{name}{value}".isascii() and f"{name}{value}".isprintable()
        for name, value in headers.items()
    )
    if not isinstance(headers, dict) or not usable:
        problem = "the headers are not a JSON object of texts without line breaks"
        raise ConfigurationError(setting, problem, 'Example: {"X-Title": "My book"}')
    return headers
