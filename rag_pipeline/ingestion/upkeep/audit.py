"""The comparison of ledger, artifacts and store, both ways.

It finds the documents that must be indexed again. Repairing them is an ordinary ingestion of these
documents, see repair.py.
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
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import JsonValue, Payload
    from rag_pipeline.core.protocols.state import ArtifactStore, LedgerEntry
    from rag_pipeline.core.protocols.stores import StoredPoint, VectorIndex
    from rag_pipeline.core.vectors import ChunkVectors, FloatMatrix, SparseVector
    from rag_pipeline.ingestion.context import IngestionContext

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


def audit_collection(
    context: IngestionContext, collection_id: str, entries: Mapping[DocId, LedgerEntry]
) -> AuditReport:
    """Compare what the store contains with what the ledger and the artifacts say it should.

    The store is opened for one page of documents at a time. That bounds memory and lets queries of
    other processes in between. What an ingestion writes meanwhile may show as findings; see
    `confirm_findings`.

    Args:
        context: The settings and services.
        collection_id: The collection to audit.
        entries: The ledger of that collection.
    """
    findings: list[AuditFinding] = []
    doc_ids = sorted(entries)
    known_count = total = 0
    for start in range(0, max(1, len(doc_ids)), _PAGE_DOCS):
        page = doc_ids[start : start + _PAGE_DOCS]
        with closing(context.services.catalog.open(collection_id)) as store:
            points = _read_points(store, page)
            total = store.count()
        known_count += len(points)
        findings += _audit_page(context, collection_id, [entries[doc] for doc in page], points)
    if total != known_count:
        with closing(context.services.catalog.open(collection_id)) as store:
            findings += _find_unknown(store.scroll(), entries)
    point_count = sum(entry.chunk_count for entry in entries.values())
    return AuditReport(collection_id, len(entries), point_count, tuple(findings))


def confirm_findings(
    found: Sequence[AuditFinding],
    context: IngestionContext,
    collection_id: str,
    entries: Mapping[DocId, LedgerEntry],
) -> list[AuditFinding]:
    """Look again at the documents and points of findings, while no ingestion writes.

    Args:
        found: Findings about a few documents, from `audit_collection`.
        context: The settings and services.
        collection_id: The collection that was audited.
        entries: The ledger as it is now.

    Returns:
        What is wrong with these documents and points now.
    """
    page = sorted({DocId(one.doc_path) for one in found if one.doc_path in entries})
    unknown = [
        one.point_id for one in found if one.doc_path not in entries and one.point_id is not None
    ]
    with closing(context.services.catalog.open(collection_id)) as store:
        points = _read_points(store, page)
        strays = _find_unknown(store.fetch(unknown), entries)
    return _audit_page(context, collection_id, [entries[doc] for doc in page], points) + strays


def _read_points(store: VectorIndex, page: Sequence[DocId]) -> list[StoredPoint]:
    where = PointFilter.any_of(doc_path=tuple(page))  # an empty filter would match all
    return store.scroll(where, with_vectors=True) if page else []


def _audit_page(
    context: IngestionContext,
    collection_id: str,
    page: Sequence[LedgerEntry],
    points: Iterable[StoredPoint],
) -> list[AuditFinding]:
    findings: list[AuditFinding] = []
    by_doc: dict[str, dict[PointId, StoredPoint]] = {entry.doc_id: {} for entry in page}
    for point in points:
        by_doc[str(point.payload["doc_path"])][point.point_id] = point
    made_with = (collection_id, context.fingerprint)
    artifacts = context.services.open_artifacts(collection_id)
    for entry in page:
        if (entry.collection_id, entry.pipeline_fingerprint) != made_with:
            detail = "was indexed with other settings, or into another collection"
            findings.append(AuditFinding(WRONG_MODEL, entry.doc_id, "", detail))
        else:
            findings += _audit_document(context, entry, by_doc[entry.doc_id], artifacts)
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
    context: IngestionContext,
    entry: LedgerEntry,
    stored: Mapping[PointId, StoredPoint],
    artifacts: ArtifactStore,
) -> Iterable[AuditFinding]:
    doc_id, services = entry.doc_id, context.services
    kept = load_chunks(artifacts.read(Stage.CHUNKS, doc_id))
    data = artifacts.read(Stage.EMBEDDINGS, doc_id)
    vectors = load_vectors(data, services.embedder.model.fingerprint)
    if kept is None or vectors is None:
        yield AuditFinding("no_artifact", doc_id, "", "chunks or vectors of it are not kept")
        return
    if (kept.sha256, kept.pipeline_fingerprint) != (entry.sha256, entry.pipeline_fingerprint):
        yield AuditFinding("stale", doc_id, "", "its chunks were made anew and not indexed")
        return
    wanted = {to_point_id(chunk.chunk_id): chunk for chunk in kept.chunks}
    all_terms = services.sparse.encode_passages([chunk.embedding_text for chunk in kept.chunks])
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
