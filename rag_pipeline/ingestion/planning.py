"""Compare the docs folder with the ledger, and decide what an ingestion has to do.

The command, the Dagster sensor and a run all use these functions.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import (
    DOCUMENT_MISSING,
    LedgerConflictError,
    PlanOutdatedError,
    RagPipelineError,
    SpaceMismatchError,
    StoreLockedError,
)
from rag_pipeline.core.ids import DocId, hash_text, parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, DocFailure, Stage
from rag_pipeline.core.site.addresses import RecordedSite, relate_sources
from rag_pipeline.ingestion.discovery import Discovery, discover_docs
from rag_pipeline.ingestion.site.detection import find_config_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_pipeline.core.protocols import Ledger, LedgerEntry, LedgerFailure
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest


@dataclass(frozen=True, slots=True)
class Scan:
    """The docs folder compared with the ledger of a collection.

    The documents to process, to delete and to leave unchanged are sorted by document id.

    Attributes:
        discovery: The content of the docs folder.
        collection_id: Id of the current collection, or of the collection that a run has just
            created; empty before the first ingestion.
        entries: The ledger entries of the indexed documents.
        failures: The ledger's records of documents whose last attempt failed.
        process: Documents that are new or changed, were indexed with other settings, or failed at
            the last attempt.
        delete: Documents that the ledger lists and that are no longer in the docs folder.
        unchanged: Documents whose current content is indexed with the current settings.
    """

    discovery: Discovery
    collection_id: str
    entries: Mapping[DocId, LedgerEntry]
    failures: Mapping[DocId, LedgerFailure]
    process: tuple[DiscoveredDoc, ...]
    delete: tuple[DocId, ...]
    unchanged: tuple[DiscoveredDoc, ...]

    @property
    def is_up_to_date(self) -> bool:
        """True if there is no document to process or to delete."""
        return not self.process and not self.delete


def scan_docs(
    context: IngestionContext, *, earlier: Scan | None = None, reread: bool = False
) -> Scan:
    """Compare the docs folder with the ledger of the current collection.

    The function takes no lock and needs neither the vector store nor the embedding model.

    Args:
        context: The settings and services.
        earlier: The result of an earlier scan. It is returned if the ledger has not changed since
            then, so that a command and the run that it starts read the docs folder only once.
        reread: Ignore `earlier`, and read every file even if its size and time are unchanged.

    Returns:
        The documents, the ledger's content, and the plan of what to process and to delete.

    Raises:
        DocsFolderError: The docs folder is missing, unreadable or contains no Markdown file.
    """
    collection_id = context.services.catalog.current_id() or ""
    ledger = context.services.open_ledger(collection_id) if collection_id else None
    entries, failures = (ledger.entries(), ledger.failures()) if ledger else ({}, {})
    if earlier is not None and not reread:
        known = (earlier.collection_id, earlier.entries, earlier.failures)
        if known == (collection_id, entries, failures):
            return earlier
    known_files = {
        doc_id: entry
        for doc_id, entry in entries.items()
        if entry.pipeline_fingerprint == context.fingerprint_of(doc_id)
    }
    settings = context.settings
    discovery = discover_docs(
        settings.docs_dir,
        {} if reread else known_files,
        settings.site_manifest,
        settings.sources or (),
        with_unlisted=settings.index_unlisted,
    )
    notes = find_config_notes(settings.docs_dir, settings.site)
    discovery = replace(discovery, notes=notes)
    return compare(context.fingerprint_of, discovery, collection_id, entries, failures)


def compare(
    fingerprint_of: Callable[[DocId], str],
    discovery: Discovery,
    collection_id: str,
    entries: Mapping[DocId, LedgerEntry],
    failures: Mapping[DocId, LedgerFailure],
) -> Scan:
    """Decide which documents to process, which to delete, and which are unchanged.

    A document that could not be read is neither processed nor deleted, so that its points stay.

    Args:
        fingerprint_of: Function that returns the pipeline fingerprint of a document.
        discovery: The content of the docs folder.
        collection_id: Id of the collection.
        entries: The ledger entries of the collection; empty for a new collection.
        failures: The failures of documents whose last attempt failed.
    """
    process, unchanged = [], []
    for doc in discovery.docs:
        entry = entries.get(doc.doc_id)
        indexed = entry is not None and (entry.sha256, entry.pipeline_fingerprint)
        wanted = (doc.sha256, fingerprint_of(doc.doc_id))
        if indexed == wanted and doc.doc_id not in failures:
            unchanged.append(doc)
        else:
            process.append(doc)
    found = {doc.doc_id for doc in discovery.docs}
    delete = sorted(
        doc_id for doc_id in {*entries, *failures} - found if not discovery.is_hidden(doc_id)
    )
    return Scan(
        discovery,
        collection_id,
        entries,
        failures,
        process=tuple(process),
        delete=tuple(delete),
        unchanged=tuple(unchanged),
    )


def fails_itself(failure: LedgerFailure | None, doc: DiscoveredDoc) -> bool:
    """Return True if a document failed because of its content, which has not changed since.

    A failure to embed or to write a document may have been one of a service instead.
    """
    services = {Stage.EMBEDDINGS.value, Stage.POINTS.value}
    return failure is not None and failure.sha256 == doc.sha256 and failure.stage not in services


def choose_docs(
    request: IngestionRequest, scan: Scan
) -> tuple[list[DiscoveredDoc], Sequence[DocId], Sequence[DocFailure]]:
    """Choose the documents of a run according to the request.

    Returns:
        The documents to process, the ids of the documents to delete, and failures. If the request
        names documents, the failures are those of named documents that are missing or unreadable.
        Otherwise they are all files and folders that the scan could not read.
    """
    discovery = scan.discovery
    if request.doc_ids is None:
        docs = [
            doc
            for doc in scan.process
            if not (request.reread and fails_itself(scan.failures.get(doc.doc_id), doc))
        ]
        return docs, scan.delete, discovery.failures
    found = {doc.doc_id: doc for doc in discovery.docs}
    unread = {failure.doc_path: failure for failure in discovery.failures}
    docs, failures = [], []
    for doc_id in dict.fromkeys(request.doc_ids):
        if doc_id in found:
            docs.append(found[parse_doc_id(doc_id)])
        elif doc_id in unread:
            failures.append(unread[doc_id])
        else:
            problem = "the docs folder has no such document, or it is a draft or unlisted"
            message = f"{doc_id}: {problem}. Check the path"
            failures.append(DocFailure(doc_id, Stage.DISCOVERED.value, DOCUMENT_MISSING, message))
    gone = frozenset(scan.delete) & set(request.delete_ids)
    return docs, sorted(gone), failures


def hash_plan(context: IngestionContext, collection_id: str, docs: Iterable[DiscoveredDoc]) -> str:
    """Return a hash of documents with their contents, the settings and the collection.

    Args:
        context: The settings and services.
        collection_id: Id of the collection to write to.
        docs: The documents of a run, in any order.
    """
    files = sorted((doc.doc_id, doc.sha256, context.fingerprint_of(doc.doc_id)) for doc in docs)
    settings = (str(context.space), context.settings.chunk_limits, context.settings.site)
    return hash_text(repr((settings, collection_id, files)))[:16]


def check_plan(context: IngestionContext, request: IngestionRequest, scan: Scan) -> None:
    """Check that a run sees the documents, settings and collection that it was planned for.

    Raises:
        PlanOutdatedError: It does not. Nothing was changed.
    """
    wanted = set(request.doc_ids or ())
    docs = [doc for doc in scan.discovery.docs if doc.doc_id in wanted]
    if request.plan and hash_plan(context, scan.collection_id, docs) != request.plan:
        raise PlanOutdatedError(
            f"the documents in {context.settings.docs_dir}, the settings or the collection differ "
            "from those that the run was planned for. Give all machines the same checkout, release "
            "and settings; the next tick of the sensor plans again"
        )


def choose_collection(context: IngestionContext, *, rebuild: bool) -> str:
    """Return the id of the collection that a run writes to; create the collection if necessary.

    A new collection is created for a rebuild, if there is no collection, or if the current one is
    empty and has another embedding space. The new collection becomes the current one at once. Only
    a rebuild of an existing collection switches later, at the end of the run.

    Raises:
        SpaceMismatchError: The current collection has points of another embedding space and needs
            a rebuild. Nothing was changed.
    """
    catalog = context.services.catalog
    with catalog.hold():  # so that of several first runs only one creates the collection
        current = catalog.current_id()
        if current is not None and not rebuild and _fits(current, context):
            return current
        store = catalog.create(context.space)
        store.close()
        if current is None or not rebuild:
            catalog.switch_to(store.collection_id)
        if current is not None and not rebuild:
            catalog.discard(current)  # it is empty, so nobody needs to roll back to it
        return store.collection_id


def _fits(collection_id: str, context: IngestionContext) -> bool:
    """Return True if a collection has the configured embedding space, False if it can be replaced.

    A collection of another space can be replaced if it is empty. An empty collection remains, for
    example, if the embedding service was down during the first ingestion.

    Raises:
        SpaceMismatchError: The collection has another embedding space and is not empty.
    """
    catalog = context.services.catalog
    try:
        catalog.open(collection_id, context.space).close()
    except SpaceMismatchError:
        entries = context.services.open_ledger(collection_id).entries().values()
        if any(entry.sha256 for entry in entries):  # an entry without a hash was never finished
            raise
        with closing(catalog.open(collection_id)) as store:
            if store.count():
                raise
        return False
    return True


def leave_moved(
    doc_ids: Iterable[DocId],
    entries: Mapping[DocId, LedgerEntry],
    not_indexed: Iterable[DiscoveredDoc],
) -> tuple[DocId, ...]:
    """Return the documents to delete, except those that moved to a path that is not indexed yet.

    A document has moved if a document in `not_indexed` has the same content. Its points stay until
    the new path is indexed, so that the page can always be found.

    Args:
        doc_ids: Documents whose files are gone.
        entries: The ledger entries, which have the content hashes of these documents.
        not_indexed: Documents of the docs folder that are waiting or have failed.
    """
    contents = {doc.sha256 for doc in not_indexed}
    return tuple(
        doc_id
        for doc_id in doc_ids
        if doc_id not in entries or entries[doc_id].sha256 not in contents
    )


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
    unchanged, entries, services = scan.unchanged, scan.entries, context.services
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
