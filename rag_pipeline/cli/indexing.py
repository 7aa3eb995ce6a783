"""What the commands `ingest`, `ingest-doc`, `audit` and others do to index a book."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rag_pipeline.cli.output import tell
from rag_pipeline.core.errors import ConfigurationError, require_packages

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.planning import Scan
    from rag_pipeline.ingestion.report import IngestionReport


def open_ingestion(settings: Settings) -> IngestionContext:
    """Return the ingestion context (settings and services) of the book that the settings name.

    The call opens no store and loads no model.
    """
    from rag_pipeline.adapters.connect import connect_services
    from rag_pipeline.ingestion.context import IngestionContext

    return IngestionContext(settings, connect_services(settings))


def ingest_changes(context: IngestionContext) -> IngestionReport:
    """Index new and changed documents, remove deleted ones, and return the report.

    If nothing changed, neither Dagster nor a model is loaded. More documents than INGEST_RUN_DOCS
    are split into several Dagster runs, which limits the memory and the event log of each run. The
    last run also removes the deleted documents.
    """
    from rag_pipeline.ingestion.audit import recover_current, report_unchanged
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import find_ledger, scan_docs
    from rag_pipeline.ingestion.report import IngestionReport, list_changes
    from rag_pipeline.ingestion.site.detection import check_sources

    recover_current(context)
    scan = scan_docs(context)
    check_sources(context.settings, scan.plan.delete, find_ledger(context, scan))
    changes = list_changes(context, scan)
    doc_ids = [str(doc.doc_id) for doc in scan.plan.process]
    size = context.settings.ingest_run_docs
    if len(doc_ids) <= size:
        if scan.plan.is_empty:
            report = report_unchanged(context, scan)
        else:
            report = run_job(context, IngestionRequest(), scan, len(doc_ids))
        report.warnings[:0] = changes
        return report
    whole = IngestionReport(warnings=changes)
    for start in range(0, len(doc_ids), size):
        page = tuple(doc_ids[start : start + size])
        gone = scan.plan.delete if start + size >= len(doc_ids) else ()
        whole.merge(run_job(context, IngestionRequest(page, gone), scan, len(page)))
    for failure in scan.discovery.failures:
        whole.add(failure)
    # Each run counts the documents of earlier runs as unchanged, so these totals are set here.
    whole.docs_discovered = len(scan.discovery.docs) + len(scan.discovery.failures)
    whole.docs_unchanged = len(scan.plan.unchanged)
    entries = context.services.open_ledger(whole.collection_id).entries().values()
    point_count = sum(entry.chunk_count for entry in entries)
    whole.chunks_unchanged = point_count - whole.chunks_created - whole.chunks_updated
    return whole


def ingest_and_tell(settings: Settings) -> IngestionReport:
    """Index what changed in the book of the settings, and show the report on standard error."""
    from rag_pipeline.cli.terminal import show_ingestion

    report = ingest_changes(open_ingestion(settings))
    tell(show_ingestion(report, str(settings.docs_dir)))
    return report


def rebuild_index(context: IngestionContext) -> IngestionReport:
    """Build a new collection of all documents, and switch to it if no document failed."""
    from rag_pipeline.ingestion.audit import recover_current
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import scan_docs
    from rag_pipeline.ingestion.report import list_changes

    recover_current(context)
    scan = scan_docs(context)
    changes = list_changes(context, scan)
    report = run_job(context, IngestionRequest(rebuild=True), scan, len(scan.discovery.docs))
    report.warnings[:0] = changes
    return report


def correct_history(context: IngestionContext) -> None:
    """Let the Dagster UI show the state of the index, if Dagster is installed."""
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    if find_spec("dagster") is None:
        return
    prepare_dagster_home(context.settings)
    from rag_pipeline.orchestration.launch import reconcile_history

    reconcile_history(context)


def run_job(
    context: IngestionContext, request: IngestionRequest, scan: Scan | None, doc_count: int
) -> IngestionReport:
    """Run the Dagster ingestion job in this process with a progress bar, and return its report.

    The run is also visible in the Dagster UI.

    Args:
        context: The settings and services.
        request: What to ingest.
        scan: The command's scan of the docs folder, for reuse; with None the run scans by itself.
        doc_count: Number of documents that the run will process, for the progress bar.

    Raises:
        MissingDependencyError: Dagster is not installed.
        ConfigurationError: The Dagster run ended before the ingestion was complete.
        Exception: The ingestion ended with an error, which is raised unchanged.
    """
    from rag_pipeline.cli.terminal import IngestionProgress
    from rag_pipeline.ingestion.events import RunEnded, RunFailed
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    require_packages("pipeline", "dagster")
    prepare_dagster_home(context.settings)
    report = IngestionReport()
    last: list[IngestionEvent] = []
    with IngestionProgress(doc_count) as progress:
        # The progress is shown before Dagster is imported, which takes seconds.
        from rag_pipeline.definitions import build_defs
        from rag_pipeline.orchestration.launch import run_ingest_job
        from rag_pipeline.orchestration.resources import Ingestion

        def listen(event: IngestionEvent) -> None:
            last[:] = [event]
            report.add(event)
            progress.observe(event)

        resource = Ingestion(lambda: context, scan, listen)
        locks = context.services.run_locks
        run_ingest_job(build_defs({"ingestion": resource}), request, locks)
    final = last[0] if last else None
    if isinstance(final, RunFailed):
        raise final.error
    if not isinstance(final, RunEnded):
        problem = "the Dagster run ended before the ingestion was complete"
        remedy = f"Look at the run in {os.environ['DAGSTER_HOME']} with `make dev`"
        raise ConfigurationError("DAGSTER_HOME", problem, remedy)
    return report
