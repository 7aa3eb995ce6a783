"""Whether ledger, artifacts and store agree, both ways, and which documents must be indexed anew
where they do not.

Belongs here: the comparison. Does not belong here: mending, which is an ordinary ingestion of the
named documents.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.ids import DocId, hash_text, to_point_id
from rag_pipeline.core.models import Stage
from rag_pipeline.core.payload import build_payload
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.ingestion.serialization import load_chunks, load_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import JsonValue, Payload
    from rag_pipeline.core.protocols.embedding import SparseEncoder
    from rag_pipeline.core.protocols.state import ArtifactStore, LedgerEntry
    from rag_pipeline.core.protocols.stores import StoredPoint, VectorIndex
    from rag_pipeline.core.vectors import ChunkVectors, FloatMatrix, SparseVector

STRAY: Final = "stray"
WRONG_MODEL: Final = "wrong_model"

_PAGE_DOCS: Final = 200
_COSINE_TOLERANCE = 1e-4  # stores keep float32 and normalize anew


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One disagreement.

    Attributes:
        kind: missing, stray, stale, wrong_payload, wrong_vector, wrong_terms, wrong_model or
            no_artifact.
        doc_path: The document concerned; as the point itself says where the ledger knows none.
        chunk_id: The chunk concerned; empty for a whole document.
        point_id: The point concerned; None for a whole document.
    """

    kind: str
    doc_path: str
    chunk_id: str
    detail: str
    point_id: PointId | None = None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All disagreements of a collection, by document, and what was looked at."""

    collection_id: str
    doc_count: int
    point_count: int
    findings: tuple[AuditFinding, ...]

    @property
    def doc_paths(self) -> tuple[str, ...]:
        """All documents that something is wrong with, as ledger or points name them, ascending."""
        return tuple(sorted({finding.doc_path for finding in self.findings}))

    @property
    def strays(self) -> tuple[AuditFinding, ...]:
        """Points that stand for no chunk."""
        return tuple(finding for finding in self.findings if finding.kind == STRAY)

    def to_json(self) -> dict[str, JsonValue]:
        """The report as a JSON object."""
        return {
            "collection_id": self.collection_id,
            "doc_count": self.doc_count,
            "point_count": self.point_count,
            "finding_count": len(self.findings),
            "findings": [asdict(finding) for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class AuditedCollection:
    """What a ledger is compared with.

    Attributes:
        open_store: Opens the collection; done for a page of documents at a time, which bounds
            memory and lets queries of other processes come between.
        artifacts: Chunks and vectors of the last run of each document.
        sparse: What the terms of chunks were made by.
        fingerprint: Of the present settings.
        model_fingerprint: Of the embedding model that they name.
    """

    collection_id: str
    open_store: Callable[[], VectorIndex]
    artifacts: ArtifactStore
    sparse: SparseEncoder
    fingerprint: str
    model_fingerprint: str


def audit_collection(
    collection: AuditedCollection, entries: Mapping[DocId, LedgerEntry]
) -> AuditReport:
    """Compare what the store holds with what the ledger and the artifacts say it should.

    What an ingestion writes meanwhile may show as findings; see `confirm_findings`.
    """
    findings: list[AuditFinding] = []
    doc_ids = sorted(entries)
    known_count = total = 0
    for start in range(0, max(1, len(doc_ids)), _PAGE_DOCS):
        page = doc_ids[start : start + _PAGE_DOCS]
        with closing(collection.open_store()) as store:
            points = _read_points(store, page)
            total = store.count()
        known_count += len(points)
        findings += _audit_page(collection, [entries[doc_id] for doc_id in page], points)
    if total != known_count:
        with closing(collection.open_store()) as store:
            findings += _find_unknown(store.scroll(), entries)
    point_count = sum(entry.chunk_count for entry in entries.values())
    return AuditReport(collection.collection_id, len(entries), point_count, tuple(findings))


def confirm_findings(
    found: Sequence[AuditFinding],
    collection: AuditedCollection,
    entries: Mapping[DocId, LedgerEntry],
) -> list[AuditFinding]:
    """Look again at the documents and points of findings, while no ingestion writes.

    Args:
        found: Of a few documents, by `audit_collection`.
        collection: The same.
        entries: The ledger as it is now.

    Returns:
        What is wrong with them now.
    """
    page = sorted({DocId(one.doc_path) for one in found if one.doc_path in entries})
    unknown = [
        one.point_id for one in found if one.doc_path not in entries and one.point_id is not None
    ]
    with closing(collection.open_store()) as store:
        points = _read_points(store, page)
        strays = _find_unknown(store.fetch(unknown), entries)
    return _audit_page(collection, [entries[doc_id] for doc_id in page], points) + strays


def _read_points(store: VectorIndex, page: Sequence[DocId]) -> list[StoredPoint]:
    where = PointFilter(doc_paths=tuple(page))  # an empty one would match all
    return store.scroll(where, with_vectors=True) if page else []


def _audit_page(
    collection: AuditedCollection, page: Sequence[LedgerEntry], points: Iterable[StoredPoint]
) -> list[AuditFinding]:
    findings: list[AuditFinding] = []
    by_doc: dict[str, dict[PointId, StoredPoint]] = {entry.doc_id: {} for entry in page}
    for point in points:
        by_doc[str(point.payload["doc_path"])][point.point_id] = point
    made_with = (collection.collection_id, collection.fingerprint)
    for entry in page:
        if (entry.collection_id, entry.pipeline_fingerprint) != made_with:
            detail = "was indexed with other settings, or into another collection"
            findings.append(AuditFinding(WRONG_MODEL, entry.doc_id, "", detail))
        else:
            findings += _audit_document(entry, by_doc[entry.doc_id], collection)
    return findings


def _find_unknown(
    points: Iterable[StoredPoint], entries: Mapping[DocId, LedgerEntry]
) -> list[AuditFinding]:
    unknown = [(str(point.payload.get("doc_path", "")), point) for point in points]
    return [
        _stray(doc_path, point, "its document is not in the ledger")
        for doc_path, point in sorted(unknown, key=lambda pair: (pair[0], pair[1].point_id))
        if doc_path not in entries
    ]


def _audit_document(
    entry: LedgerEntry,
    stored: Mapping[PointId, StoredPoint],
    collection: AuditedCollection,
) -> Iterable[AuditFinding]:
    doc_id, artifacts = entry.doc_id, collection.artifacts
    kept = load_chunks(artifacts.read(Stage.CHUNKS, doc_id))
    data = artifacts.read(Stage.EMBEDDINGS, doc_id)
    vectors = load_vectors(data, collection.model_fingerprint)
    if kept is None or vectors is None:
        yield AuditFinding("no_artifact", doc_id, "", "chunks or vectors of it are not kept")
        return
    if (kept.sha256, kept.pipeline_fingerprint) != (entry.sha256, entry.pipeline_fingerprint):
        yield AuditFinding("stale", doc_id, "", "its chunks were made anew and not indexed")
        return
    wanted = {to_point_id(chunk.chunk_id): chunk for chunk in kept.chunks}
    all_terms = collection.sparse.encode_passages([chunk.embedding_text for chunk in kept.chunks])
    for (point_id, chunk), terms in zip(wanted.items(), all_terms, strict=True):
        point = stored.get(point_id)
        if point is None:
            yield AuditFinding("missing", doc_id, chunk.chunk_id, "has no point", point_id)
            continue
        expected = build_payload(chunk, kept.document, str(point.payload.get("ingested_at")))
        wrong = _differing_fields(point.payload, expected)
        if wrong:
            detail = f"differs in {wrong}"
            yield AuditFinding("wrong_payload", doc_id, chunk.chunk_id, detail, point_id)
        vector = vectors.get(hash_text(chunk.embedding_text))
        if vector is None or point.vectors is None or not _agree(vector, point.vectors):
            detail = "is not what was embedded"
            yield AuditFinding("wrong_vector", doc_id, chunk.chunk_id, detail, point_id)
        if point.sparse is None or not _have_same_terms(terms, point.sparse):
            detail = "is found by other words than its own"
            yield AuditFinding("wrong_terms", doc_id, chunk.chunk_id, detail, point_id)
    for point_id, point in stored.items():
        if point_id not in wanted:
            yield _stray(doc_id, point, "no chunk stands for it")


def _stray(doc_path: str, point: StoredPoint, detail: str) -> AuditFinding:
    chunk_id = str(point.payload.get("chunk_id", ""))
    return AuditFinding(STRAY, doc_path, chunk_id, detail, point.point_id)


def _differing_fields(stored: Payload, expected: Payload) -> str:
    names = sorted(stored.keys() | expected.keys())
    return ", ".join(name for name in names if stored.get(name) != expected.get(name))


def _agree(expected: ChunkVectors, stored: ChunkVectors) -> bool:
    if expected.windows.shape != stored.windows.shape:
        return False
    return all(
        bool(np.allclose(_unit(one), _unit(other), atol=_COSINE_TOLERANCE))
        for one, other in (
            (expected.dense[np.newaxis, :], stored.dense[np.newaxis, :]),
            (expected.windows, stored.windows),
        )
    )


def _have_same_terms(expected: SparseVector, stored: SparseVector) -> bool:
    return expected.indices == stored.indices and np.allclose(expected.values, stored.values)


def _unit(rows: FloatMatrix) -> FloatMatrix:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: FloatMatrix = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
