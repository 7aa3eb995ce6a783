"""The payload contract (FR-015): which fields a point carries, their types, and how they are read
back.

Belongs here: the one place that names payload fields. Does not belong here: how a store keeps them
(adapters).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.ids import hash_text

if TYPE_CHECKING:
    from rag_pipeline.core.models import Chunk, Document, Payload

INDEXED_FIELDS: Final = ("module", "chapter", "content_type", "tags", "doc_path")
"""Keyword indexes of FR-016, and doc_path for reading one document's points."""


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """A point's payload, typed; field names are those in the store. `text` and `embedding_hash`
    are not shown to users.
    """

    chunk_id: str
    doc_path: str
    module: str
    chapter: str
    title: str
    description: str
    section_heading: str
    heading_breadcrumb: tuple[str, ...]
    heading_level: int
    anchor: str | None
    url: str
    chunk_index: int
    content_type: str
    tags: tuple[str, ...]
    learning_objectives: tuple[str, ...]
    sidebar_label: str
    sidebar_position: float | None
    content_hash: str
    word_count: int
    token_count: int
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    ingested_at: str


def build_payload(chunk: Chunk, document: Document, ingested_at: str) -> Payload:
    """Build the payload of a chunk's point.

    Args:
        chunk: The chunk.
        document: The document it comes from.
        ingested_at: ISO 8601 in UTC; moves only when the chunk's content does.
    """
    return {
        "chunk_id": chunk.chunk_id,
        "doc_path": chunk.doc_path,
        "module": chunk.module,
        "chapter": chunk.chapter,
        "title": chunk.title,
        "description": document.description,
        "section_heading": chunk.section_heading,
        "heading_breadcrumb": list(chunk.heading_breadcrumb),
        "heading_level": chunk.heading_level,
        "anchor": chunk.anchor,
        "url": chunk.url,
        "chunk_index": chunk.chunk_index,
        "content_type": chunk.content_type.value,
        "tags": list(chunk.tags),
        "learning_objectives": list(document.learning_objectives),
        "sidebar_label": document.sidebar_label,
        "sidebar_position": document.sidebar_position,
        "content_hash": chunk.content_hash,
        "word_count": chunk.word_count,
        "token_count": chunk.token_count,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "start_byte": chunk.start_byte,
        "end_byte": chunk.end_byte,
        "text": chunk.text,
        "embedding_hash": hash_text(chunk.embedding_text),
        "ingested_at": ingested_at,
    }


def read_metadata(payload: Payload) -> ChunkMetadata:
    """Read a payload back.

    Raises:
        PayloadError: A field is missing or of another type; the message names point, field and
            mend.
    """
    values: dict[str, object] = {}
    for name, kind in _FIELD_KINDS.items():
        value = payload.get(name, _MISSING)
        if not _is_kind(value, kind):
            raise PayloadError(str(payload.get("chunk_id", "?")), name, value)
        values[name] = tuple(cast("list[str]", value)) if kind == "texts" else value
    return ChunkMetadata(**values)  # type: ignore[arg-type]  # each field was checked against _FIELD_KINDS


def read_text(payload: Payload) -> str:
    """Read the passage itself.

    Raises:
        PayloadError: It is missing.
    """
    text = payload.get("text")
    if not isinstance(text, str):
        raise PayloadError(str(payload.get("chunk_id", "?")), "text", text)
    return text


class _Missing:
    """Stands for a field that is not there, under a name that an error can show."""

    def __repr__(self) -> str:
        return "nothing"


_MISSING: Final = _Missing()
_CHUNK_ID: Final = re.compile(r"[0-9a-f]{16}")

_FIELD_KINDS: Final = {
    "chunk_id": "id",
    "doc_path": "text",
    "module": "text",
    "chapter": "text",
    "title": "text",
    "description": "text",
    "section_heading": "text",
    "heading_breadcrumb": "texts",
    "heading_level": "int",
    "anchor": "text?",
    "url": "text",
    "chunk_index": "int",
    "content_type": "text",
    "tags": "texts",
    "learning_objectives": "texts",
    "sidebar_label": "text",
    "sidebar_position": "number?",
    "content_hash": "text",
    "word_count": "int",
    "token_count": "int",
    "start_line": "int",
    "end_line": "int",
    "start_byte": "int",
    "end_byte": "int",
    "ingested_at": "text",
}


def _is_kind(value: object, kind: str) -> bool:
    if value is None:
        return kind.endswith("?")
    match kind.rstrip("?"):
        case "text":
            return isinstance(value, str)
        case "id":
            return isinstance(value, str) and _CHUNK_ID.fullmatch(value) is not None
        case "texts":
            return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return isinstance(value, (int, float)) and not isinstance(value, bool)
