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
    from collections.abc import Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import (
        ChunkLimits,
        DiscoveredDoc,
        EmbeddingSpace,
        SiteSettings,
    )
    from rag_pipeline.core.ports import LedgerEntry, LedgerFailure
    from rag_pipeline.ingestion.discovery import Discovery

_FIRST_RETRY: Final = timedelta(seconds=60)
_LONGEST_RETRY: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class IngestionPlan:
    """Documents by what has to happen to them, each tuple in the order of discovery.

    Attributes:
        process: New, changed, or made with other settings.
        delete: Indexed once and no longer in the docs folder, by ascending id.
        unchanged: Indexed as they are.
        touched: Those of `unchanged` whose time of change differs from the ledger's.
    """

    process: tuple[DiscoveredDoc, ...]
    delete: tuple[DocId, ...]
    unchanged: tuple[DiscoveredDoc, ...]
    touched: tuple[DiscoveredDoc, ...]

    @property
    def is_empty(self) -> bool:
        """True where nothing has to be written to the store."""
        return not self.process and not self.delete


def plan_ingestion(
    discovery: Discovery, entries: Mapping[DocId, LedgerEntry], fingerprint: str
) -> IngestionPlan:
    """Compare the documents found with those indexed.

    What could not be looked at is neither processed nor deleted: what is indexed of it stays.

    Args:
        discovery: What the docs folder holds.
        entries: The ledger of the collection in use; empty for a new one.
        fingerprint: Of the present settings, by `compute_pipeline_fingerprint`.
    """
    process, unchanged, touched = [], [], []
    for doc in discovery.docs:
        entry = entries.get(doc.doc_id)
        if entry is None or (entry.sha256, entry.pipeline_fingerprint) != (doc.sha256, fingerprint):
            process.append(doc)
            continue
        unchanged.append(doc)
        if entry.mtime_ns != doc.mtime_ns:
            touched.append(doc)
    there = {doc.doc_id for doc in discovery.docs}
    unseen = tuple(failure.doc_path for failure in discovery.failures)
    unseen_folders = tuple(path for path in unseen if path.endswith("/"))
    delete = sorted(
        doc_id
        for doc_id in entries
        if doc_id not in there and doc_id not in unseen and not doc_id.startswith(unseen_folders)
    )
    return IngestionPlan(tuple(process), tuple(delete), tuple(unchanged), tuple(touched))


def is_due(failure: LedgerFailure | None, sha256: str, now: datetime) -> bool:
    """Whether a document may be tried again by a sensor.

    The wait after a failure doubles from one minute to an hour; a changed file may be tried at
    once.
    """
    if failure is None or failure.sha256 != sha256:
        return True
    wait = min(_FIRST_RETRY * 2 ** min(failure.attempts - 1, 10), _LONGEST_RETRY)
    return bool(now >= datetime.fromisoformat(failure.failed_at) + wait)


def compute_pipeline_fingerprint(
    space: EmbeddingSpace, limits: ChunkLimits, site: SiteSettings
) -> str:
    """Hash of every setting that shapes chunks, payloads or vectors: 16 hexadecimal digits."""
    return hashlib.sha256(repr((str(space), limits, site)).encode()).hexdigest()[:16]
