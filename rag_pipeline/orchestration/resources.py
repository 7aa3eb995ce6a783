"""The Dagster resource that gives assets, checks and sensors access to the ingestion.

It has no Dagster configuration, because `core.settings` reads all settings.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import cached_property

from rag_pipeline.core.errors import DatabaseUnavailableError
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.events import IngestionEvent, RunEnded, RunFailed
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline.orchestration.run_life import check_run


class IngestionResource:
    """A Dagster resource that runs ingestions, all with the same settings and services (context).

    Args:
        build: Function that returns the context. It is called on the first use, so that loading the
            Dagster definitions reads no settings and opens nothing.
        scan: Comparison of the docs folder with the ledger that the caller has already made. A run
            reuses it if the ledger has not changed since. None if there is none.
        listen: Function that is called with each event of a run, for example to show progress.
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
        """The settings and services of this process, built on first use."""
        return self._build()

    def run(self, request: IngestionRequest, run_id: str) -> Generator[IngestionEvent]:
        """Run an ingestion and yield its events; each event is passed to `listen` first.

        See `ingestion.run.run_ingestion` for the events and errors. Closing the generator stops the
        ingestion. It also ends if the lock of the run is lost.
        """
        run = run_ingestion(self.context, request, run_id, self._scan)
        with closing(run) as events:
            for event in events:
                if not isinstance(event, RunFailed | RunEnded):
                    try:
                        check_run(run_id)
                    except DatabaseUnavailableError as error:
                        self._listen(RunFailed(error))
                        raise
                self._listen(event)
                yield event
