"""The commands for the index: `ingest`, `ingest-doc`, `chunks`, `stats` and `audit`."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_pipeline.cli.initializing import load_book_or_site
from rag_pipeline.cli.loading import load_book, load_index
from rag_pipeline.cli.options import AsJson, DocsDir, DocsPlugin, NoNode, SiteDir
from rag_pipeline.cli.output import print_result
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError, StoreDamagedError

if TYPE_CHECKING:
    from rag_pipeline.core.models import DocFailure
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.planning import Scan
    from rag_pipeline.ingestion.report import IngestionReport

commands = typer.Typer()


@commands.command()
def ingest(
    docs_dir: DocsDir = None,
    site: SiteDir = None,
    docs_plugin: DocsPlugin = None,
    no_node: NoNode = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Build a new collection of all documents, then switch to it."
        ),
    ] = False,
    roll_back: Annotated[
        bool,
        typer.Option("--roll-back", help="Switch back to the collection before the last rebuild."),
    ] = False,
    prune_cache: Annotated[
        bool, typer.Option("--prune-cache", help="Delete cached embeddings that no document uses.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index new and changed documents, and remove deleted documents from the index.

    Unchanged documents are skipped. Exits with code 1 if a document failed.
    """
    if roll_back and (rebuild or prune_cache):
        problem = "this option cannot be combined with --rebuild or --prune-cache"
        raise ConfigurationError("--roll-back", problem, "Remove the other options")
    context = open_ingestion(load_book_or_site(docs_dir, site, docs_plugin, no_node=no_node))
    if roll_back:
        collection_id = context.services.catalog.roll_back()
        shown = f"Switched back to collection {collection_id}"
        print_result({"collection_id": collection_id}, shown, as_json=as_json)
        return
    report = rebuild_index(context) if rebuild else ingest_changes(context)
    if prune_cache:
        from rag_pipeline.ingestion.upkeep.stats import prune_embeddings

        report.warnings.append(
            f"{prune_embeddings(context)} unused embeddings deleted from the cache"
        )
    _finish_ingest(report, context, as_json)


@commands.command("ingest-doc")
def ingest_doc(
    doc_path: Annotated[
        str, typer.Argument(help="Path of the document, relative to the docs folder.")
    ],
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Index one document again, even if it is unchanged.

    If its file was deleted, the document is removed. Exits with code 1 if the document failed.
    """
    from rag_pipeline.core.ids import parse_doc_id
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import scan_docs
    from rag_pipeline.ingestion.upkeep.recovery import recover_current

    context = open_ingestion(load_book(docs_dir))
    recover_current(context)
    doc_id = parse_doc_id(doc_path.removeprefix("./"))
    scan = scan_docs(context)
    if doc_id in scan.plan.delete:
        request = IngestionRequest((), (doc_id,))
    else:
        request = IngestionRequest((doc_id,))
    _finish_ingest(_run_job(context, request, scan, 1), context, as_json)


@commands.command()
def chunks(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """List the chunks of all documents without embedding or storing them.

    Exits with code 1 if a document failed.
    """
    from rag_pipeline.ingestion.export import chunk_folder

    book = load_book(docs_dir)
    record: Any = chunk_folder(
        book.docs_dir, book.site, book.chunk_limits, book.site_manifest, book.sources or ()
    )
    documents, found, failures = (record[key] for key in ("documents", "chunks", "failures"))
    lines = [
        f"{chunk['doc_path']}:{chunk['start_line']}-{chunk['end_line']}  {chunk['token_count']:>4} "
        f"tokens  {chunk['content_type']:<10}  {chunk['section_heading']}"
        for chunk in found
    ]
    lines += [f"FAILED {failure['message']}" for failure in failures]
    lines.append(f"{len(documents)} documents, {len(found)} chunks, {len(failures)} failures")
    print_result(record, "\n".join(lines), as_json=as_json)
    if failures:
        raise typer.Exit(1)


@commands.command()
def stats(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """Show what the current collection contains and which model it was built with."""
    from rag_pipeline.cli.progress import tell_running_ingestion
    from rag_pipeline.cli.terminal import show_fields
    from rag_pipeline.ingestion.upkeep.stats import read_stats

    settings = load_index(docs_dir)
    tell_running_ingestion(settings)
    record = read_stats(open_ingestion(settings))
    print_result(record, show_fields(list(record.items())), as_json=as_json)


@commands.command()
def audit(
    docs_dir: DocsDir = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair the problems that the audit finds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that the store contains exactly what was indexed, nothing missing or extra.

    The repair builds the whole collection again if its store cannot be read.

    Exits with code 1 if a problem is found and not repaired.
    """
    from rag_pipeline.adapters.state.damage import warn_once
    from rag_pipeline.cli.terminal import show_audit
    from rag_pipeline.ingestion.upkeep.recovery import recover_current
    from rag_pipeline.ingestion.upkeep.repair import audit_index, describe_audit, repair_index

    context = open_ingestion(load_book(docs_dir))
    try:
        if repair:
            recover_current(context)
        found, left = audit_index(context), None
    except StoreDamagedError as error:
        if not repair:
            raise
        warn_once(f"{error}. This command does it now")
        rebuild_index(context)
        found, left = audit_index(context), None
    failures: list[DocFailure] = []

    def ingest_again(request: IngestionRequest) -> None:
        failures.extend(_run_job(context, request, None, len(request.doc_ids or ())).failures)

    if repair and found.findings:
        left = repair_index(context, found, ingest_again)
    record = describe_audit(found, left, failures)
    print_result(record, show_audit(found, left, failures), as_json=as_json)
    if (left or found).findings:
        raise typer.Exit(1)


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
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import scan_docs
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.upkeep.recovery import recover_current, report_unchanged

    recover_current(context)
    scan = scan_docs(context)
    if scan.plan.is_empty:
        return report_unchanged(context, scan)
    doc_ids = [str(doc.doc_id) for doc in scan.plan.process]
    size = context.settings.ingest_run_docs
    if len(doc_ids) <= size:
        return _run_job(context, IngestionRequest(), scan, len(doc_ids))
    whole = IngestionReport()
    for start in range(0, len(doc_ids), size):
        page = tuple(doc_ids[start : start + size])
        gone = scan.plan.delete if start + size >= len(doc_ids) else ()
        whole.merge(_run_job(context, IngestionRequest(page, gone), scan, len(page)))
    for failure in scan.discovery.failures:
        whole.add(failure)
    # Each run counts the documents of earlier runs as unchanged, so these totals are set here.
    whole.docs_discovered = len(scan.discovery.docs) + len(scan.discovery.failures)
    whole.docs_unchanged = len(scan.plan.unchanged)
    entries = context.services.open_ledger(whole.collection_id).entries().values()
    point_count = sum(entry.chunk_count for entry in entries)
    whole.chunks_unchanged = point_count - whole.chunks_created - whole.chunks_updated
    return whole


def rebuild_index(context: IngestionContext) -> IngestionReport:
    """Build a new collection of all documents, and switch to it if no document failed."""
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import scan_docs
    from rag_pipeline.ingestion.upkeep.recovery import recover_current

    recover_current(context)
    scan = scan_docs(context)
    return _run_job(context, IngestionRequest(rebuild=True), scan, len(scan.discovery.docs))


def _run_job(
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
    from rag_pipeline.cli.progress import IngestionProgress
    from rag_pipeline.ingestion.events import RunEnded, RunFailed
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    try:
        import dagster  # noqa: F401  # an ImportError inside the modules below has another cause
    except ImportError as error:
        raise MissingDependencyError("dagster", "pipeline") from error
    prepare_dagster_home(context.settings)
    from rag_pipeline.definitions import build_defs
    from rag_pipeline.orchestration.launch import run_ingest_job
    from rag_pipeline.orchestration.resources import IngestionResource

    report = IngestionReport()
    last: list[IngestionEvent] = []
    with IngestionProgress(doc_count) as progress:

        def listen(event: IngestionEvent) -> None:
            last[:] = [event]
            report.add(event)
            progress.observe(event)

        resource = IngestionResource(lambda: context, scan, listen)
        run_ingest_job(build_defs({"ingestion": resource}), request)
    final = last[0] if last else None
    if isinstance(final, RunFailed):
        raise final.error
    if not isinstance(final, RunEnded):
        problem = "the Dagster run ended before the ingestion was complete"
        remedy = f"Look at the run in {os.environ['DAGSTER_HOME']} with `make dev`"
        raise ConfigurationError("DAGSTER_HOME", problem, remedy)
    return report


def _finish_ingest(report: IngestionReport, context: IngestionContext, as_json: bool) -> None:
    """Print the report of an ingestion, and exit with code 1 if a document failed."""
    from rag_pipeline.cli.terminal import show_ingestion

    shown = show_ingestion(report, str(context.settings.docs_dir))
    print_result(report.to_json(), shown, as_json=as_json)
    if report.docs_failed:
        raise typer.Exit(1)
