"""The coordinator's part of an ingestion by several workers: plan once, and divide the work.

The plan is made from one state of the docs folder, the snapshot. Each worker checks that its own
docs folder has the same documents in its buckets, before it changes anything.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.core.buckets import bucket_of, find_buckets
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.ingestion.deletions import check_deletes
from rag_pipeline.ingestion.finishing import find_ledger
from rag_pipeline.ingestion.planning import choose_collection, leave_moved, scan_docs
from rag_pipeline.ingestion.site.lost_sources import check_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan


@dataclass(frozen=True, slots=True)
class BucketWork:
    """The buckets that one worker indexes, and the state of the book that they were planned from.

    Attributes:
        buckets: Numbers of the buckets, ascending.
        bucket_count: Number of buckets of the book.
        snapshot: Hash of the ids and contents of all documents in these buckets.
        fingerprint: Hash of the coordinator's settings, which `fingerprint_book` returned.
        collection_id: Id of the collection to write to.
        delete_ids: Documents of these buckets to delete, whose files are gone. A document that
            moved to another path is not among them before the new path is indexed.
        doc_count: Number of documents to process, for messages.
    """

    buckets: tuple[int, ...]
    bucket_count: int
    snapshot: str
    fingerprint: str
    collection_id: str
    delete_ids: tuple[str, ...] = ()
    doc_count: int = 0


def uses_buckets(context: IngestionContext, scan: Scan) -> bool:
    """Return True if the book has too many documents for one Dagster partition each."""
    return len(scan.discovery.docs) > context.settings.doc_partitions_limit


def open_collection(context: IngestionContext) -> None:
    """Create the collection if there is none, so that no worker has to.

    Builds that killed ingestions left behind are deleted before.

    Raises:
        SpaceMismatchError: The current collection needs a rebuild. Nothing was changed.
        StoreLockedError: Another ingestion of the book did not end in time.
    """
    services = context.services
    with services.lock():
        services.catalog.recover()
        with suppress(RagPipelineError, OSError):  # the next run cleans up instead
            services.sweep()
        choose_collection(context, rebuild=False)


def plan_buckets(
    context: IngestionContext, scan: Scan, due: Sequence[DiscoveredDoc] | None = None
) -> tuple[BucketWork, ...]:
    """Return the work of each bucket that has something to do, in the order of the buckets.

    Args:
        context: The settings and services.
        scan: A scan of all documents, against the ledger of the collection to write to.
        due: The documents to process; None for all that the scan's plan names. A bucket's worker
            processes all documents of its plan, so this only decides which buckets have work.

    Raises:
        ConfigurationError: The workers would delete too much of the book.
    """
    count = context.settings.bucket_count
    docs = scan.plan.process if due is None else due
    postponed = scan.plan.process  # of a moved document, the old path goes last
    check_deletes(context, scan, scan.plan.delete)
    gone = leave_moved(scan.plan.delete, scan.entries, postponed)
    wanted = find_buckets((*(doc.doc_id for doc in docs), *gone), count)
    return tuple(_make_works(context, scan, [(bucket,) for bucket in wanted], gone))


def plan_bucket(context: IngestionContext, scan: Scan, bucket: int) -> BucketWork:
    """Return the work of one bucket, even if there is nothing to do."""
    check_deletes(context, scan, scan.plan.delete)
    gone = leave_moved(scan.plan.delete, scan.entries, scan.plan.process)
    (work,) = _make_works(context, scan, [(bucket,)], gone)
    return work


def divide_work(
    context: IngestionContext, scan: Scan, works: Sequence[BucketWork], worker_count: int
) -> tuple[BucketWork, ...]:
    """Merge the work of buckets into a few shares of about the same number of documents.

    Each worker gets the same number of shares if there are enough buckets, so that all of them end
    at about the same time. A share has not much more than INGEST_RUN_DOCS documents, which limits
    the memory of a worker.
    """
    total = sum(work.doc_count for work in works)
    docs_per_round = worker_count * context.settings.ingest_run_docs
    wanted = worker_count * max(1, -(-total // docs_per_round))
    shares: list[list[int]] = [[] for _ in range(min(wanted, len(works)))]
    sizes = [0] * len(shares)
    for work in sorted(works, key=lambda work: -work.doc_count):
        place = sizes.index(min(sizes))
        shares[place] += work.buckets
        sizes[place] += work.doc_count + len(work.delete_ids)
    gone = [doc_id for work in works for doc_id in work.delete_ids]
    groups = [tuple(sorted(share)) for share in shares]
    return tuple(_make_works(context, scan, groups, gone))


def hash_documents(docs: Iterable[DiscoveredDoc]) -> str:
    """Return a hash of the ids and contents of documents in any order, as 16 hex digits."""
    digest = hashlib.sha256()
    for doc in sorted(docs, key=lambda doc: doc.doc_id):
        digest.update(f"{doc.doc_id}\0{doc.sha256}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def fingerprint_book(context: IngestionContext) -> str:
    """Return a hash of all settings that affect chunks, payloads or vectors of any document."""
    meanings = [source.meaning for source in context.settings.sources or ()]
    return hash_text(repr((context.fingerprint, meanings)))[:16]


def scan_collection(context: IngestionContext) -> Scan:
    """Create the collection if necessary, and compare all documents with its ledger.

    Raises:
        DocsFolderError: The docs folder is missing, unreadable or contains no Markdown file.
        SpaceMismatchError: The current collection needs a rebuild. Nothing was changed.
    """
    scan = scan_docs(context)
    check_sources(context.settings, scan.plan.delete, find_ledger(context, scan))
    if scan.plan.is_empty and scan.collection_id:
        return scan
    open_collection(context)
    return scan_docs(context, earlier=scan)


def _make_works(
    context: IngestionContext, scan: Scan, groups: Sequence[Sequence[int]], gone: Iterable[str]
) -> Iterable[BucketWork]:
    count = context.settings.bucket_count
    docs, waiting = defaultdict[int, list[DiscoveredDoc]](list), Counter[int]()
    deletes = defaultdict[int, list[str]](list)
    for doc in scan.discovery.docs:
        docs[bucket_of(doc.doc_id, count)].append(doc)
    for doc in scan.plan.process:
        waiting[bucket_of(doc.doc_id, count)] += 1
    for doc_id in gone:
        deletes[bucket_of(doc_id, count)].append(doc_id)
    for group in groups:
        yield BucketWork(
            buckets=tuple(group),
            bucket_count=count,
            snapshot=hash_documents(doc for bucket in group for doc in docs[bucket]),
            fingerprint=fingerprint_book(context),
            collection_id=scan.collection_id,
            delete_ids=tuple(sorted(doc_id for bucket in group for doc_id in deletes[bucket])),
            doc_count=sum(waiting[bucket] for bucket in group),
        )
