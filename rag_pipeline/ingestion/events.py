"""The events of an ingestion run, in the order in which they happen.

Dagster, the command line and the run's report all read this one stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rag_pipeline.core.models import DocFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk, DiscoveredDoc, Stage
    from rag_pipeline.core.rules import Fault
    from rag_pipeline.ingestion.planning import Scan


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """The first event of every run: what was found, and what the run will process.

    Attributes:
        scan: The docs folder compared with the collection that the run writes to.
        doc_ids: Documents that the run is about to process.
    """

    run_id: str
    scan: Scan
    doc_ids: tuple[DocId, ...]

    @property
    def unchanged(self) -> list[DiscoveredDoc]:
        """Documents that the run leaves as they are."""
        chosen = frozenset(self.doc_ids)
        return [doc for doc in self.scan.plan.unchanged if doc.doc_id not in chosen]


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage finished for a document.

    Attributes:
        data_version: Changes whenever the stage's output changes.
        counts: What the stage counted; keys are metadata names with their unit.
        chunks: The document's chunks if the stage made them, for a preview.
        faults: For the points stage: each broken rule, and how it is broken.
    """

    stage: Stage
    doc_id: DocId
    data_version: str
    counts: Mapping[str, int | float | str]
    chunks: tuple[Chunk, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class DocDeleted:
    """A document that is gone was removed; `point_count` is 0 if it was never indexed."""

    doc_id: DocId
    point_count: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of a run that was carried out, even if documents failed in it."""

    duration_s: float


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The last event of a run that an error ended; the error is raised after it."""

    error: Exception


IngestionEvent: TypeAlias = RunPlanned | StageDone | DocFailure | DocDeleted | RunEnded | RunFailed
