"""What an ingestion has to do: the docs folder compared with the ledger of what is indexed.

The command, the sensor and a run plan alike.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import SpaceMismatchError
from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import DOCUMENT_MISSING, DocFailure, KnownFile, Stage
from rag_pipeline.ingestion.discovery import discover_docs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.discovery import Discovery

_FIRST_RETRY: Final = timedelta(seconds=60)
_LONGEST_RETRY: Final = timedelta(hours=1)
_MOST_DOUBLINGS: Final = 10  # far over the longest wait


@dataclass(frozen=True, slots=True)
class IngestionPlan:
    """Documents by what has to happen to them, each tuple in the order of discovery.

    Attributes:
        process: New, changed, made with other settings, or failed at the last attempt.
        delete: Indexed or tried once and no longer in the docs folder, by ascending id.
        unchanged: Indexed as they are.
    """

    process: tuple[DiscoveredDoc, ...]
    delete: tuple[DocId, ...]
    unchanged: tuple[DiscoveredDoc, ...]

    @property
    def is_empty(self) -> bool:
        """True if nothing has to be written to the store."""
        return not self.process and not self.delete


@dataclass(frozen=True, slots=True)
class Scan:
    """The docs folder compared with the ledger of a collection.

    Attributes:
        collection_id: The collection in use, or the one that a run has just created; empty before
            the first ingestion.
        entries: Its ledger's entries.
        failures: Its ledger's failures.
    """

    discovery: Discovery
    collection_id: str
    entries: Mapping[DocId, LedgerEntry]
    failures: Mapping[DocId, LedgerFailure]
    plan: IngestionPlan

    @property
    def doc_ids(self) -> set[DocId]:
        """Every document of the docs folder or of the ledger."""
        return {*self.entries, *self.failures, *(doc.doc_id for doc in self.discovery.docs)}


def scan_docs(
    context: IngestionContext, *, earlier: Scan | None = None, reread: bool = False
) -> Scan:
    """Find out what an ingestion would do, without a lock, a store or a model.

    Args:
        context: The settings and services.
        earlier: An earlier scan, which is returned if the ledger has not changed since. So a
            command and the run that it starts read the docs folder once.
        reread: Read every file instead of trusting the size and time of known files.

    Raises:
        DocsFolderError: The docs folder is missing or empty.
    """
    collection_id = context.services.catalog.current_id() or ""
    ledger = context.services.open_ledger(collection_id) if collection_id else None
    entries, failures = (ledger.entries(), ledger.failures()) if ledger else ({}, {})
    if earlier is not None and not reread:
        known = (earlier.collection_id, earlier.entries, earlier.failures)
        if known == (collection_id, entries, failures):
            return earlier
    known_files = {
        doc_id: KnownFile(entry.size_bytes, entry.mtime_ns, entry.sha256)
        for doc_id, entry in entries.items()
    }
    discovery = discover_docs(context.settings.docs_dir, {} if reread else known_files)
    plan = plan_ingestion(discovery, entries, context.fingerprint, failures)
    return Scan(discovery, collection_id, entries, failures, plan)


def plan_ingestion(
    discovery: Discovery,
    entries: Mapping[DocId, LedgerEntry],
    fingerprint: str,
    failures: Collection[DocId] = (),
) -> IngestionPlan:
    """Compare the documents found with those indexed.

    A document that could not be looked at is neither processed nor deleted: its points stay.

    Args:
        discovery: The content of the docs folder.
        entries: The ledger of the collection in use; empty for a new one.
        fingerprint: The fingerprint of the present settings.
        failures: Documents whose last attempt failed.
    """
    process, unchanged = [], []
    for doc in discovery.docs:
        entry = entries.get(doc.doc_id)
        indexed = entry is not None and (entry.sha256, entry.pipeline_fingerprint)
        if entry is None or indexed != (doc.sha256, fingerprint) or doc.doc_id in failures:
            process.append(doc)
        else:
            unchanged.append(doc)
    found = {doc.doc_id for doc in discovery.docs}
    delete = sorted(
        doc_id for doc_id in {*entries, *failures} - found if not discovery.is_hidden(doc_id)
    )
    return IngestionPlan(tuple(process), tuple(delete), tuple(unchanged))


def choose_docs(
    request: IngestionRequest, scan: Scan
) -> tuple[tuple[DiscoveredDoc, ...], tuple[DocId, ...], tuple[DocFailure, ...]]:
    """Choose the documents of a run: those to process, those to delete, and failures.

    The failures are of documents that the request names and that are missing or unreadable; if it
    names none, of all that are unreadable.
    """
    discovery, plan = scan.discovery, scan.plan
    if request.doc_ids is None:
        deletes = plan.delete if Stage.POINTS in request.stages else ()
        return plan.process, deletes, discovery.failures
    found = {doc.doc_id: doc for doc in discovery.docs}
    unread = {failure.doc_path: failure for failure in discovery.failures}
    docs, failures = [], []
    for doc_id in dict.fromkeys(request.doc_ids):
        if doc_id in found:
            docs.append(found[parse_doc_id(doc_id)])
        elif doc_id in unread:
            failures.append(unread[doc_id])
        else:
            message = f"{doc_id}: is not in the docs folder, or is a draft. Check the path"
            failures.append(DocFailure(doc_id, Stage.DISCOVERED.value, DOCUMENT_MISSING, message))
    gone = frozenset(plan.delete) & set(request.delete_ids)
    return tuple(docs), tuple(sorted(gone)), tuple(failures)


def choose_collection(context: IngestionContext, *, rebuild: bool) -> str:
    """Choose the collection that a run writes to, and create it if necessary.

    A new collection is in use at once if there was none before, or if the one before is empty and
    belongs to another embedding space. After a rebuild the run itself switches.

    Returns:
        The collection's id.

    Raises:
        SpaceMismatchError: The collection in use needs a rebuild; nothing was changed.
    """
    catalog = context.services.catalog
    current = catalog.current_id()
    if current is not None and not rebuild and _fits(current, context):
        return current
    store = catalog.create(context.space)
    store.close()
    if current is None or not rebuild:
        catalog.switch_to(store.collection_id)
    if current is not None and not rebuild:
        catalog.discard(current)  # nothing in it to roll back to
    return store.collection_id


def _fits(collection_id: str, context: IngestionContext) -> bool:
    """Return False for an empty collection of another space: it need not be refused.

    Such a collection remains, for example, if the service was down at the first ingestion.
    """
    catalog = context.services.catalog
    try:
        catalog.open(collection_id, context.space).close()
    except SpaceMismatchError:
        entries = context.services.open_ledger(collection_id).entries().values()
        if any(entry.sha256 for entry in entries):  # the others were begun and never finished
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
    """Leave out pages that moved to a path that is not indexed yet, so that nothing gets lost.

    Args:
        doc_ids: Documents to delete.
        entries: The ledger.
        not_indexed: Documents of the docs folder that wait or have failed.
    """
    contents = {doc.sha256 for doc in not_indexed}
    return tuple(
        doc_id
        for doc_id in doc_ids
        if doc_id not in entries or entries[doc_id].sha256 not in contents
    )


def is_due(failure: LedgerFailure | None, sha256: str, now: datetime) -> bool:
    """Tell if a sensor may try a document again.

    The wait after a failure doubles from one minute to an hour. A changed file is due at once.
    """
    if failure is None or failure.sha256 != sha256:
        return True
    failed_at = datetime.fromisoformat(failure.failed_at)
    return find_next_try(failed_at, failure.attempts, now) is None


def find_next_try(failed_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """Return when to try again after a number of failures in a row; None if that may be now.

    A failure in the future was recorded before the clock was set back. It is not waited for.
    """
    again = failed_at + compute_wait(attempts)
    return again if failed_at <= now < again else None


def compute_wait(attempts: int) -> timedelta:
    """Return how long to wait after 1 or more failures in a row."""
    doublings = max(0, min(attempts - 1, _MOST_DOUBLINGS))
    return min(_FIRST_RETRY * (1 << doublings), _LONGEST_RETRY)
