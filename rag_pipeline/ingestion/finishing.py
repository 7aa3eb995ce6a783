"""Bring the ledger and the files of a book up to date when an ingestion has nothing more to do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import LedgerConflictError, RagPipelineError, StoreLockedError
from rag_pipeline.core.rules import find_shared_addresses
from rag_pipeline.core.site.addresses import RecordedSite, relate_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols import Ledger, LedgerEntry
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan


def refresh_ledger(
    ledger: Ledger, unchanged: Iterable[DiscoveredDoc], entries: Mapping[DocId, LedgerEntry]
) -> None:
    """Record new modification times of unchanged files, so that the next scan skips them.

    An entry that was written after `entries` were read stays as it is. It may say that another run
    is changing the document's points.
    """
    for doc in unchanged:
        entry = entries[doc.doc_id]
        if entry.mtime_ns != doc.mtime_ns:
            with suppress(LedgerConflictError):
                ledger.record(replace(entry, mtime_ns=doc.mtime_ns, size_bytes=doc.size_bytes))


def refresh_ledger_if_idle(context: IngestionContext, scan: Scan) -> None:
    """Record new modification times of the scan's unchanged files, unless an ingestion is running.

    A running ingestion records them itself when it ends.
    """
    unchanged, entries, services = scan.plan.unchanged, scan.entries, context.services
    if any(entries[doc.doc_id].mtime_ns != doc.mtime_ns for doc in unchanged):
        with suppress(StoreLockedError), services.lock(timeout_s=0.0):
            refresh_ledger(services.open_ledger(scan.collection_id), unchanged, entries)


def sweep_if_idle(context: IngestionContext) -> None:
    """Delete what killed ingestions left behind, unless an ingestion is running.

    If such an ingestion did not prepare its collection for fast searches, that is done too. Errors
    are ignored, because a later ingestion cleans up.

    Args:
        context: The settings and services.
    """
    services = context.services
    with suppress(RagPipelineError, OSError), services.lock(timeout_s=0.0):
        services.sweep()
        current = services.catalog.current_id() or ""
        services.catalog.end_loading(current)


def describe_shared_addresses(places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a warning for each address that several documents have.

    Args:
        places: The URL and the document of each chunk, in any order.
    """
    return tuple(
        f"{' and '.join(doc_paths)} have the same address {address}, but only one page can be "
        "there. Give each page a slug or file name of its own"
        for address, doc_paths in find_shared_addresses(places).items()
    )


def record_site(context: IngestionContext, ledger: Ledger) -> None:
    """Record the site in the ledger if the links of all documents were built for it.

    A document that failed does not prevent it, because it may never succeed.
    """
    failed = ledger.failures()
    if all(
        entry.pipeline_fingerprint == context.fingerprint_of(doc_id) or doc_id in failed
        for doc_id, entry in ledger.entries().items()
    ):
        settings = context.settings
        site = RecordedSite(
            settings.site, relate_sources(settings.sources or (), settings.docs_dir)
        )
        if ledger.read_site() != site:
            ledger.record_site(site)


def find_ledger(context: IngestionContext, scan: Scan) -> Ledger | None:
    """Return the ledger of the collection that a scan compared; None before the first ingestion."""
    return context.services.open_ledger(scan.collection_id) if scan.collection_id else None
