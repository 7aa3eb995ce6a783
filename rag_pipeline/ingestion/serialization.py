"""Stage outputs as bytes and back: JSON for documents and chunks, NumPy's own format for vectors;
never pickle.

Each output names the format version that wrote it; one of another version reads as missing and is
made anew.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rag_pipeline.core.ids import ChunkId, DocId
from rag_pipeline.core.models import (
    Chunk,
    ContentType,
    Document,
    Heading,
    TextBlock,
    TextBlockKind,
)
from rag_pipeline.core.vectors import FORMAT_VERSION, ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Sequence


_DAMAGE: Final = (ValueError, KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What NumPy and zipfile raise on bytes that are no whole archive; each was met by fuzzing."""


def dump_record(record: dict[str, Any]) -> bytes:
    """Return a record as a JSON object that also has the format version.

    Dataclasses in it become objects with their fields.
    """
    text = json.dumps(
        {"format_version": FORMAT_VERSION, **record},
        ensure_ascii=False,
        sort_keys=True,
        default=_read_fields,
    )
    return text.encode("utf-8", "surrogatepass")


def _read_fields(value: Any) -> dict[str, Any]:  # noqa: ANN401  # any dataclass of core.models
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def load_record(data: bytes | None) -> dict[str, Any] | None:
    """Read what `dump_record` wrote; None where it is missing, damaged or of another version."""
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
class KeptChunks:
    """A document and its chunks, as a run left them.

    Attributes:
        sha256: Of the file they come from.
        pipeline_fingerprint: Of the settings they were made with.
    """

    sha256: str
    pipeline_fingerprint: str
    document: Document
    chunks: tuple[Chunk, ...]


def dump_chunks(kept: KeptChunks) -> bytes:
    """A document's chunks with all that tells whether they are still the right ones."""
    return dump_record(
        {
            "sha256": kept.sha256,
            "pipeline_fingerprint": kept.pipeline_fingerprint,
            "document": kept.document,
            "chunks": kept.chunks,
        }
    )


def load_chunks(data: bytes | None) -> KeptChunks | None:
    """Read what `dump_chunks` wrote; None where it cannot be."""
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


def dump_vectors(
    fingerprint: str, text_hashes: Sequence[str], vectors: Sequence[ChunkVectors]
) -> bytes:
    """Vectors of a document's chunks, in chunk order, with the hashes of the texts embedded and the
    fingerprint of the model.
    """
    buffer = io.BytesIO()
    windows = [entry.windows for entry in vectors]
    np.savez(
        buffer,
        format_version=np.array(FORMAT_VERSION),
        fingerprint=np.array(fingerprint),
        text_hashes=np.array(list(text_hashes), dtype="U64"),
        dense=np.array([entry.dense for entry in vectors], dtype=np.float32),
        windows=np.concatenate(windows) if windows else np.zeros((0, 0), dtype=np.float32),
        window_counts=np.array([len(rows) for rows in windows], dtype=np.int64),
    )
    return buffer.getvalue()


def load_vectors(data: bytes | None, fingerprint: str) -> dict[str, ChunkVectors] | None:
    """Vectors by text hash as `dump_vectors` wrote them: none of another model's, None where they
    cannot be read.
    """
    if data is None:
        return None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            if int(stored["format_version"]) != FORMAT_VERSION:
                return None
            if str(stored["fingerprint"]) != fingerprint:
                return {}
            hashes, dense = stored["text_hashes"], stored["dense"]
            ends = np.cumsum(stored["window_counts"])[:-1]
            windows = np.split(stored["windows"], ends) if len(hashes) else []
        return {
            str(text_hash): ChunkVectors(row, rows)
            for text_hash, row, rows in zip(hashes, dense, windows, strict=True)
        }
    except _DAMAGE:
        return None


def _read_document(record: dict[str, Any]) -> Document:
    return Document(
        **record
        | {
            "doc_path": DocId(record["doc_path"]),
            "tags": tuple(record["tags"]),
            "learning_objectives": tuple(record["learning_objectives"]),
            "content_type": ContentType(record["content_type"]),
            "headings": tuple(Heading(**heading) for heading in record["headings"]),
        }
    )


def _read_chunk(record: dict[str, Any]) -> Chunk:
    return Chunk(
        **record
        | {
            "chunk_id": ChunkId(record["chunk_id"]),
            "doc_path": DocId(record["doc_path"]),
            "heading_breadcrumb": tuple(record["heading_breadcrumb"]),
            "content_type": ContentType(record["content_type"]),
            "tags": tuple(record["tags"]),
            "blocks": tuple(
                TextBlock(TextBlockKind(block["kind"]), block["start"], block["end"])
                for block in record["blocks"]
            ),
        }
    )
