"""Dagster asset checks: the rules of documents with a verdict each, and the audit of the store.

A run that indexes a document logs its verdict. The checks can also be executed alone.
This module writes the verdicts to Dagster's event log itself. If the checks yielded them, Dagster
would not record which document a verdict is about when a run has many documents.
"""

import json
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import dagster as dg

from rag_pipeline.core.errors import CollectionMissingError, RagPipelineError, StoreError
from rag_pipeline.core.models import Stage
from rag_pipeline.core.rules import DOCUMENT_RULES, WRONG_MODEL, CheckReport, Finding
from rag_pipeline.ingestion.audit import audit_index, check_indexed
from rag_pipeline.ingestion.context import IngestionContext
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.partitions import (
    BOOK_INDEX,
    DOC_PARTITIONS,
    find_newest,
    read_selected_keys,
    reconcile_partitions,
    remove_partitions,
    to_doc_id,
    to_partition_key,
)
from rag_pipeline.orchestration.resources import Ingestion

_POINTS: Final = dg.AssetKey(Stage.POINTS.value)
DOCUMENT_CHECK: Final = "document_rules"
"""Name of the check with a verdict for each document."""

_TARGET: Final = "AssetCheckEvaluationTargetMaterializationData"
_TARGET_FIELDS: Final = ("storage_id", "run_id", "timestamp")
_GROUP: Final = 50  # documents whose materializations are looked up at once
_FEW: Final = 500  # documents that are named in a query


def _specify_check() -> dg.AssetCheckSpec:
    rules = "\n".join(f"- `{rule.name}`: {rule.ensures}" for rule in DOCUMENT_RULES)
    with warnings.catch_warnings():
        # Dagster may still change partitioned checks. Tests run with its lowest and newest version.
        warnings.filterwarnings("ignore", message="Specifying a partitions_def on an AssetCheck")
        return dg.AssetCheckSpec(
            DOCUMENT_CHECK,
            asset=_POINTS,
            description=f"What was written of each document follows these rules:\n\n{rules}",
            partitions_def=DOC_PARTITIONS,
        )


@dg.multi_asset_check(
    name="document_checks",
    specs=[_specify_check()],
    can_subset=True,  # lets the check end without a result
)
def document_checks(
    context: dg.AssetCheckExecutionContext, ingestion: dg.ResourceParam[Ingestion]
) -> Iterator[Any]:
    """Check documents again: those of the selected partitions, or else all that are indexed.

    A document whose file changed since it was indexed is left out, and its verdict stays. In a run
    that also indexes documents, the verdicts are logged already.
    """
    begin_run(context.instance, context.run.run_id, ingestion.context.services.run_locks)
    if _POINTS in (context.run.asset_selection or ()):
        return
    keys = read_selected_keys(context.run, context.instance)
    doc_ids = [to_doc_id(key) for key in keys] or None
    for verdict in judge(context.instance, check_indexed(ingestion.context, doc_ids)):
        log_verdict(context, verdict)
    yield from ()


def judge(
    instance: dg.DagsterInstance, found: Iterable[tuple[str, Sequence[Finding]]]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield a verdict on the recorded version of each document, in groups.

    Dagster shows a verdict of a partition only while the verdict names its last materialization.

    Args:
        instance: The Dagster instance.
        found: Documents with their violations of the rules in `DOCUMENT_RULES`.
    """
    rest = iter(found)
    while group := list(islice(rest, _GROUP)):
        keys = {doc_id: to_partition_key(doc_id) for doc_id, _ in group}
        targets = find_newest(instance, Stage.POINTS, keys.values())
        for doc_id, faults in group:
            target: Any = None  # its class has no public name
            if record := targets.get(keys[doc_id]):
                data = {name: getattr(record, name) for name in _TARGET_FIELDS}
                target = dg.deserialize_value(json.dumps(data | {"__class__": _TARGET}))
            broken: dict[str, list[str]] = {}
            for fault in faults:
                broken.setdefault(fault.kind, []).append(fault.detail)
            yield dg.AssetCheckEvaluation(
                asset_key=_POINTS,
                check_name=DOCUMENT_CHECK,
                passed=not faults,
                metadata={name: "; ".join(details) for name, details in broken.items()},
                partition=keys[doc_id],
                target_materialization_data=target,
            )


def log_verdict(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    verdict: dg.AssetCheckEvaluation,
) -> None:
    """Record a verdict in the log of a run."""
    step = context.op_execution_context.get_step_execution_context()
    dg.DagsterEvent.asset_check_evaluation(step, verdict)


def read_verdicts(
    instance: dg.DagsterInstance, keys: Collection[str] | None = None
) -> dict[str, bool]:
    """Return which documents follow all rules, for those that have a verdict.

    Verdicts on an earlier version of a document do not count.

    Args:
        instance: The Dagster instance.
        keys: Partition keys to look for; None for all documents.
    """
    chosen = None if keys is None or len(keys) > _FEW else list(keys)
    checks = [dg.AssetCheckKey(_POINTS, DOCUMENT_CHECK)]
    known = instance.event_log_storage.get_asset_check_partition_info(checks, None, chosen)
    return {
        one.partition_key: one.latest_execution_status.name == "SUCCEEDED"
        for one in known
        if one.partition_key is not None
        and one.is_current
        and one.latest_execution_status.name in {"SUCCEEDED", "FAILED"}
    }


def reconcile(instance: dg.DagsterInstance, context: IngestionContext, scan: Scan) -> None:
    """Correct partitions and verdicts that differ from the ledger, after a run was killed.

    If another process has the store open, the verdicts of such documents stay as they are. A book
    with more than DOC_PARTITIONS_LIMIT documents loses its partitions.
    """
    if len(scan.discovery.docs) > context.settings.doc_partitions_limit:
        remove_partitions(instance, scan, set())
        return
    indexed, late = reconcile_partitions(instance, scan)
    late |= indexed.keys() - read_verdicts(instance).keys()
    if late:
        with suppress(StoreError):
            found = list(check_indexed(context, {indexed[key] for key in late}))
            runs = instance.get_runs(limit=1)
            # Dagster stores only one verdict of a check on a document for each run, and so for all
            # verdicts without a run. If the history has no run, they get the id of a missing one.
            run_id = runs[0].run_id if runs else str(uuid4())
            for verdict in judge(instance, found):
                event = dg.DagsterEvent(
                    event_type_value=dg.DagsterEventType.ASSET_CHECK_EVALUATION.value,
                    job_name=runs[0].job_name if runs else "",
                    event_specific_data=verdict,
                )
                instance.report_dagster_event(event, run_id)


STORE_CHECK = "store_matches_ledger"

_INDEX = dg.AssetKey(BOOK_INDEX)
_LISTED_FINDINGS = 20
_REPAIR = "rag-pipeline audit --repair"
_REINDEX = "rag-pipeline ingest; add --rebuild if the embedding model was changed"


@dg.multi_asset_check(
    name=STORE_CHECK,
    specs=[
        dg.AssetCheckSpec(
            STORE_CHECK,
            asset=_INDEX,
            description=(
                "The store contains exactly the points that were indexed: none is missing, stale, "
                "altered, or without a document. The check reads the whole collection. The nightly "
                "audit runs it; a run that materializes assets skips it."
            ),
        )
    ],
    can_subset=True,  # lets the check end without a result
)
def store_matches_ledger(
    context: dg.AssetCheckExecutionContext, ingestion: dg.ResourceParam[Ingestion]
) -> Iterator[dg.AssetCheckResult]:
    """Compare the current collection with the ledger, and yield one result that lists problems.

    The ledger records which documents are indexed. In a run that materializes assets, the check
    yields nothing and its previous result stays. The UI adds every check to such a run, and one
    changed document does not justify an audit of the whole collection.

    An ingestion on the same machine causes no false findings (see `audit_index`). An ingestion on
    another machine may cause findings that the next audit does not repeat.

    Raises:
        dagster.Failure: The audit is not possible, for example because the store cannot be reached
            or is locked, an ingestion does not release its lock, or the settings are wrong.
    """
    if context.run.asset_selection:
        context.log.info(
            "skipped, because this run materializes assets; run the job `audit` instead"
        )
        return
    try:
        yield _judge(audit_index(ingestion.context))
    except CollectionMissingError as error:
        is_new = context.instance.get_latest_materialization_event(_INDEX) is None
        description = "Nothing has been ingested yet" if is_new else str(error)
        yield dg.AssetCheckResult(passed=is_new, description=description)
    except RagPipelineError as error:
        raise dg.Failure(str(error), allow_retries=False) from None


def _judge(report: CheckReport) -> dg.AssetCheckResult:
    """Return the check result of an audit: failed if the audit found any problem."""
    counts = Counter(finding.kind for finding in report.findings)
    metadata: dict[str, Any] = {
        "collection_id": report.collection_id,
        "doc_count": report.doc_count,
        "point_count": report.point_count,
        "finding_count": len(report.findings),
        **counts,
    }
    description = f"{report.doc_count} documents and {report.point_count} points are correct"
    if report.findings:
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        description = f"{named}. `rag-pipeline audit` lists all; add `--repair` to repair them"
        records = []
        for finding in report.findings[:_LISTED_FINDINGS]:
            record = asdict(finding)
            record["remedy"] = _REINDEX if finding.kind == WRONG_MODEL else _REPAIR
            del record["point_id"]
            records.append(dg.TableRecord(record))
        metadata["findings"] = dg.MetadataValue.table(records)
    return dg.AssetCheckResult(
        passed=not report.findings, description=description, metadata=metadata
    )
