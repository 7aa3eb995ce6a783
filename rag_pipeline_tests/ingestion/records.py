"""Builders of documents, chunks and ledger records for tests of single stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_pipeline.core.ids import DocId, hash_text, make_chunk_id
from rag_pipeline.core.models import (
    Chunk,
    ContentType,
    DiscoveredDoc,
    Document,
    Heading,
    TextBlock,
    TextBlockKind,
)
from rag_pipeline.core.protocols import LedgerEntry, LedgerFailure

DOC_ID = DocId("module-1/page.md")
TIME = "2026-01-02T03:04:05.678+00:00"


def make_document(doc_id: str = DOC_ID) -> Document:
    """Build a document with a value in every field."""
    return Document(
        doc_path=DocId(doc_id),
        title="Title",
        description="What it is about",
        tags=("ros", "größe"),
        learning_objectives=("Know it",),
        sidebar_label="Label",
        sidebar_position=1.5,
        content_type=ContentType.PROSE,
        module="module-1",
        chapter="chapter-1",
        url="/docs/module-1/page",
        headings=(Heading(2, "Section", "section", 7), Heading(1, "Top", None, 3)),
    )


def make_chunk(index: int = 0, text: str = "Some text.", doc_id: str = DOC_ID) -> Chunk:
    """Build a chunk of one line. Its embedding text is the heading path and the text."""
    return Chunk(
        chunk_id=make_chunk_id(DocId(doc_id), index),
        doc_path=DocId(doc_id),
        module="module-1",
        chapter="chapter-1",
        title="Title",
        section_heading="Section",
        heading_breadcrumb=("Title", "Section"),
        heading_level=2,
        anchor="section",
        url="/docs/module-1/page",
        chunk_index=index,
        content_type=ContentType.PROSE,
        tags=("ros",),
        content_hash=hash_text(text),
        word_count=len(text.split()),
        token_count=len(text.split()),
        start_line=index + 1,
        end_line=index + 1,
        start_byte=0,
        content_start_byte=0,
        end_byte=len(text.encode("utf-8", "surrogatepass")),
        text=text,
        embedding_text=f"Title > Section\n\n{text}",
        blocks=(TextBlock(TextBlockKind.PARAGRAPH, 0, len(text), 1, 1),),
    )


def make_discovered(doc_id: str = DOC_ID, sha256: str = "a", mtime_ns: int = 5) -> DiscoveredDoc:
    """Build the record of a file as a scan of the docs folder returns it."""
    return DiscoveredDoc(DocId(doc_id), Path("docs") / doc_id, sha256, 10, mtime_ns)


def make_entry(doc_id: str = DOC_ID, sha256: str = "a", fingerprint: str = "f") -> LedgerEntry:
    """Build the ledger entry of an indexed document with three chunks."""
    return LedgerEntry(
        doc_id=DocId(doc_id),
        sha256=sha256,
        size_bytes=10,
        mtime_ns=5,
        pipeline_fingerprint=fingerprint,
        collection_id="c",
        data_version="v",
        chunk_count=3,
        run_id="r",
        indexed_at=TIME,
    )


def make_failure(doc_id: str = DOC_ID, sha256: str = "a", attempts: int = 1) -> LedgerFailure:
    """Build the ledger's failure record of a document that failed in the chunking stage."""
    return LedgerFailure(DocId(doc_id), sha256, "chunks", "SomeError", "why", attempts, TIME)


def renumber(chunk: Chunk, index: int) -> Chunk:
    """Return a copy of the chunk at another position of its document, with the matching id."""
    return replace(chunk, chunk_index=index, chunk_id=make_chunk_id(chunk.doc_path, index))
