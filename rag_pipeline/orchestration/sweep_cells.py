"""Building the collection of one design beside the one in use, so that a sweep can evaluate it.

Imports no Dagster: a cell is an experiment, not an ingestion that anybody looks up later.
"""

import hashlib
from pathlib import Path

from rag_pipeline.adapters.builds import name_cell
from rag_pipeline.adapters.process_lock import hold_lock
from rag_pipeline.core.errors import SweepCellError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.book import evaluate_book
from rag_pipeline.evaluation.records import EvaluationReport
from rag_pipeline.evaluation.sweep import SweepCell
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import IngestionRequest, run_ingestion
from rag_pipeline.orchestration.environment import build_environment, locate_cell_lock


def choose_settings(settings: Settings, cell: SweepCell) -> Settings:
    """The settings of a cell: the present ones but for what it overrides.

    Raises:
        ConfigurationError: An override is no setting or out of its bounds.
    """
    return load_settings(**(settings.model_dump() | dict(cell.overrides)))


def evaluate_cell(settings: Settings, cell: SweepCell, test_set: Path | None) -> EvaluationReport:
    """Build a cell's collection, embedding only texts that are not in the cache, and evaluate it.

    The collection gets a name of its own and stays until the next ingest of the book, so that a
    second sweep builds only what changed; the book's own collection and reports are left alone.

    Raises:
        ConfigurationError: An override is no setting or out of its bounds.
        SweepCellError: Documents failed: cells that lack different pages do not compare.
        StoreLockedError: Another sweep is at this design.
    """
    chosen = choose_settings(settings, cell)
    space = str(build_environment(chosen).space)
    digest = hashlib.sha256(f"{cell.name} {space}".encode()).hexdigest()[:8]
    name = name_cell(settings.qdrant_collection, digest)
    chosen = chosen.model_copy(update={"qdrant_collection": name})
    environment, report = build_environment(chosen), IngestionReport()

    def ingest() -> None:
        for _ in run_ingestion(IngestionRequest(), environment, f"sweep-{digest}", report):
            pass
        if report.failures:
            failures = [(failure.doc_path, failure.message) for failure in report.failures]
            raise SweepCellError(cell.name, failures)

    folder = settings.state_dir / "sweep" / digest
    with hold_lock(locate_cell_lock(settings, name), settings.ingest_lock_timeout_s):
        return evaluate_book(chosen, test_set, report_dir=folder, ingest=ingest).report
