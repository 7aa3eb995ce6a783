"""The audit as an asset check: the store still contains what the ledger says."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import dagster as dg

from rag_pipeline.core.errors import CollectionMissingError, RagPipelineError
from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.upkeep.audit import WRONG_MODEL, AuditFinding, AuditReport
from rag_pipeline.ingestion.upkeep.repair import audit_index
from rag_pipeline.orchestration.resources import IngestionResource

STORE_CHECK = "store_matches_ledger"

_POINTS = dg.AssetKey(Stage.POINTS.value)
_LISTED_FINDINGS = 20
_REPAIR = "rag-pipeline audit --repair"
_REINDEX = "rag-pipeline ingest, with --rebuild where the model is another"


@dg.multi_asset_check(
    name=STORE_CHECK,
    specs=[
        dg.AssetCheckSpec(
            STORE_CHECK,
            asset=_POINTS,
            description=(
                "Ledger, kept chunks and vectors, and the store agree both ways: nothing is "
                "missing, stray, stale or altered. Looks at the whole collection: run it by "
                "itself; the nightly audit does."
            ),
        )
    ],
    can_subset=True,  # a run that looks at nothing owes no verdict
)
def store_matches_ledger(
    context: dg.AssetCheckExecutionContext, ingestion: dg.ResourceParam[IngestionResource]
) -> Iterator[dg.AssetCheckResult]:
    """Audit the collection in use.

    What another machine writes meanwhile may show as findings that the next audit lacks; an
    ingestion on this one does not (see `audit_index`).

    A run that materializes assets gives no verdict: the UI adds every check to those, and one
    document is not worth a look at all. The verdict before stands.

    Raises:
        dagster.Failure: There is no telling: the store is held, or the lock while something
            disagrees, no server answers, or settings are wrong.
    """
    if context.run.asset_selection:
        context.log.info("left out of a run that materializes assets; run this check by itself")
        return
    try:
        yield _judge(audit_index(ingestion.context))
    except CollectionMissingError as error:
        yield _judge_missing(context.instance, error)
    except RagPipelineError as error:
        raise dg.Failure(str(error), allow_retries=False) from None


def _judge(report: AuditReport) -> dg.AssetCheckResult:
    counts = Counter(finding.kind for finding in report.findings)
    metadata: dict[str, Any] = {
        "collection_id": report.collection_id,
        "doc_count": report.doc_count,
        "point_count": report.point_count,
        "finding_count": len(report.findings),
        **counts,
    }
    description = f"{report.doc_count} documents and {report.point_count} points agree"
    if report.findings:
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        description = f"{named}. `rag-pipeline audit` lists all, with `--repair` it mends them"
        records = [_tabulate(finding) for finding in report.findings[:_LISTED_FINDINGS]]
        metadata["findings"] = dg.MetadataValue.table(records)
    return dg.AssetCheckResult(
        passed=not report.findings, description=description, metadata=metadata
    )


def _tabulate(finding: AuditFinding) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "doc_path": finding.doc_path,
            "kind": finding.kind,
            "chunk_id": finding.chunk_id,
            "detail": finding.detail,
            "mend": _REINDEX if finding.kind == WRONG_MODEL else _REPAIR,
        }
    )


def _judge_missing(
    instance: dg.DagsterInstance, error: CollectionMissingError
) -> dg.AssetCheckResult:
    """A collection that is not there is sound only while Dagster knows of no point either."""
    if instance.get_latest_materialization_event(_POINTS) is None:
        return dg.AssetCheckResult(passed=True, description="Nothing has been ingested yet")
    return dg.AssetCheckResult(passed=False, description=str(error))
