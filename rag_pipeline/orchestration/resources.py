"""The resource through which assets, checks and sensors reach an ingestion.

Settings are read in one place (core.settings), so there is nothing to configure in Dagster's way.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import cached_property

from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.events import IngestionEvent
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.ingestion.run import run_ingestion


class IngestionResource:
    """Runs ingestions in a context that is built on first use and kept for the process.

    Args:
        build: Makes the context when a run or a sensor tick first needs it, so that loading
            definitions reads no settings and opens nothing.
        scan: A scan of the docs folder that the caller has made, for the first run.
        listen: Called with each event of a run, for a command that shows progress.
    """

    def __init__(
        self,
        build: Callable[[], IngestionContext],
        scan: Scan | None = None,
        listen: Callable[[IngestionEvent], object] = lambda _: None,
    ) -> None:
        self._build = build
        self._scan = scan
        self._listen = listen

    @cached_property
    def context(self) -> IngestionContext:
        """The context of this process."""
        return self._build()

    def run(self, request: IngestionRequest, run_id: str) -> Generator[IngestionEvent]:
        """Ingest as `run_ingestion` does."""
        with closing(run_ingestion(self.context, request, run_id, self._scan)) as events:
            for event in events:
                self._listen(event)
                yield event
