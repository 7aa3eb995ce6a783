"""Buckets: a fixed number of groups of documents, which several workers can index in parallel.

The bucket of a document depends only on its id and on the number of buckets, so every machine and
every release computes the same one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

BUCKET_COUNT: Final = 256
"""The number of buckets of a book, unless the setting BUCKET_COUNT says otherwise."""


def bucket_of(doc_id: str, count: int = BUCKET_COUNT) -> int:
    """Return the bucket of a document, from 0 to `count` - 1.

    Args:
        doc_id: Id of the document.
        count: Number of buckets of the book, at least 1.
    """
    digest = hashlib.sha256(doc_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % count


def bucket_of_key(file_key: str, count: int = BUCKET_COUNT) -> int:
    """Return the bucket of the document whose files have the name that `make_file_key` returned.

    Args:
        file_key: The name, hexadecimal digits of the hash that `bucket_of` uses too.
        count: Number of buckets of the book, at least 1.

    Raises:
        ValueError: The name is of another form.
    """
    return int(file_key[:16], 16) % count


def find_buckets(doc_ids: Iterable[str], count: int = BUCKET_COUNT) -> tuple[int, ...]:
    """Return the buckets that contain the documents, ascending and without repeats."""
    return tuple(sorted({bucket_of(doc_id, count) for doc_id in doc_ids}))


def is_in(doc_id: str, buckets: Collection[int] | None, count: int = BUCKET_COUNT) -> bool:
    """Return True if a document is in one of the buckets; None stands for all buckets."""
    return buckets is None or bucket_of(doc_id, count) in buckets
