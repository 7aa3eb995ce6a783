"""How far a run is, for the messages of this process and for other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import EmbeddingServiceError
from rag_pipeline.ingestion.events import ends_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_pipeline.core.protocols.state import Announce
    from rag_pipeline.ingestion.events import IngestionEvent, RunPlanned


class RunProgress:
    """The progress of a run, which is announced to other processes.

    Args:
        planned: The plan of the run.
        announce: Tells other processes the numbers.
    """

    def __init__(self, planned: RunPlanned, announce: Announce) -> None:
        discovery = planned.scan.discovery
        self._total = len(discovery.docs) + len(discovery.failures)
        waiting = {doc.doc_id for doc in planned.scan.plan.process} | {*planned.doc_ids}
        self._done = self._total - len(waiting)
        self._announce = announce
        announce(self._done, self._total)

    def follow(self, events: Iterable[IngestionEvent]) -> Iterator[IngestionEvent]:
        """Yield the events, and announce each document that is indexed or has failed.

        Raises:
            EmbeddingServiceError: The embedding service does not answer. The numbers are added to
                the message.
        """
        try:
            for event in events:
                if ends_document(event):
                    self._done += 1
                    self._announce(self._done, self._total)
                yield event
        except EmbeddingServiceError as error:
            message = (
                f"{error}. {self._done} of {self._total} documents are indexed; the next ingest "
                "continues with the others"
            )
            raise EmbeddingServiceError(message) from error
