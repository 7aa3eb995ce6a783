"""Convert stage outputs to bytes and back, as JSON.

Each output contains the format version that wrote it. An output of another
version is treated as missing, so the stage has to run again.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.editions import DEFAULT_EDITION, Edition
from rag_pipeline.core.ids import ChunkId, DocId
from rag_pipeline.core.models import (
    Chunk,
    ContentType,
    Document,
    Heading,
    TextBlock,
    TextBlockKind,
)
from rag_pipeline.core.text.source_lines import SourceLines
from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from rag_pipeline.ingestion.partials.files import ImportedFiles


def dump_record(record: dict[str, Any]) -> bytes:
    """Return a record as UTF-8 JSON, with the format version added.

    Dataclass instances in the record become JSON objects with one key per field.
    """
    text = json.dumps(
        {"format_version": FORMAT_VERSION, **record},
        ensure_ascii=False,
        sort_keys=True,
        default=_read_fields,
    )
    return text.encode("utf-8", "surrogatepass")


def _read_fields(value: Any) -> dict[str, Any]:  # noqa: ANN401  # any dataclass of core.models
    """Return the fields of a dataclass instance by name, without converting nested instances.

    The default edition of a document is left out.
    """
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if fields.get("edition") == DEFAULT_EDITION:
        del fields["edition"]
    return fields


def load_record(data: bytes | None) -> dict[str, Any] | None:
    """Read the output of `dump_record`; None if it is missing, damaged or of another version."""
    if data is None:
        return None
    try:
        record = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    if not isinstance(record, dict) or record.pop("format_version", None) != FORMAT_VERSION:
        return None
    return record


@dataclass(frozen=True, slots=True)
class KeptSource:
    """The source of a document, as the parsing stage stores it.

    Attributes:
        sha256: SHA-256 of the document's content.
        source: The bytes of the file.
        imported: The bytes of the files that it imports, by path below the site's folder.
    """

    sha256: str
    source: bytes
    imported: ImportedFiles


def dump_source(doc_id: str, kept: KeptSource) -> bytes:
    """Return the source of a document as UTF-8 JSON, with normalized text."""
    texts = {
        place: None if content is None else normalize_source(content)
        for place, content in kept.imported.items()
    }
    record = {"doc_id": doc_id, "sha256": kept.sha256, "source": normalize_source(kept.source)}
    return dump_record(record | ({"imported": texts} if texts else {}))


def load_source(data: bytes | None) -> KeptSource | None:
    """Read the output of `dump_source`; None if it is missing, damaged or of another version."""
    record = load_record(data)
    if record is None:
        return None
    try:
        imported = {
            place: None if text is None else text.encode("utf-8", "surrogatepass")
            for place, text in record.get("imported", {}).items()
        }
        source = record["source"].encode("utf-8", "surrogatepass")
        return KeptSource(record["sha256"], source, imported)
    except (KeyError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class KeptChunks:
    """A document and its chunks, as the chunking stage stores them.

    Attributes:
        sha256: SHA-256 of the file that the chunks were made from.
        pipeline_fingerprint: Fingerprint of the settings that the chunks were made with.
        document: The metadata and headings of the document.
        chunks: All chunks of the document, in order.
    """

    sha256: str
    pipeline_fingerprint: str
    document: Document
    chunks: tuple[Chunk, ...]


def dump_chunks(kept: KeptChunks) -> bytes:
    """Return a document and its chunks as UTF-8 JSON, with file hash and settings fingerprint."""
    return dump_record(
        {
            "sha256": kept.sha256,
            "pipeline_fingerprint": kept.pipeline_fingerprint,
            "document": kept.document,
            "chunks": kept.chunks,
        }
    )


def load_chunks(data: bytes | None) -> KeptChunks | None:
    """Read the output of `dump_chunks`; None if it is missing, damaged or of another version."""
    record = load_record(data)
    if record is None:
        return None
    try:
        return KeptChunks(
            str(record["sha256"]),
            str(record["pipeline_fingerprint"]),
            _read_document(record["document"]),
            tuple(_read_chunk(entry) for entry in record["chunks"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _read_document(record: dict[str, Any]) -> Document:
    """Build a document from its JSON object; KeyError, TypeError or ValueError if it is invalid."""
    return Document(
        **record
        | {
            "doc_path": DocId(record["doc_path"]),
            "tags": tuple(record["tags"]),
            "learning_objectives": tuple(record["learning_objectives"]),
            "content_type": ContentType(record["content_type"]),
            "headings": tuple(Heading(**heading) for heading in record["headings"]),
            "edition": Edition(**record.get("edition", {})),
        }
    )


def _read_chunk(record: dict[str, Any]) -> Chunk:
    """Build a chunk from its JSON object; KeyError, TypeError or ValueError if it is invalid."""
    return Chunk(
        **record
        | {
            "chunk_id": ChunkId(record["chunk_id"]),
            "doc_path": DocId(record["doc_path"]),
            "heading_breadcrumb": tuple(record["heading_breadcrumb"]),
            "content_type": ContentType(record["content_type"]),
            "tags": tuple(record["tags"]),
            "blocks": tuple(
                TextBlock(**{**block, "kind": TextBlockKind(block["kind"])})
                for block in record["blocks"]
            ),
            "sources": tuple(SourceLines(**source) for source in record["sources"]),
        }
    )
