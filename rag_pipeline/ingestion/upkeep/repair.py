"""Auditing the collection in use while other processes work, and repairing what was found.

Documents are repaired first; points that belong to no document are removed last.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.ingestion.upkeep.audit import (
    STRAY,
    AuditFinding,
    AuditReport,
    audit_collection,
    confirm_findings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.protocols.state import LedgerEntry
    from rag_pipeline.ingestion.context import IngestionContext

_PAGE_DOCS: Final = 100  # confirmed at a time, within a second or two
_GIVE_WAY_S: Final = 0.2  # an ingestion that waits for the lock looks for it every 0.05 s


def audit_index(context: IngestionContext) -> AuditReport:
    """Compare ledger, artifacts and store of the collection in use.

    No ingestion waits while this compares. A disagreement seen then may be half of an ingestion's
    work. So those documents are looked at again between ingestions, a few at a time with the lock
    held, and only what still disagrees is a finding. The lock covers one machine.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable or another process holds it, or there is
            something to look at again and an ingestion goes on for longer than
            INGEST_LOCK_TIMEOUT_S.
    """
    confirmed = None
    while confirmed is None:
        collection_id, entries = _read_collection(context)
        confirmed = _confirm(context, audit_collection(context, collection_id, entries))
    return confirmed


def repair_index(
    context: IngestionContext,
    found: AuditReport,
    ingest: Callable[[IngestionRequest], object],
) -> AuditReport:
    """Repair what an audit found, and audit again. No document loses its points meanwhile.

    Documents that are wrong, or that the ledger does not know, are written again; documents that
    are gone are removed. Then points are removed that belong to no document of the docs folder.

    Args:
        context: The settings and services.
        found: The report of `audit_index`.
        ingest: Carries out a request. Documents that fail stay as they were found.

    Returns:
        What still disagrees.

    Raises:
        DocsFolderError: The docs folder is missing or empty.
        SpaceMismatchError: The collection was built with another model and needs a rebuild.
    """
    scan = scan_docs(context)
    in_folder = {doc.doc_id for doc in scan.discovery.docs}
    docs = tuple(doc_id for doc_id in found.doc_paths if doc_id in in_folder)
    gone = tuple(doc_id for doc_id in scan.plan.delete if doc_id in found.doc_paths)
    if docs or gone:
        ingest(IngestionRequest(docs, gone, rewrite=True))
    left = audit_index(context)
    if left.strays and _delete_strays(context, left.strays):
        left = audit_index(context)
    return left


def _read_collection(context: IngestionContext) -> tuple[str, Mapping[DocId, LedgerEntry]]:
    catalog = context.services.catalog
    # Opening raises the error that says what is missing.
    collection_id = catalog.current_id() or catalog.open_current().collection_id
    return collection_id, context.services.open_ledger(collection_id).entries()


def _confirm(context: IngestionContext, found: AuditReport) -> AuditReport | None:
    """Keep only findings that hold between ingestions; None if a rebuild came in between."""
    doc_paths, confirmed = found.doc_paths, list[AuditFinding]()
    for start in range(0, len(doc_paths), _PAGE_DOCS):
        page = frozenset(doc_paths[start : start + _PAGE_DOCS])
        if start:
            time.sleep(_GIVE_WAY_S)
        with context.services.lock():
            collection_id, entries = _read_collection(context)
            if collection_id != found.collection_id:
                return None
            again = [finding for finding in found.findings if finding.doc_path in page]
            confirmed += confirm_findings(again, context, collection_id, entries)
    return replace(found, findings=tuple(confirmed))


def _delete_strays(context: IngestionContext, found: Sequence[AuditFinding]) -> int:
    """Delete points that belong to no document of the docs folder as it is now; return how many."""
    with context.services.lock():
        scan = scan_docs(context)
        in_folder = {str(doc.doc_id) for doc in scan.discovery.docs}
        collection_id, entries = _read_collection(context)
        strays = [
            finding.point_id
            for finding in confirm_findings(found, context, collection_id, entries)
            if finding.kind == STRAY
            and finding.point_id is not None
            and finding.doc_path not in in_folder
            and not scan.discovery.is_hidden(finding.doc_path)
        ]
        if strays:
            with closing(context.services.catalog.open_current(context.space)) as store:
                store.delete(strays)
    return len(strays)
