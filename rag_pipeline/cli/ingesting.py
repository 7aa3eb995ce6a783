"""The commands for the index, such as `ingest` and `audit`, and what they do to index a book."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_pipeline.cli.initializing import load_book, load_book_or_site, load_index
from rag_pipeline.cli.options import AsJson, DocsDir, DocsPlugin, RunConfig, SiteDir
from rag_pipeline.cli.output import print_result, tell
from rag_pipeline.core.errors import ConfigurationError, StoreDamagedError, require_packages

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
    run_config: RunConfig = False,
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
    from rag_pipeline.orchestration.instance import locate_home

    actions = {
        "--roll-back": roll_back,
        "--rebuild": rebuild,
        "--prune-cache": prune_cache,
    }
    chosen, *others = [name for name, given in actions.items() if given] or [""]
    if others and chosen != "--rebuild":  # which can be combined with --prune-cache
        problem = f"this option cannot be combined with {' or '.join(others)}"
        raise ConfigurationError(chosen, problem, "Use one of them at a time")
    settings, detected = load_book_or_site(docs_dir, site, docs_plugin, run_config=run_config)
    context = open_ingestion(settings)
    if detected and not (rebuild or roll_back):
        from rag_pipeline.ingestion.site.detection import check_detected

        check_detected(context, detected)
    if roll_back:
        collection_id = context.services.catalog.roll_back()
        shown = f"Switched back to collection {collection_id}"
        print_result({"collection_id": collection_id}, shown, as_json=as_json)
        return
    has_history = locate_home(settings).exists()
    report = ingest_changes(context, rebuild=rebuild)
    if report.docs_unchanged and not has_history:  # it was deleted
        correct_history(context)
    if prune_cache:
        from rag_pipeline.ingestion.audit import prune_embeddings

        report.warnings.append(
            f"{prune_embeddings(context)} unused embeddings deleted from the cache"
        )
    named = str(detected.docs_dir) if detected else docs_dir
    _finish_ingest(report, context, named, as_json=as_json)


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
    from rag_pipeline.ingestion.audit import recover_current
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.planning import scan_docs

    context = open_ingestion(load_book(docs_dir))
    recover_current(context)
    doc_id = parse_doc_id(doc_path.removeprefix("./"))
    scan = scan_docs(context)
    if doc_id in scan.delete:
        request = IngestionRequest((), (doc_id,))
    else:
        request = IngestionRequest((doc_id,))
    report = run_job(context, request, scan, 1)
    _finish_ingest(report, context, docs_dir, as_json=as_json)


@commands.command()
def chunks(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """List the chunks of all documents without embedding or storing them.

    Exits with code 1 if a document failed.
    """
    from rag_pipeline.ingestion.report import chunk_folder

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
    from rag_pipeline.cli.terminal import show_fields, tell_running_ingestion
    from rag_pipeline.ingestion.audit import read_stats

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
    from rag_pipeline.cli.terminal import show_audit
    from rag_pipeline.core.settings.file import warn_once
    from rag_pipeline.ingestion import audit as auditing

    context = open_ingestion(load_book(docs_dir))
    auditing.require_sources(context)
    try:
        if repair:
            auditing.recover_current(context)
        found, left = auditing.audit_index(context), None
    except StoreDamagedError as error:
        if not repair:
            raise
        warn_once(f"{error}. This command does it now")
        ingest_changes(context, rebuild=True)
        found, left = auditing.audit_index(context), None
    failures: list[DocFailure] = []

    def ingest_again(request: IngestionRequest) -> None:
        failures.extend(run_job(context, request, None, len(request.doc_ids or ())).failures)

    if repair and found.findings:
        left = auditing.repair_index(context, found, ingest_again)
    if repair:
        correct_history(context)
    remaining = (left or found).to_json()["findings"]
    record = found.to_json() | {
        "repaired": left is not None and not left.findings,
        "remaining": remaining,
        "failures": [asdict(failure) for failure in failures],
    }
    print_result(record, show_audit(found, left, failures), as_json=as_json)
    if remaining:
        raise typer.Exit(1)


def _finish_ingest(
    report: IngestionReport, context: IngestionContext, docs_dir: str | None, *, as_json: bool
) -> None:
    """Print the report of an ingestion, and exit with code 1 if a document failed."""
    from rag_pipeline.cli.terminal import show_ingestion

    options = f"--docs-dir {shlex.quote(docs_dir)}" if docs_dir else ""
    shown = show_ingestion(report, str(context.settings.docs_dir), options)
    print_result(report.to_json(), shown, as_json=as_json)
    if report.docs_failed:
        raise typer.Exit(1)


def open_ingestion(settings: Settings) -> IngestionContext:
    """Return the ingestion context (settings and services) of the book that the settings name.

    The call opens no store and loads no model.
    """
    from rag_pipeline.adapters.connect import connect_services
    from rag_pipeline.ingestion.context import IngestionContext

    return IngestionContext(settings, connect_services(settings))


def ingest_changes(context: IngestionContext, *, rebuild: bool = False) -> IngestionReport:
    """Index new and changed documents, remove deleted ones, and return the report.

    If nothing changed, neither Dagster nor a model is loaded. With `rebuild`, a new collection of
    all documents is built, which becomes the current one if no document failed.
    """
    from rag_pipeline.ingestion import audit, planning
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.report import list_changes
    from rag_pipeline.ingestion.site.detection import check_sources

    audit.recover_current(context)
    scan = planning.scan_docs(context)
    if not rebuild:
        check_sources(context.settings, scan.delete, planning.find_ledger(context, scan))
    changes = list_changes(context, scan)
    if rebuild:
        report = run_job(context, IngestionRequest(rebuild=True), scan, len(scan.discovery.docs))
    elif scan.is_up_to_date:
        report = audit.report_unchanged(context, scan)
    elif len(scan.process) <= context.settings.ingest_run_docs:
        report = run_job(context, IngestionRequest(), scan, len(scan.process))
    else:
        report = _ingest_in_parts(context, scan)
    report.warnings[:0] = changes
    return report


def _ingest_in_parts(context: IngestionContext, scan: Scan) -> IngestionReport:
    """Ingest the changes of a scan in several Dagster runs of INGEST_RUN_DOCS documents.

    This limits the memory and the event log of each run. The last run also removes the deleted
    documents.
    """
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.report import IngestionReport

    whole = IngestionReport()
    doc_ids = [str(doc.doc_id) for doc in scan.process]
    size = context.settings.ingest_run_docs
    for start in range(0, len(doc_ids), size):
        page = tuple(doc_ids[start : start + size])
        gone = scan.delete if start + size >= len(doc_ids) else ()
        run_job(context, IngestionRequest(page, gone), scan, len(page), whole)
    for failure in scan.discovery.failures:
        whole.add(failure)
    # Each run counts the documents of earlier runs as unchanged, so these totals are set here.
    whole.docs_discovered = len(scan.discovery.docs) + len(scan.discovery.failures)
    whole.docs_unchanged = len(scan.unchanged)
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


def correct_history(context: IngestionContext) -> None:
    """Let the Dagster UI show the state of the index, if Dagster is installed."""
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    if find_spec("dagster") is None:
        return
    prepare_dagster_home(context.settings)
    from rag_pipeline.orchestration.launch import reconcile_history

    reconcile_history(context)


def run_job(
    context: IngestionContext,
    request: IngestionRequest,
    scan: Scan | None,
    doc_count: int,
    earlier: IngestionReport | None = None,
) -> IngestionReport:
    """Run the Dagster ingestion job in this process with a progress bar, and return its report.

    The run is also visible in the Dagster UI.

    Args:
        context: The settings and services.
        request: What to ingest.
        scan: The command's scan of the docs folder, for reuse; with None the run scans by itself.
        doc_count: Number of documents that the run will process, for the progress bar.
        earlier: The report of earlier runs, to which this run is added.

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
    report = earlier or IngestionReport()
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
