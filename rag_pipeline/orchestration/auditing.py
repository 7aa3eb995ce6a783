"""Auditing the collection in use, and mending it: documents first, what stands for none last.

Belongs here: the order of the mend. Does not belong here: the comparison (ingestion.audit), writing
documents, which is an ordinary ingestion.

Imports no Dagster: who repairs says how an ingestion is started.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.protocols.state import LedgerEntry
from rag_pipeline.ingestion.audit import (
    STRAY,
    AuditedCollection,
    AuditFinding,
    AuditReport,
    audit_collection,
    confirm_findings,
)
from rag_pipeline.ingestion.run import IngestionEnvironment, IngestionRequest, scan

_PAGE_DOCS = 100  # confirmed at a time, within a second or two
_GIVE_WAY_S = 0.2  # an ingestion that waits for the lock looks for it every 0.05 s


def audit_environment(environment: IngestionEnvironment) -> AuditReport:
    """Compare ledger, artifacts and store of the collection in use.

    Holds no ingestion off while it compares. What disagrees then may be the half of one's work:
    those documents are looked at again between ingestions, a few with the lock held at a time, and
    only what still disagrees is a finding. So an ingestion in flight never shows, nor waits for
    longer than that; the lock guards one machine.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is held by another process or not reached, or there is
            something to look at again and an ingestion goes on for longer than
            INGEST_LOCK_TIMEOUT_S.
    """
    confirmed = None
    while confirmed is None:
        collection, entries = _read_collection(environment)
        confirmed = _confirm(environment, audit_collection(collection, entries))
    return confirmed


def _read_collection(
    environment: IngestionEnvironment,
) -> tuple[AuditedCollection, Mapping[DocId, LedgerEntry]]:
    catalog = environment.catalog
    collection_id = catalog.current_id() or catalog.open_current().collection_id  # says what lacks
    collection = AuditedCollection(
        collection_id,
        partial(catalog.open, collection_id),
        environment.open_artifacts(collection_id),
        environment.sparse,
        environment.fingerprint,
        environment.space.model.fingerprint,
    )
    return collection, environment.open_ledger(collection_id).entries()


def _confirm(environment: IngestionEnvironment, found: AuditReport) -> AuditReport | None:
    """Keep of an audit what is so between ingestions; None where a rebuild came in between."""
    doc_paths, confirmed = found.doc_paths, list[AuditFinding]()
    for start in range(0, len(doc_paths), _PAGE_DOCS):
        page = frozenset(doc_paths[start : start + _PAGE_DOCS])
        if start:
            time.sleep(_GIVE_WAY_S)
        with environment.lock():
            collection, entries = _read_collection(environment)
            if collection.collection_id != found.collection_id:
                return None
            again = [finding for finding in found.findings if finding.doc_path in page]
            confirmed += confirm_findings(again, collection, entries)
    return replace(found, findings=tuple(confirmed))


def repair_environment(
    environment: IngestionEnvironment,
    found: AuditReport,
    ingest: Callable[[IngestionRequest], object],
) -> AuditReport:
    """Mend what an audit found, and audit again; a document never loses its points meanwhile.

    Documents that are wrong, or that the ledger does not know, are written whole; documents that
    are gone are removed. Only then do points go that belong to no document of the docs folder.

    Args:
        environment: Of the collection in use.
        found: By `audit_environment`.
        ingest: Carries out a request; failed documents stay as they were found.

    Returns:
        What still disagrees.

    Raises:
        DocsFolderError: The docs folder is missing or empty.
        SpaceMismatchError: The collection was built with another model: it takes a rebuild.
    """
    discovery, plan, _ = scan(environment)
    there = {doc.doc_id for doc in discovery.docs}
    docs = tuple(doc_id for doc_id in found.doc_paths if doc_id in there)
    gone = tuple(doc_id for doc_id in plan.delete if doc_id in found.doc_paths)
    if docs or gone:
        ingest(IngestionRequest(docs, gone, rewrite=True))
    left = audit_environment(environment)
    if left.strays and _delete_strays(environment, left.strays):
        left = audit_environment(environment)
    return left


def _delete_strays(environment: IngestionEnvironment, found: Sequence[AuditFinding]) -> int:
    """Delete points of no document of the docs folder as it is now; returns how many."""
    with environment.lock():
        discovery, _, _ = scan(environment)
        there = {str(doc.doc_id) for doc in discovery.docs}
        collection, entries = _read_collection(environment)
        strays = [
            finding.point_id
            for finding in confirm_findings(found, collection, entries)
            if finding.kind == STRAY
            and finding.point_id is not None
            and finding.doc_path not in there
            and not discovery.is_hidden(finding.doc_path)
        ]
        if strays:
            with closing(environment.catalog.open_current(environment.space)) as store:
                store.delete(strays)
    return len(strays)
