"""Dagster asset checks of the indexed documents: in each run, one result per document rule.

A document that breaks a rule also gets a result of its own for that rule. This module writes the
results to Dagster's event log itself. If the asset yielded them, Dagster would not record which
document a result is about when a run has many documents. Correct documents get no result of their
own, because that would double the size of the event log.
"""

from collections.abc import Iterator, Mapping, Sequence

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
    """Log one check result per document rule, and one more per broken rule and document.

    A rule's own result, for the whole run, has failed if any document breaks the rule.

    Args:
        context: The Dagster context of the run.
        faults: For every document that the run indexed, its violations of the rules in
            `DOCUMENT_RULES`; an empty sequence if it has none.
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


def yield_check_outputs(context: dg.AssetExecutionContext) -> Iterator[dg.Output[None]]:
    """Yield the empty output of each selected check, as Dagster does after a check's result.

    The results themselves are logged already. Without the outputs, Dagster would end each run with
    the note that outputs are missing.
    """
    for key in sorted(context.selected_asset_check_keys):
        name = context.assets_def.get_output_name_for_asset_check_key(key)
        yield dg.Output(None, output_name=name)


def _log(
    context: dg.AssetExecutionContext,
    name: str,
    metadata: Mapping[str, int | str],
    partition: str | None = None,
) -> None:
    """Log one result of the check `name`, for a document's partition or (None) for the whole run.

    The check has failed if the metadata contains `faults` or a `faulty_doc_count` above 0.
    """
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
