"""What an ingestion has to do: the docs folder against the ledger of what was really indexed.

Belongs here: the comparison, the same for the command, the sensor and a run. Does not belong here:
doing it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
    from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure
    from rag_pipeline.core.vectors import EmbeddingSpace
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
        """True where nothing has to be written to the store."""
        return not self.process and not self.delete


def plan_ingestion(
    discovery: Discovery,
    entries: Mapping[DocId, LedgerEntry],
    fingerprint: str,
    failures: Collection[DocId] = (),
) -> IngestionPlan:
    """Compare the documents found with those indexed.

    What could not be looked at is neither processed nor deleted: what is indexed of it stays.

    Args:
        discovery: What the docs folder holds.
        entries: The ledger of the collection in use; empty for a new one.
        fingerprint: Of the present settings, by `compute_pipeline_fingerprint`.
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
    there = {doc.doc_id for doc in discovery.docs}
    delete = sorted(
        doc_id for doc_id in {*entries, *failures} - there if not discovery.is_hidden(doc_id)
    )
    return IngestionPlan(tuple(process), tuple(delete), tuple(unchanged))


def leave_moved(
    doc_ids: Iterable[DocId],
    entries: Mapping[DocId, LedgerEntry],
    not_indexed: Iterable[DiscoveredDoc],
) -> tuple[DocId, ...]:
    """Leave out pages that moved to where they are not indexed yet, so that nothing gets lost.

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
    """Whether a document may be tried again by a sensor.

    The wait after a failure doubles from one minute to an hour; a changed file may be tried at
    once.
    """
    if failure is None or failure.sha256 != sha256:
        return True
    failed_at = datetime.fromisoformat(failure.failed_at)
    return find_next_try(failed_at, failure.attempts, now) is None


def find_next_try(failed_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """When to try again after a number of failures in a row; None where that may be now.

    A failure of the future was noted before the clock was set back, and is not waited for.
    """
    again = failed_at + compute_wait(attempts)
    return again if failed_at <= now < again else None


def compute_wait(attempts: int) -> timedelta:
    """How long to wait after a number of failures in a row, 1 or more."""
    doublings = max(0, min(attempts - 1, _MOST_DOUBLINGS))
    return min(_FIRST_RETRY * (1 << doublings), _LONGEST_RETRY)


def compute_pipeline_fingerprint(
    space: EmbeddingSpace, limits: ChunkLimits, site: SiteSettings
) -> str:
    """Hash of every setting that shapes chunks, payloads or vectors: 16 hexadecimal digits."""
    return hashlib.sha256(repr((str(space), limits, site)).encode()).hexdigest()[:16]
