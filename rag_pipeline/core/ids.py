"""Identifiers of documents, chunks and points, and the rules that make them safe and stable.

Belongs here: identifier types and their derivation. Does not belong here: Dagster partition keys
(orchestration.partitions).
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from typing import TYPE_CHECKING, Final, NewType

from rag_pipeline.core.errors import DocumentIdError

if TYPE_CHECKING:
    from pathlib import Path

DocId = NewType("DocId", str)
"""Path of a document below the docs folder, `/`-separated on every system, extension included."""

ChunkId = NewType("ChunkId", str)
"""16 lower-case hexadecimal digits."""

PointId = NewType("PointId", int)
"""Unsigned 64-bit integer: a chunk id read as a number."""

_MAX_DOC_ID_LENGTH = 1024
_CHUNK_ID: Final = re.compile(r"[0-9a-f]{16}")


def parse_doc_id(text: str) -> DocId:
    """Check that a text is a document id and return it typed.

    Args:
        text: A relative path with `/` between its parts, such as `module-1/intro.md`.

    Raises:
        DocumentIdError: Empty, absolute, over 1,024 characters, with `.` or `..` parts, backslashes
            or control characters.
    """
    parts = text.split("/")
    problem = None
    if not text:
        problem = "it is empty"
    elif len(text) > _MAX_DOC_ID_LENGTH:
        problem = f"it is longer than {_MAX_DOC_ID_LENGTH} characters"
    elif any(part in {"", ".", ".."} for part in parts):
        problem = "it has an empty, '.' or '..' part"
    elif "\\" in text:
        problem = "it has a backslash"
    elif any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        problem = "it has a control character"
    if problem:
        raise DocumentIdError(text, problem)
    return DocId(text)


def make_chunk_id(doc_id: DocId, chunk_index: int) -> ChunkId:
    """Derive the id of the chunk at a 0-based position of a document.

    Source:
        FR-004: SHA-256 of `doc_path::chunk_index`, first 16 hexadecimal digits.
    """
    digest = hashlib.sha256(f"{doc_id}::{chunk_index}".encode()).hexdigest()
    return ChunkId(digest[:16])


def is_chunk_id(value: object) -> bool:
    """Tell if a value has the form of a chunk id."""
    return isinstance(value, str) and _CHUNK_ID.fullmatch(value) is not None


def to_point_id(chunk_id: ChunkId) -> PointId:
    """Read a chunk id as the unsigned 64-bit number that Qdrant takes as point id."""
    return PointId(int(chunk_id, 16))


def make_file_key(doc_id: DocId) -> str:
    """Name of a document's file among what is kept of documents: an id may hold any character."""
    return hashlib.sha256(doc_id.encode()).hexdigest()[:32]


def hash_place(path: Path, base: Path) -> str:
    """Eight hexadecimal digits of where a path lies as seen from a folder; both may move together.

    Args:
        path: Resolved.
        base: The folder, resolved.
    """
    relative = os.path.relpath(path, base).replace(os.sep, "/")
    return hashlib.sha256(relative.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def hash_text(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
