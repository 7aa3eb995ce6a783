"""Write labels and addresses into the links of a Markdown text."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

_BRACKET: Final = re.compile(r"([\[\]\\])")
_UNSAFE: Final = re.compile(r"[()<>\s\\\x00-\x1f\x7f]")


def escape_label(text: str) -> str:
    """Return a plain text as the label of a link: its brackets and backslashes are escaped."""
    return _BRACKET.sub(r"\\\1", text)


def encode_target(address: str) -> str:
    r"""Return an address as the target of a link.

    White space and the characters `()<>\` would end the link, so they are percent-encoded. The
    other characters stay, so an encoded address is not changed again.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), address)
