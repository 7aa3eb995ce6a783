"""The events that an ingestion run yields while it works.

Dagster, the command line and the ingestion report all read the same events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rag_pipeline.core.models import DiscoveredDoc, DocFailure, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.rules import Finding
    from rag_pipeline.ingestion.planning import Scan


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """The first event of a run: the result of the scan, and the documents that the run processes.

    Attributes:
        run_id: Id of the run.
        scan: The docs folder compared with the ledger of the collection that the run writes to.
        doc_ids: Documents that the run will process.
    """

    run_id: str
    scan: Scan
    doc_ids: tuple[DocId, ...]

    @property
    def unchanged(self) -> list[DiscoveredDoc]:
        """Documents that are indexed and unchanged, and that the run does not process."""
        chosen = frozenset(self.doc_ids)
        return [doc for doc in self.scan.unchanged if doc.doc_id not in chosen]


@dataclass(frozen=True, slots=True)
class StageDone:
    """An event: one stage finished for one document.

    Attributes:
        stage: The stage.
        doc_id: The document.
        data_version: Hash of the stage's output; it changes whenever the output changes.
        counts: Figures about the stage's work. The keys are Dagster metadata names, such as
            `duration_s`.
        faults: The findings about the written points; only filled for the
            points stage.
        warnings: The parts of the document that could not be read; only filled for the parsing
            stage.
    """

    stage: Stage
    doc_id: DocId
    data_version: str
    counts: Mapping[str, int | float | str]
    faults: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocDeleted:
    """An event: a document whose file is gone was deleted from the collection.

    `point_count` is the number of deleted points; 0 if the document had none.
    """

    doc_id: DocId
    point_count: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of a run that reached its end, even if single documents failed.

    Attributes:
        duration_s: Seconds that the run took.
        warnings: Faults of the book that no single document shows, such as two pages with the same
            address. Only the documents that the run processed are compared.
    """

    duration_s: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The last event of a run that an error aborted; the error is raised right after the event."""

    error: Exception


def ends_document(event: IngestionEvent) -> bool:
    """Return True if an event says that a document is indexed or has failed."""
    if isinstance(event, StageDone):
        return event.stage is Stage.POINTS
    return isinstance(event, DocFailure)


IngestionEvent: TypeAlias = RunPlanned | StageDone | DocFailure | DocDeleted | RunEnded | RunFailed
