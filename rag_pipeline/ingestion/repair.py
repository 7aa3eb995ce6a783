"""Recover a damaged index, and repair what an audit finds while other processes use the index.

A repair indexes the affected documents again, then deletes points that belong to no document.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    DocsFolderError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)
from rag_pipeline.core.models import ContentType
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.ingestion.audit import (
    STRAY,
    AuditFinding,
    AuditReport,
    audit_collection,
    confirm_findings,
)
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import RunPlanned
from rag_pipeline.ingestion.planning import (
    record_site,
    refresh_ledger_if_idle,
    scan_docs,
    sweep_if_idle,
)
from rag_pipeline.ingestion.report import IngestionReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc, DocFailure, JsonValue
    from rag_pipeline.core.protocols import LedgerEntry, VectorIndex
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan


def read_stats(context: IngestionContext) -> dict[str, JsonValue]:
    """Return statistics of the current collection as a JSON object.

    It contains the numbers of points, documents and failed documents, the points per content type,
    the embedding space, and the time at which a document was last indexed (None if none is).

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable, or another process has it open.
    """
    with closing(context.services.catalog.open_current()) as store:
        count = store.count()
        by_type: dict[str, JsonValue] = {
            kind.value: store.count(PointFilter.any_of(content_type=(kind.value,)))
            for kind in ContentType
        }
        space, collection_id = store.space, store.collection_id
    ledger = context.services.open_ledger(collection_id)
    entries = [entry for entry in ledger.entries().values() if entry.sha256]
    return {
        "collection_id": collection_id,
        "point_count": count,
        "doc_count": len(entries),
        "failed_doc_count": len(ledger.failures()),
        "content_types": by_type,
        "provider": space.model.provider,
        "model": space.model.model,
        "dim": space.model.dim,
        "format_version": space.format_version,
        "last_indexed_at": max((entry.indexed_at for entry in entries), default=None),
    }


def prune_embeddings(context: IngestionContext) -> int:
    """Delete cached embeddings that no chunk of the current collection uses.

    Entries of other embedding models are deleted too. Returns the number of deleted entries.
    """
    with closing(context.services.catalog.open_current()) as store:
        points = store.scroll_fields(["embedding_hash"])
        hashes = (str(payload.get("embedding_hash")) for _, payload in points)
        return context.services.cache.prune({store.space.model.fingerprint: hashes})


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


_PAGE_DOCS: Final = 100  # documents checked while the lock is held, which takes a second or two
_GIVE_WAY_S: Final = 0.2  # pause without the lock; a waiting ingestion tries to get it every 0.05 s


def audit_index(context: IngestionContext) -> AuditReport:
    """Compare the docs folder, the database and the store of the current collection.

    The comparison takes no lock, so an ingestion can run at the same time and cause apparent
    differences. Documents with differences are therefore compared again while the ingestion lock
    is held. Only differences that remain are reported.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable, another process has it open, or the lock
            was not free within INGEST_LOCK_TIMEOUT_S.
    """
    confirmed = None
    while confirmed is None:
        collection_id, entries = _read_collection(context)
        docs = _read_docs(context)
        confirmed = _confirm(context, audit_collection(context, collection_id, entries, docs))
    return confirmed


def repair_index(
    context: IngestionContext,
    found: AuditReport,
    ingest: Callable[[IngestionRequest], object],
) -> AuditReport:
    """Repair the findings of an audit, then audit again.

    Documents with findings are indexed again, or deleted if their files are gone. After that,
    points that belong to no document of the docs folder are deleted.

    Args:
        context: The settings and services.
        found: The report of `audit_index`.
        ingest: Runs an ingestion request. A document that fails keeps its current points.

    Returns:
        The report of a new audit, with the findings that remain.

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


def describe_audit(
    found: AuditReport, left: AuditReport | None, failures: Sequence[DocFailure]
) -> dict[str, JsonValue]:
    """Return an audit and its repair as a JSON object.

    Args:
        found: The findings of the audit.
        left: The findings after the repair; None if nothing was repaired.
        failures: The documents that the repair could not index.

    Returns:
        The audit's report, with `repaired` (True if a repair fixed all findings), `remaining` (the
        findings that are left) and `failures`.
    """
    return found.to_json() | {
        "repaired": left is not None and not left.findings,
        "remaining": (left or found).to_json()["findings"],
        "failures": [asdict(failure) for failure in failures],
    }


def _read_collection(context: IngestionContext) -> tuple[str, Mapping[DocId, LedgerEntry]]:
    """Return the id of the current collection and its ledger entries.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
    """
    catalog = context.services.catalog
    # Without a current id, opening raises the error that tells the user what is missing.
    collection_id = catalog.current_id() or catalog.open_current().collection_id
    return collection_id, context.services.open_ledger(collection_id).entries()


def _read_docs(context: IngestionContext) -> Mapping[DocId, DiscoveredDoc]:
    """Return the documents of the docs folder; empty if there is no such folder."""
    try:
        return _by_id(scan_docs(context))
    except DocsFolderError:
        return {}


def _by_id(scan: Scan) -> Mapping[DocId, DiscoveredDoc]:
    return {doc.doc_id: doc for doc in scan.discovery.docs}


def _confirm(context: IngestionContext, found: AuditReport) -> AuditReport | None:
    """Check findings again while the ingestion lock is held; return a report of those that remain.

    Returns None if another collection has become the current one; the audit must start again.
    """
    confirmed, doc_paths = list[AuditFinding](), found.doc_paths
    for start in range(0, len(doc_paths), _PAGE_DOCS):
        page = frozenset(doc_paths[start : start + _PAGE_DOCS])
        if start:
            time.sleep(_GIVE_WAY_S)
        with ExitStack() as stack:
            with suppress(OSError):  # on a read-only disk, no ingestion can run here
                stack.enter_context(context.services.lock())
            collection_id, entries = _read_collection(context)
            if collection_id != found.collection_id:
                return None
            again = [finding for finding in found.findings if finding.doc_path in page]
            confirmed += confirm_findings(
                again, context, collection_id, entries, _read_docs(context)
            )
    return replace(found, findings=tuple(sorted(confirmed, key=lambda one: one.doc_path)))


def _delete_strays(context: IngestionContext, found: Sequence[AuditFinding]) -> int:
    """Delete points that belong to no document of the ledger or the docs folder.

    The findings are checked again first. Returns the number of deleted points.
    """
    with context.services.lock():
        scan = scan_docs(context)
        in_folder = {str(doc.doc_id) for doc in scan.discovery.docs}
        collection_id, entries = _read_collection(context)
        strays = [
            finding.point_id
            for finding in confirm_findings(found, context, collection_id, entries, _by_id(scan))
            if finding.kind == STRAY
            and finding.point_id is not None
            and finding.doc_path not in in_folder
            and not scan.discovery.is_hidden(finding.doc_path)
        ]
        if strays:
            with closing(context.services.catalog.open_current(context.space)) as store:
                store.delete(strays)
    return len(strays)
