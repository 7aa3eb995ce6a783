"""The first three stages of one document: discovered, parsed, chunked, each kept as an artifact.

Belongs here: reading the file, and reading back what an earlier run kept. Does not belong here: how
Markdown is parsed and cut (parsing, chunking).
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ArtifactMissingError, ArtifactStaleError, DocumentReadError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.serialization import (
    KeptChunks,
    dump_chunks,
    dump_record,
    load_chunks,
    load_record,
)
from rag_pipeline.ingestion.work import mark_begun

if TYPE_CHECKING:
    from rag_pipeline.core.models import DiscoveredDoc, ParsedDoc
    from rag_pipeline.ingestion.work import DocWork, IngestionServices


def prepare_doc(work: DocWork, services: IngestionServices, stages: frozenset[Stage]) -> None:
    """Discover, parse and chunk one document, or read what an earlier run made of it."""
    doc = work.doc
    if Stage.DISCOVERED in stages:
        record = {"doc_id": doc.doc_id, "sha256": doc.sha256, "size_bytes": doc.size_bytes}
        services.artifacts.write(Stage.DISCOVERED, doc.doc_id, dump_record(record))
        work.versions[Stage.DISCOVERED] = doc.sha256[:16]
        work.counts[Stage.DISCOVERED] = {"size_bytes": doc.size_bytes}
    parsed = _parse(work, services) if Stage.PARSED in stages else None
    if Stage.CHUNKS in stages:
        _chunk(work, services, parsed or _load_parsed(work, services))
    elif stages & {Stage.EMBEDDINGS, Stage.POINTS}:
        kept = load_chunks(services.artifacts.read(Stage.CHUNKS, doc.doc_id))
        if kept is None:
            raise ArtifactMissingError(doc.doc_id, Stage.CHUNKS.value)
        if kept.pipeline_fingerprint != services.pipeline_fingerprint:
            raise ArtifactStaleError(doc.doc_id, Stage.CHUNKS.value)
        work.document, work.chunks = kept.document, kept.chunks
        work.doc = _take_content(doc, kept.sha256)


def _take_content(doc: DiscoveredDoc, sha256: str) -> DiscoveredDoc:
    """Name the content that is really indexed, which may be another than the one discovered.

    Then it gets a size that no file has: the next discovery has to read the file, whatever that
    holds by then.
    """
    if sha256 == doc.sha256:
        return doc
    return replace(doc, sha256=sha256, size_bytes=-1, mtime_ns=0)


def _parse(work: DocWork, services: IngestionServices) -> ParsedDoc:
    start = time.perf_counter()
    try:
        data = work.doc.path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}. Check the file and its permissions"
        raise DocumentReadError(work.doc.doc_id, problem) from error
    # The file may have changed since it was discovered: what is indexed is what was read here.
    work.doc = _take_content(work.doc, hashlib.sha256(data).hexdigest())
    parsed = parse_doc(work.doc, services.site, data)
    record = {"doc_id": work.doc.doc_id, "sha256": work.doc.sha256, "source": parsed.source}
    services.artifacts.write(Stage.PARSED, work.doc.doc_id, dump_record(record))
    document = parsed.document
    work.versions[Stage.PARSED] = hash_text(repr((document, parsed.source)))[:16]
    work.counts[Stage.PARSED] = {
        "title": document.title,
        "url": document.url,
        "heading_count": len(document.headings),
        "block_count": len(parsed.blocks),
        "duration_s": time.perf_counter() - start,
    }
    return parsed


def _load_parsed(work: DocWork, services: IngestionServices) -> ParsedDoc:
    record = load_record(services.artifacts.read(Stage.PARSED, work.doc.doc_id))
    if record is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.PARSED.value)
    work.doc = _take_content(work.doc, record["sha256"])
    return parse_doc(work.doc, services.site, record["source"].encode("utf-8", "surrogatepass"))


def _chunk(work: DocWork, services: IngestionServices, parsed: ParsedDoc) -> None:
    start = time.perf_counter()
    chunks = chunk_doc(parsed, services.limits)
    work.document, work.chunks = parsed.document, chunks
    mark_begun(work, services)
    kept = KeptChunks(work.doc.sha256, services.pipeline_fingerprint, parsed.document, chunks)
    data = dump_chunks(kept)
    services.artifacts.write(Stage.CHUNKS, work.doc.doc_id, data)
    tokens = [chunk.token_count for chunk in chunks]
    work.versions[Stage.CHUNKS] = hashlib.sha256(data).hexdigest()[:16]
    work.counts[Stage.CHUNKS] = {
        "chunk_count": len(chunks),
        "token_total": sum(tokens),
        "token_max": max(tokens, default=0),
        "word_total": sum(chunk.word_count for chunk in chunks),
        "duration_s": time.perf_counter() - start,
    }
