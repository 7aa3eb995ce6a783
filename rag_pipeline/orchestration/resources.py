"""The Dagster resources of the code location, and the run configuration of the ingestion."""

# An ingestion needs neither the evaluation nor the question log, whose imports take half a second.
# ruff: noqa: PLC0415

from collections.abc import Callable, Generator
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pydantic

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import DatabaseUnavailableError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.records import Answering
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.events import IngestionEvent, RunEnded, RunFailed
from rag_pipeline.ingestion.planning import Scan
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline.ingestion.site.detection import settle_site
from rag_pipeline.orchestration.dead_runs import check_run

if TYPE_CHECKING:
    from rag_pipeline.evaluation.book import BookEvaluation


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


class Ingestion:
    """A runner of ingestions, all with the same settings and services (context).

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


class _BookConfig(dg.Config):
    """The configuration of a resource that works on one book."""

    docs_dir: str | None = pydantic.Field(
        default=None,
        description=(
            "Docs folder of the book. By default, the setting DOCS_DIR. All other settings are "
            "read from the environment and from `.env`."
        ),
    )

    def load_settings(self) -> Settings:
        """Read the settings of the book."""
        return load_settings(docs_dir=self.docs_dir)


class IngestionResource(_BookConfig, dg.ConfigurableResource[Ingestion]):
    """The ingestion of the book, with its settings, embedding model, store and ledger."""

    def create_resource(self, context: dg.InitResourceContext) -> Ingestion:  # noqa: ARG002  # Dagster's signature
        """Return the ingestion. It reads the settings and opens services on the first use."""
        return Ingestion(partial(_open_context, self.docs_dir))


_opened: dict[str | None, tuple[tuple[Settings, Path], IngestionContext]] = {}
"""The latest services by docs folder, with what they were made for."""


def _open_context(docs_dir: str | None) -> IngestionContext:
    """Return the services for the settings as they are now.

    A sensor asks at each tick, and its process outlives changes of the settings, of the site's
    configuration and of links. Runs are new processes. If both had different settings, the sensor
    would request the same documents forever.
    """
    settings = settle_site(load_settings(docs_dir=docs_dir))
    made_for = (settings, settings.state_dir)
    if docs_dir not in _opened or _opened[docs_dir][0] != made_for:
        _opened[docs_dir] = (made_for, IngestionContext(settings, connect_services(settings)))
    return _opened[docs_dir][1]


class EvaluationResource(_BookConfig, dg.ConfigurableResource["EvaluationResource"]):
    """The measurement of search and answers with the golden set of questions."""

    test_set: str | None = pydantic.Field(
        default=None,
        description=(
            "JSON file with the questions. By default, the setting EVALUATION_TEST_SET, or else "
            "the questions that come with the package."
        ),
    )
    answering: Answering = pydantic.Field(
        default=Answering.QUOTED,
        description=(
            "NONE measures only the search. QUOTED also answers the questions without a model. "
            "CONFIGURED lets the chat model of the settings write the answers, which can cost "
            "money."
        ),
    )

    def evaluate(self) -> "BookEvaluation":
        """Ask the questions and return the measures and quality gates; see `evaluate_book`."""
        from rag_pipeline.evaluation.book import evaluate_book

        test_set = Path(self.test_set) if self.test_set else None
        return evaluate_book(settle_site(self.load_settings()), test_set, answering=self.answering)


class QuestionLogResource(_BookConfig, dg.ConfigurableResource["QuestionLogResource"]):
    """The question log: questions, answers and ratings, which `rag-pipeline serve` records."""
