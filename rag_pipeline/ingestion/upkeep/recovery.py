"""Detection of a damaged index by an ingestion, and recovery of the record of the current build."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import (
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.ingestion.events import RunPlanned
from rag_pipeline.ingestion.finishing import (
    record_site,
    refresh_ledger_if_idle,
    sweep_if_idle,
)
from rag_pipeline.ingestion.report import IngestionReport

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.state import LedgerEntry
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan


def recover_current(context: IngestionContext) -> None:
    """Find the current collection again, with a warning, if the record of it is lost.

    Raises:
        StoreLockedError: Another ingestion of the book did not end within INGEST_LOCK_TIMEOUT_S.
    """
    services = context.services
    try:
        if services.catalog.current_id() is not None:
            return
    except StoreDamagedError:
        pass
    with services.lock():
        services.catalog.recover()


def report_unchanged(context: IngestionContext, scan: Scan) -> IngestionReport:
    """Return the report of an ingestion that finds no document to index or to remove.

    Before that, the store is checked, a file with a new modification time and the same content gets
    the new time in the ledger (the record of what is indexed), and files that killed ingestions
    left are deleted. The report lists documents that cannot be read.

    Raises:
        StoreDamagedError: The store lacks points that the ledger lists, or cannot be read.
        StoreUnavailableError: The server of the store does not answer.
    """
    if scan.collection_id:
        check_store(context, scan)
        refresh_ledger_if_idle(context, scan)
        record_site(context, context.services.open_ledger(scan.collection_id))
    sweep_if_idle(context)
    report = IngestionReport()
    report.add(RunPlanned("", scan, ()))
    for failure in scan.discovery.failures:
        report.add(failure)
    return report


def check_store(context: IngestionContext, scan: Scan) -> None:
    """Check that the store can be read and has at least the number of points in the ledger.

    Of the documents, only the first and the last are read completely. `rag-pipeline audit` reads
    all of them. A store that another process has open is not checked.

    Raises:
        StoreDamagedError: The store is damaged.
        StoreUnavailableError: The server of the store does not answer.
    """
    entries = [scan.entries[doc.doc_id] for doc in scan.plan.unchanged]
    wanted = sum(entry.chunk_count for entry in entries)
    try:
        with closing(context.services.catalog.open(scan.collection_id)) as store:
            _check_number("the store", store.count(), wanted)
            for entry in {entry.doc_id: entry for entry in (*entries[:1], *entries[-1:])}.values():
                _check_document(store, entry)
    except StoreLockedError:
        return
    except (StoreDamagedError, StoreUnavailableError):
        raise
    except StoreError as error:
        raise StoreDamagedError(f"it cannot be read ({error})") from error


def _check_document(store: VectorIndex, entry: LedgerEntry) -> None:
    where = PointFilter.any_of(doc_path=(entry.doc_id,))
    points = store.scroll(where, with_vectors=True)
    found = sum(point.vectors is not None for point in points)
    _check_number(entry.doc_id, found, entry.chunk_count)


def _check_number(place: str, found: int, wanted: int) -> None:
    if found < wanted:
        raise StoreDamagedError(f"{place} has {found} of {wanted} chunks")
