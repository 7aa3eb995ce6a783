"""Asset checks of the ingestion assets: one verdict a run for each rule, and one for each document
that breaks it.

Logged by hand, since a partitioned check of a run over many documents would give one result without
a partition. A verdict for every sound document would double the event log: only faults are logged
by document.
"""

from collections.abc import Mapping, Sequence

import dagster as dg

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.soundness import CHECKS, Fault
from rag_pipeline.orchestration.partitions import to_partition_key

CHECK_SPECS = [
    dg.AssetCheckSpec(name, asset=Stage.POINTS.value, description=text)
    for name, text in CHECKS.items()
]

_NAMED_FAULTS = 20


def log_checks(
    context: dg.AssetExecutionContext, faults: Mapping[DocId, Sequence[Fault]], checked: int
) -> None:
    """Log a verdict on each rule.

    Args:
        context: Of the run.
        faults: Of each document that has any.
        checked: How many documents were written and read back.
    """
    for name in CHECKS:
        found = [
            (doc_id, detail)
            for doc_id, doc_faults in faults.items()
            for check, detail in doc_faults
            if check == name
        ]
        _log_verdict(context, name, found, checked)


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
