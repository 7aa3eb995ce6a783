"""Building the collection of one design beside the one in use, so that a sweep can evaluate it.

Imports no Dagster: a cell is an experiment, not an ingestion that anybody looks up later.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.core.errors import SweepCellError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.book import choose_test_set, evaluate_book, load_for, parse_corpus
from rag_pipeline.evaluation.records import EvaluationReport
from rag_pipeline.evaluation.sweep import SweepCell, require_tune_half
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import IngestionRequest, run_ingestion
from rag_pipeline.orchestration.environment import build_environment, locate_cell_lock


def choose_settings(settings: Settings, cell: SweepCell) -> Settings:
    """The settings of a cell: the present ones but for what it overrides.

    Raises:
        ConfigurationError: An override is no setting or out of its bounds.
    """
    return load_settings(**(settings.model_dump() | dict(cell.overrides)))


def check_sweep(settings: Settings, cells: Sequence[SweepCell], test_set: Path | None) -> None:
    """Find out what would end a sweep, before its first collection is built.

    Raises:
        ConfigurationError: An override is no setting, out of its bounds or of no model, or the test
            set has nothing to compare by.
        GoldenSetError: The test set is malformed, or expects a page or heading that is not there.
    """
    for cell in cells:
        build_environment(choose_settings(settings, cell))
    corpus = parse_corpus(settings.docs_dir, settings.site)
    require_tune_half(load_for(choose_test_set(settings, test_set), corpus))


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
