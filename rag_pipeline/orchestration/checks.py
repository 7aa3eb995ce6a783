"""Asset checks of the ingestion assets: one verdict per run on each rule.

They are logged by hand, because a partitioned check of a run over many documents would give one
result without a partition. A verdict for every sound document would double the event log, so only
faulty documents get their own.
"""

from collections.abc import Mapping, Sequence

import dagster as dg

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Stage
from rag_pipeline.core.rules import DOCUMENT_RULES, Fault
from rag_pipeline.orchestration.partitions import to_partition_key

CHECK_SPECS = [
    dg.AssetCheckSpec(rule.name, asset=Stage.POINTS.value, description=rule.ensures)
    for rule in DOCUMENT_RULES
]

_NAMED_FAULTS = 20


def log_checks(context: dg.AssetExecutionContext, faults: Mapping[DocId, Sequence[Fault]]) -> None:
    """Log a verdict on each rule, and one on each document that breaks it.

    Args:
        context: The context of the run.
        faults: The faults of each document that was written and read back; empty for sound ones.
    """
    for name in (rule.name for rule in DOCUMENT_RULES):
        by_doc = {
            doc_id: "; ".join(detail for check, detail in doc_faults if check == name)
            for doc_id, doc_faults in faults.items()
            if any(check == name for check, _ in doc_faults)
        }
        for doc_id, detail in by_doc.items():
            _log(context, name, {"faults": detail}, to_partition_key(doc_id))
        metadata: dict[str, int | str] = {
            "doc_count": len(faults),
            "faulty_doc_count": len(by_doc),
        }
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
