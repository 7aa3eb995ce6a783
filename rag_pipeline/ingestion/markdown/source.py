"""A file's bytes as the text in which all stages count lines and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def normalize_source(content: bytes) -> str:
    r"""Decode a file as Docusaurus does: UTF-8, invalid bytes replaced, `\n` line ends.

    A byte order mark is removed, NUL becomes U+FFFD; lines keep their numbers.
    """
    text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def count_bytes(source: str, offsets: Iterable[int]) -> dict[int, int]:
    """Map character offsets of the source to offsets in its UTF-8 bytes, in one pass."""
    found: dict[int, int] = {}
    at = size = 0
    ascii_only = source.isascii()
    for offset in sorted(set(offsets)):
        size += offset - at if ascii_only else len(source[at:offset].encode())
        found[offset] = size
        at = offset
    return found
