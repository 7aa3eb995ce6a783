"""The Dagster resources and run configuration of the ingestion.

It has no Dagster configuration, because `core.settings` reads all settings.
"""

from collections.abc import Callable, Collection, Generator
from contextlib import closing
from functools import cached_property

import dagster as dg
import pydantic

from rag_pipeline.core.errors import ConfigurationError, DatabaseUnavailableError
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.events import IngestionEvent, RunEnded, RunFailed
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline.orchestration.dead_runs import check_run


class IngestConfig(dg.Config):
    """Run config of an ingestion.

    The defaults ingest everything that changed.
    """

    doc_ids: list[str] | None = pydantic.Field(
        default=None,
        description=(
            "Paths of documents to index even if they are unchanged, relative to the docs folder. "
            "Without this list, every new or changed document is indexed and every deleted "
            "document is removed."
        ),
    )
    delete_ids: list[str] = pydantic.Field(
        default_factory=list,
        description="Documents to remove if their files no longer exist. Only with doc_ids.",
    )
    plan: str = pydantic.Field(
        default="",
        description=(
            "Hash of the documents, settings and collection that the run was planned for. A run "
            "that finds others changes nothing and fails. Only with doc_ids."
        ),
    )
    rewrite: bool = pydantic.Field(
        default=False,
        description="Write all points of doc_ids again, even unchanged ones. Only with doc_ids.",
    )
    rebuild: bool = pydantic.Field(
        default=False,
        description=(
            "Build a new collection of all documents, then switch to it. Only without doc_ids."
        ),
    )
    reread: bool = pydantic.Field(
        default=False,
        description=(
            "Read every file, even if its size and modification time are unchanged. Only without "
            "doc_ids."
        ),
    )


def refuse_fields(config: IngestConfig, names: Collection[str], situation: str) -> None:
    """Refuse a run config that sets fields without an effect in its run.

    Args:
        config: The run config.
        names: Names of the fields that have no effect.
        situation: What takes their effect away, such as `with doc_ids`.

    Raises:
        ConfigurationError: One of the fields is set; the message names all that are set.
    """
    default = IngestConfig()
    given = [
        name
        for name in IngestConfig.model_fields
        if name in names and getattr(config, name) != getattr(default, name)
    ]
    if given:
        remedy = "Remove it from the run config, or start a run of its own for it"
        raise ConfigurationError(", ".join(given), f"does not work {situation}", remedy)


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
