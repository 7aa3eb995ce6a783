"""Dagster asset checks of the indexed documents: one per rule, with a verdict per document.

A run that indexes a document logs the verdicts of its rules. The checks can also be executed alone.
This module writes the verdicts to Dagster's event log itself. If the checks yielded them, Dagster
would not record which document a verdict is about when a run has many documents.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.models import Stage
from rag_pipeline.core.rules import DOCUMENT_RULES, Fault
from rag_pipeline.ingestion.context import IngestionContext
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.ingestion.upkeep.audit import check_documents
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.partitions import (
    DOC_PARTITIONS,
    read_selected_keys,
    reconcile_partitions,
    to_doc_id,
    to_partition_key,
)
from rag_pipeline.orchestration.resources import IngestionResource

_POINTS = dg.AssetKey(Stage.POINTS.value)


def _specify_checks() -> list[dg.AssetCheckSpec]:
    with warnings.catch_warnings():
        # Dagster may still change partitioned checks. Tests run with its lowest and newest version.
        warnings.filterwarnings("ignore", message="Specifying a partitions_def on an AssetCheck")
        return [
            dg.AssetCheckSpec(
                rule.name, asset=_POINTS, description=rule.ensures, partitions_def=DOC_PARTITIONS
            )
            for rule in DOCUMENT_RULES
        ]


@dg.multi_asset_check(
    name="document_checks",
    specs=_specify_checks(),
    can_subset=True,
)
def document_checks(
    context: dg.AssetCheckExecutionContext, ingestion: dg.ResourceParam[IngestionResource]
) -> Iterator[Any]:
    """Check documents again: those of the selected partitions, or else all that are indexed.

    A document whose file changed since it was indexed is left out, and its verdict stays. In a run
    that also indexes documents, the verdicts are logged already.
    """
    begin_run(context.instance, context.run.run_id, ingestion.context.services.run_locks)
    if _POINTS in (context.run.asset_selection or ()):
        return
    names = {key.name for key in context.selected_asset_check_keys}
    keys = read_selected_keys(context.run, context.instance)
    doc_ids = [to_doc_id(key) for key in keys] or None
    for doc_id, faults in check_documents(ingestion.context, doc_ids):
        log_checks(context, doc_id, faults, names)
    yield from ()


def log_checks(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    doc_id: str,
    faults: Sequence[Fault],
    names: set[str] | None = None,
) -> None:
    """Log a verdict for each document rule about one document.

    Args:
        context: The Dagster context of the run.
        doc_id: The document.
        faults: Its violations of the rules in `DOCUMENT_RULES`.
        names: The rules to log; None for all.
    """
    step = context.op_execution_context.get_step_execution_context()
    for verdict in _judge(doc_id, faults):
        if names is None or verdict.check_name in names:
            dg.DagsterEvent.asset_check_evaluation(step, verdict)


def reconcile(instance: dg.DagsterInstance, context: IngestionContext, scan: Scan) -> None:
    """Correct partitions and verdicts that differ from the ledger, after a run was killed.

    If another process has the store open, the verdicts of such documents stay as they are.
    """
    late = reconcile_partitions(instance, scan)
    if late:
        with suppress(StoreError):
            for doc_id, faults in check_documents(context, late):
                for verdict in _judge(doc_id, faults):
                    instance.report_runless_asset_event(verdict)


def _judge(doc_id: str, faults: Sequence[Fault]) -> Iterator[dg.AssetCheckEvaluation]:
    for name in (rule.name for rule in DOCUMENT_RULES):
        details = [detail for rule, detail in faults if rule == name]
        yield dg.AssetCheckEvaluation(
            asset_key=_POINTS,
            check_name=name,
            passed=not details,
            metadata={"faults": "; ".join(details)} if details else {},
            partition=to_partition_key(doc_id),
            severity=dg.AssetCheckSeverity.ERROR,
        )
