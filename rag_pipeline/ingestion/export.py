"""Convert the documents, chunks and failures of a folder to JSON, for `rag-pipeline chunks`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rag_pipeline.core.editions import DEFAULT_EDITION
from rag_pipeline.core.errors import DocumentError
from rag_pipeline.core.models import DocFailure
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import Chunk, ChunkLimits, Document, JsonValue, SiteSettings
    from rag_pipeline.core.sources import Source


def chunk_folder(
    docs_dir: Path,
    site: SiteSettings,
    limits: ChunkLimits,
    manifest: Path | None = None,
    sources: Sequence[Source] = (),
) -> dict[str, JsonValue]:
    """Find, parse and chunk the documents of a docs folder, without a model or a store.

    Args:
        docs_dir: The docs folder.
        site: Settings of the built site, for the page addresses.
        limits: Chunk sizes.
        manifest: The `rag-manifest.json` of the built site, if it has one.
        sources: The sources of the book; empty if it has only its docs folder.

    Returns:
        A JSON object with the lists `documents`, `chunks` and `failures`, each in the order of
        document paths. An unchanged folder always gives an equal result.

    Raises:
        DocsFolderError: The folder is missing, unreadable or contains no Markdown file.
    """
    discovery = discover_docs(
        docs_dir, manifest=manifest, sources=sources, with_unlisted=site.index_unlisted
    )
    documents: list[JsonValue] = []
    chunks: list[JsonValue] = []
    failures = list(discovery.failures)
    for doc in discovery.docs:
        try:
            parsed = parse_doc(doc, site)
        except DocumentError as error:
            failures.append(DocFailure(doc.doc_id, "parsing", error.code, str(error)))
            continue
        documents.append(document_record(parsed.document))
        chunks.extend(chunk_record(chunk) for chunk in chunk_doc(parsed, limits))
    failures.sort(key=lambda failure: failure.doc_path)
    return {
        "documents": documents,
        "chunks": chunks,
        "failures": [failure_record(failure) for failure in failures],
    }


def document_record(document: Document) -> dict[str, JsonValue]:
    """Return the metadata and headings of a document, without its text, as a JSON object."""
    return {
        "doc_path": document.doc_path,
        "title": document.title,
        "description": document.description,
        "tags": list(document.tags),
        "learning_objectives": list(document.learning_objectives),
        "sidebar_label": document.sidebar_label,
        "sidebar_position": document.sidebar_position,
        "content_type": document.content_type.value,
        "module": document.module,
        "chapter": document.chapter,
        "url": document.url,
        "headings": [
            {
                "level": heading.level,
                "text": heading.text,
                "anchor": heading.anchor,
                "line": heading.line,
            }
            for heading in document.headings
        ],
        **({"edition": asdict(document.edition)} if document.edition != DEFAULT_EDITION else {}),
    }


def chunk_record(chunk: Chunk) -> dict[str, JsonValue]:
    """Return a chunk as a JSON object.

    Line numbers count from 1 and are inclusive. The offsets of `blocks` refer to the chunk's text.
    """
    return {
        "chunk_id": chunk.chunk_id,
        "doc_path": chunk.doc_path,
        "module": chunk.module,
        "chapter": chunk.chapter,
        "title": chunk.title,
        "section_heading": chunk.section_heading,
        "heading_breadcrumb": list(chunk.heading_breadcrumb),
        "heading_level": chunk.heading_level,
        "anchor": chunk.anchor,
        "url": chunk.url,
        "chunk_index": chunk.chunk_index,
        "content_type": chunk.content_type.value,
        "tags": list(chunk.tags),
        "content_hash": chunk.content_hash,
        "word_count": chunk.word_count,
        "token_count": chunk.token_count,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "text": chunk.text,
        "embedding_text": chunk.embedding_text,
        "blocks": [{**asdict(block), "kind": block.kind.value} for block in chunk.blocks],
        **({"sources": [asdict(source) for source in chunk.sources]} if chunk.sources else {}),
    }


def failure_record(failure: DocFailure) -> dict[str, JsonValue]:
    """Return the path, error code and message of a failure as a JSON object."""
    return {"doc_path": failure.doc_path, "error": failure.error, "message": failure.message}
