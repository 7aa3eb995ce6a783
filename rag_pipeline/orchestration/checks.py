"""Asset checks of the ingestion assets: one verdict a run for each rule, and one for each document
that breaks it.

Logged by hand, since a partitioned check of a run over many documents would give one result without
a partition. A
verdict for every sound document would double the event log: only faults are logged by document.
"""

from collections.abc import Mapping, Sequence

import dagster as dg

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Chunk, Stage
from rag_pipeline.core.ports import PointFilter, StoredPoint
from rag_pipeline.ingestion.run import IngestionEnvironment
from rag_pipeline.ingestion.soundness import CHECKS, find_faults
from rag_pipeline.orchestration.partitions import to_partition_key

CHECK_SPECS = [
    dg.AssetCheckSpec(name, asset=Stage.POINTS.value, description=text)
    for name, text in CHECKS.items()
]

_PAGE_DOCS = 50  # documents read back at a time; bounds memory
_NAMED_FAULTS = 20


def log_checks(
    context: dg.AssetExecutionContext,
    environment: IngestionEnvironment,
    collection_id: str,
    written: Mapping[DocId, tuple[Chunk, ...]],
) -> None:
    """Read back the documents a run wrote, and log a verdict on each rule.

    Args:
        context: Of the run.
        environment: Gives the store and the limits.
        collection_id: The collection that the run wrote to.
        written: Chunks of each document written.
    """
    faults: dict[str, list[tuple[DocId, str]]] = {name: [] for name in CHECKS}
    dim = environment.embedder.model.dim
    doc_ids = list(written)
    store = environment.catalog.open(collection_id, environment.space)
    try:
        for start in range(0, len(doc_ids), _PAGE_DOCS):
            page = doc_ids[start : start + _PAGE_DOCS]
            where = PointFilter(doc_paths=tuple(page))
            points = _group_by_document(store.scroll(where, with_vectors=True))
            for doc_id in page:
                own = points.get(doc_id, [])
                for name, fault in find_faults(written[doc_id], own, environment.limits, dim):
                    faults[name].append((doc_id, fault))
    finally:
        store.close()
    for name, found in faults.items():
        _log_verdict(context, name, found, len(written))


def _log_verdict(
    context: dg.AssetExecutionContext, name: str, found: Sequence[tuple[DocId, str]], checked: int
) -> None:
    by_doc: dict[DocId, list[str]] = {}
    for doc_id, fault in found:
        by_doc.setdefault(doc_id, []).append(fault)
    for doc_id, doc_faults in by_doc.items():
        _log(context, name, {"faults": "; ".join(doc_faults)}, to_partition_key(doc_id))
    metadata: dict[str, int | str] = {"doc_count": checked, "faulty_doc_count": len(by_doc)}
    if by_doc:
        metadata["faulty_docs"] = ", ".join(list(by_doc)[:_NAMED_FAULTS])
    _log(context, name, metadata)


def _log(
    context: dg.AssetExecutionContext,
    name: str,
    metadata: Mapping[str, int | str],
    partition: str | None = None,
) -> None:
    passed = "faults" not in metadata and not metadata.get("faulty_doc_count")
    context.log_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(Stage.POINTS.value),
            check_name=name,
            passed=passed,
            metadata=metadata,
            partition=partition,
            severity=dg.AssetCheckSeverity.ERROR,
        )
    )


def _group_by_document(points: Sequence[StoredPoint]) -> dict[str, list[StoredPoint]]:
    grouped: dict[str, list[StoredPoint]] = {}
    for point in points:
        grouped.setdefault(str(point.payload.get("doc_path")), []).append(point)
    return grouped
