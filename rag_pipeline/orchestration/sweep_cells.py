"""Building the collection of one design beside the one in use, so that a sweep can evaluate it.

Imports no Dagster: a cell is an experiment, not an ingestion that anybody looks up later.
"""

import hashlib
from pathlib import Path

from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.book import evaluate_book
from rag_pipeline.evaluation.records import EvaluationReport
from rag_pipeline.evaluation.sweep import SweepCell
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import IngestionRequest, run_ingestion
from rag_pipeline.orchestration.environment import build_environment


def evaluate_cell(settings: Settings, cell: SweepCell, test_set: Path | None) -> EvaluationReport:
    """Build a cell's collection, embedding only texts that are not in the cache, and evaluate it.

    The collection gets a name of its own and stays, so that a second sweep builds only what
    changed; the book's own collection and reports are left alone.

    Raises:
        ConfigurationError: An override is no setting or out of its bounds.
    """
    digest = hashlib.sha256(cell.name.encode()).hexdigest()[:8]
    collection = f"{settings.qdrant_collection}-sweep-{digest}"
    overrides = dict(cell.overrides) | {"qdrant_collection": collection}
    chosen = load_settings(**(settings.model_dump() | overrides))
    environment = build_environment(chosen)
    for _ in run_ingestion(IngestionRequest(), environment, f"sweep-{digest}", IngestionReport()):
        pass
    return evaluate_book(chosen, test_set, report_dir=settings.state_dir / "sweep" / digest).report
