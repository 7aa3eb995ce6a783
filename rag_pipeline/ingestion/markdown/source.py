"""A file's bytes as the text all stages count lines and bytes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def normalize_source(content: bytes) -> str:
    r"""Decode a file as Docusaurus does: UTF-8 with bytes that are none replaced, `\n` line ends.

    A byte order mark goes, NUL becomes U+FFFD; lines keep their numbers.
    """
    text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def count_bytes(source: str, offsets: Iterable[int]) -> dict[int, int]:
    """Byte offset of each character offset in the UTF-8 bytes of the source, in one pass."""
    found: dict[int, int] = {}
    at = size = 0
    ascii_only = source.isascii()
    for offset in sorted(set(offsets)):
        size += offset - at if ascii_only else len(source[at:offset].encode())
        found[offset] = size
        at = offset
    return found
