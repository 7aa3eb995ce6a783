"""Auditing the collection in use, and mending it: documents first, what stands for none last.

Belongs here: the order of the mend. Does not belong here: the comparison (ingestion.audit), writing
documents, which is an ordinary ingestion.

Imports no Dagster: who repairs says how an ingestion is started.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial

from rag_pipeline.core.ids import DocId
from rag_pipeline.ingestion.audit import AuditReport, audit_collection
from rag_pipeline.ingestion.run import IngestionEnvironment, IngestionRequest, scan


def audit_environment(environment: IngestionEnvironment) -> AuditReport:
    """Compare ledger, artifacts and store of the collection in use.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is held by another process or not reached.
    """
    catalog = environment.catalog
    collection_id = catalog.current_id() or catalog.open_current().collection_id  # says what lacks
    return audit_collection(
        collection_id,
        partial(catalog.open, collection_id),
        environment.open_ledger(collection_id).entries(),
        environment.open_artifacts(collection_id),
        environment.fingerprint,
        environment.space.model.fingerprint,
    )


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
    with environment.lock():
        left = audit_environment(environment)
        strays = [
            finding.point_id
            for finding in left.strays
            if finding.point_id is not None
            and finding.doc_path not in there
            and not discovery.is_hidden(DocId(finding.doc_path))
        ]
        if strays:
            with closing(environment.catalog.open_current(environment.space)) as store:
                store.delete(strays)
            left = audit_environment(environment)
    return left
