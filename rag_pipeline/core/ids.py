"""Identifiers of documents, chunks and points, and the JSON form that their hashes use."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NewType

from rag_pipeline.core.errors import DocumentIdError

if TYPE_CHECKING:
    from pathlib import Path


def to_json(value: Any) -> Any:  # noqa: ANN401  # any data class, and any JSON
    """Return a data class as `json.loads` would read it: dictionaries, lists, texts and numbers."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_json(entry) for name, entry in value.items()}
    return [to_json(entry) for entry in value] if isinstance(value, tuple | list) else value


DocId = NewType("DocId", str)
"""Path of a document below the docs folder, with `/` on every system and with the extension."""

ChunkId = NewType("ChunkId", str)
"""Id of a chunk: 16 lower-case hexadecimal digits, derived from its document and position."""

PointId = NewType("PointId", int)
"""Id of a point in the vector store: the chunk id read as an unsigned 64-bit integer."""

_MAX_DOC_ID_LENGTH = 1024
_CHUNK_ID: Final = re.compile(r"[0-9a-f]{16}")


def parse_doc_id(text: str) -> DocId:
    """Check that a text is a valid document id and return the text as a `DocId`.

    Args:
        text: A relative path with `/` between its parts, such as `module-1/intro.md`.

    Raises:
        DocumentIdError: The text is empty, an absolute path, or longer than 1,024 characters, or it
            has an empty, `.` or `..` part, a backslash, a control character or
            bytes that are not UTF-8.
    """
    parts = text.split("/")
    problem = None
    if not text:
        problem = "it is empty"
    elif len(text) > _MAX_DOC_ID_LENGTH:
        problem = f"it is longer than {_MAX_DOC_ID_LENGTH} characters"
    elif any(part in {"", ".", ".."} for part in parts):
        problem = "it contains an empty, '.' or '..' part"
    elif "\\" in text:
        problem = "it contains a backslash"
    elif any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        problem = "it contains a control character or bytes that are not UTF-8"
    if problem:
        raise DocumentIdError(text, problem)
    return DocId(text)


def make_chunk_id(doc_id: DocId, chunk_index: int) -> ChunkId:
    """Return the id of the chunk at a 0-based position in a document.

    Source:
        FR-004: SHA-256 of `doc_path::chunk_index`, first 16 hexadecimal digits.
    """
    digest = hashlib.sha256(f"{doc_id}::{chunk_index}".encode()).hexdigest()
    return ChunkId(digest[:16])


def is_chunk_id(value: object) -> bool:
    """Return True if a value is a text of 16 lower-case hexadecimal digits."""
    return isinstance(value, str) and _CHUNK_ID.fullmatch(value) is not None


def to_point_id(chunk_id: ChunkId) -> PointId:
    """Return a chunk id as the unsigned 64-bit integer that Qdrant accepts as a point id."""
    return PointId(int(chunk_id, 16))


def hash_place(path: Path, base: Path) -> str:
    """Return eight hexadecimal digits that identify a path relative to a base folder.

    The result does not change if both are moved together.

    Args:
        path: Resolved path of a file or folder.
        base: Resolved path of the base folder.
    """
    relative = os.path.relpath(path, base).replace(os.sep, "/")
    return hashlib.sha256(relative.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
