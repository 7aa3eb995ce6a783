"""The audit of the vector store as the Dagster asset check `store_matches_ledger`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import dagster as dg

from rag_pipeline.core.errors import CollectionMissingError, RagPipelineError
from rag_pipeline.ingestion.upkeep.audit import WRONG_MODEL, AuditFinding, AuditReport
from rag_pipeline.ingestion.upkeep.repair import audit_index
from rag_pipeline.orchestration.assets.ingestion import BOOK_INDEX
from rag_pipeline.orchestration.resources import Ingestion

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
        yield _judge_missing(context.instance, error)
    except RagPipelineError as error:
        raise dg.Failure(str(error), allow_retries=False) from None


def _judge(report: AuditReport) -> dg.AssetCheckResult:
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
        records = [_tabulate(finding) for finding in report.findings[:_LISTED_FINDINGS]]
        metadata["findings"] = dg.MetadataValue.table(records)
    return dg.AssetCheckResult(
        passed=not report.findings, description=description, metadata=metadata
    )


def _tabulate(finding: AuditFinding) -> dg.TableRecord:
    """Return an audit finding as a table row, with the command that repairs it."""
    return dg.TableRecord(
        {
            "doc_path": finding.doc_path,
            "kind": finding.kind,
            "chunk_id": finding.chunk_id,
            "detail": finding.detail,
            "remedy": _REINDEX if finding.kind == WRONG_MODEL else _REPAIR,
        }
    )


def _judge_missing(
    instance: dg.DagsterInstance, error: CollectionMissingError
) -> dg.AssetCheckResult:
    """Return the result of the store check when the collection does not exist.

    If Dagster has recorded no ingestion yet, a missing collection is correct and the check passes.
    Otherwise the check fails with the message of `error`.
    """
    if instance.get_latest_materialization_event(_INDEX) is None:
        return dg.AssetCheckResult(passed=True, description="Nothing has been ingested yet")
    return dg.AssetCheckResult(passed=False, description=str(error))
