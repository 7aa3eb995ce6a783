"""Commands that build and look after the index: ingest, ingest-doc, chunks, stats and audit."""

# ruff: noqa: PLC0415  # each command imports its own parts, so that a light one starts fast

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_pipeline.cli.options import AsJson, DocsDir
from rag_pipeline.cli.output import print_result
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.changes import IngestionPlan
    from rag_pipeline.ingestion.discovery import Discovery
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.run import IngestionEnvironment, IngestionRequest

commands = typer.Typer()


@commands.command()
def ingest(
    docs_dir: DocsDir = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Build a new collection beside the old one, then switch."),
    ] = False,
    roll_back: Annotated[
        bool, typer.Option("--roll-back", help="Put the collection before the last rebuild in use.")
    ] = False,
    prune_cache: Annotated[
        bool, typer.Option("--prune-cache", help="Forget embeddings that no document uses.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index what changed in the docs folder; what is unchanged costs nothing."""
    from rag_pipeline.orchestration.environment import build_environment

    if roll_back and (rebuild or prune_cache):
        problem = "it builds nothing and forgets nothing"
        raise ConfigurationError("--roll-back", problem, "Leave out --rebuild and --prune-cache")
    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    if roll_back:
        collection_id = environment.catalog.roll_back()
        print_result(
            {"collection_id": collection_id}, f"In use again: {collection_id}", as_json=as_json
        )
        return
    report = ingest_changes(settings, environment, rebuild=rebuild)
    if prune_cache:
        from rag_pipeline.orchestration.environment import prune_embeddings

        forgotten = prune_embeddings(environment)
        report.warnings.append(f"{forgotten} unused embeddings forgotten")
    _finish_ingest(report, settings, as_json)


@commands.command("ingest-doc")
def ingest_doc(
    doc_path: Annotated[str, typer.Argument(help="Path below the docs folder.")],
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Index one document, changed or not; remove it if its file is gone."""
    from rag_pipeline.core.ids import parse_doc_id
    from rag_pipeline.ingestion.run import scan
    from rag_pipeline.orchestration.environment import build_environment

    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    doc_id = parse_doc_id(doc_path.removeprefix("./"))
    _, plan, _ = scan(environment)
    gone = doc_id in plan.delete
    report = _launch(settings, environment, [] if gone else [doc_id], [doc_id] if gone else [], 1)
    _finish_ingest(report, settings, as_json)


@commands.command()
def chunks(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """Parse and chunk the docs folder, embedding nothing."""
    from rag_pipeline.ingestion.export import chunk_folder

    settings = load_settings(docs_dir=docs_dir)
    record = chunk_folder(settings.docs_dir, settings.site, settings.chunk_limits)
    documents, found, failures = (
        _as_list(record[key]) for key in ("documents", "chunks", "failures")
    )
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
    """Show what the collection in use holds and how it was built."""
    from rag_pipeline.cli.terminal import show_fields
    from rag_pipeline.orchestration.environment import build_environment, read_stats

    record = read_stats(build_environment(load_settings(docs_dir=docs_dir)))
    print_result(record, show_fields(list(record.items())), as_json=as_json)


@commands.command()
def audit(
    docs_dir: DocsDir = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare ledger, artifacts and store both ways; exit 1 while they disagree."""
    from rag_pipeline.cli.terminal import show_audit
    from rag_pipeline.orchestration.auditing import audit_environment, repair_environment
    from rag_pipeline.orchestration.environment import build_environment

    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    found = audit_environment(environment)

    def launch(request: IngestionRequest) -> None:
        docs, gone = list(request.doc_ids or ()), list(request.delete_ids)
        _launch(settings, environment, docs, gone, len(docs), rewrite=request.rewrite)

    repaired = False
    if repair and found.findings:
        repaired = not repair_environment(environment, found, launch).findings
    record = found.to_json() | {"repaired": repaired}
    print_result(record, show_audit(found, repaired=repaired), as_json=as_json)
    if found.findings and not repaired:
        raise typer.Exit(1)


def ingest_changes(
    settings: Settings, environment: IngestionEnvironment, *, rebuild: bool
) -> IngestionReport:
    """Find out what changed; where nothing has, neither Dagster nor a model is loaded."""
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.run import refresh_ledger, scan, sweep_if_idle

    discovery, plan, entries = scan(environment)
    if rebuild:
        return _launch(settings, environment, None, [], len(discovery.docs), rebuild=True)
    if not plan.is_empty:
        return _ingest_in_runs(settings, environment, discovery, plan)
    collection_id = environment.catalog.current_id() or ""
    refresh_ledger(environment.open_ledger(collection_id), plan.unchanged, entries)
    sweep_if_idle(environment, {*entries, *(doc.doc_id for doc in discovery.docs)})
    report = IngestionReport(
        collection_id=collection_id,
        docs_discovered=len(discovery.docs) + len(discovery.failures),
        docs_unchanged=len(plan.unchanged),
        chunks_unchanged=sum(entries[doc.doc_id].chunk_count for doc in plan.unchanged),
    )
    for failure in discovery.failures:
        report.add_failure(failure)
    return report


def _ingest_in_runs(
    settings: Settings,
    environment: IngestionEnvironment,
    discovery: Discovery,
    plan: IngestionPlan,
) -> IngestionReport:
    """Cut a bulk ingestion into runs that bound memory and the event log of each.

    Each document is in one run alone; the last run removes what is gone.
    """
    from rag_pipeline.ingestion.report import IngestionReport

    doc_ids, size = [str(doc.doc_id) for doc in plan.process], environment.max_run_docs
    if len(doc_ids) <= size:
        return _launch(settings, environment, None, [], len(doc_ids))
    report = IngestionReport()
    for start in range(0, len(doc_ids), size):
        page = doc_ids[start : start + size]
        gone = [] if start + size < len(doc_ids) else [str(doc_id) for doc_id in plan.delete]
        report.merge(_launch(settings, environment, page, gone, len(page)))
    for failure in discovery.failures:
        report.add_failure(failure)
    # Each run counts what the runs before it wrote as unchanged: the whole is counted at the end.
    report.docs_discovered = len(discovery.docs) + len(discovery.failures)
    report.docs_unchanged = len(plan.unchanged)
    entries = environment.open_ledger(report.collection_id).entries().values()
    point_count = sum(entry.chunk_count for entry in entries)
    report.chunks_unchanged = point_count - report.chunks_created - report.chunks_updated
    return report


def _launch(
    settings: Settings,
    environment: IngestionEnvironment,
    doc_ids: list[str] | None,
    delete_ids: list[str],
    count: int,
    *,
    rewrite: bool = False,
    rebuild: bool = False,
) -> IngestionReport:
    from rag_pipeline.cli.terminal import IngestionProgress
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    try:
        import dagster  # noqa: F401  # told apart from an error inside the modules below
    except ImportError as error:
        from rag_pipeline.core.errors import MissingDependencyError

        raise MissingDependencyError("dagster", "pipeline") from error
    prepare_dagster_home(settings)
    from rag_pipeline.definitions import build_defs
    from rag_pipeline.orchestration.launch import run_ingest_job
    from rag_pipeline.orchestration.resources import IngestionResource

    outcome: list[object] = []
    with IngestionProgress(count) as progress:

        def observe(event: object) -> None:
            progress.observe(event)
            if isinstance(event, (IngestionReport, RagPipelineError)):
                outcome.append(event)

        watched = dataclasses.replace(environment, observe=observe)
        definitions = build_defs({"ingestion": IngestionResource(build=lambda: watched)})
        run_ingest_job(definitions, doc_ids, delete_ids, rewrite=rewrite, rebuild=rebuild)
    last = outcome[-1] if outcome else None
    if isinstance(last, RagPipelineError):
        raise last
    if not isinstance(last, IngestionReport):
        home = os.environ["DAGSTER_HOME"]
        problem = "the Dagster run ended before ingestion began"
        raise ConfigurationError("DAGSTER_HOME", problem, f"See the runs in {home} with `make dev`")
    return last


def _finish_ingest(report: IngestionReport, settings: Settings, as_json: bool) -> None:
    from rag_pipeline.cli.terminal import show_ingestion

    print_result(report.to_json(), show_ingestion(report, str(settings.docs_dir)), as_json=as_json)
    if report.docs_failed:
        raise typer.Exit(1)


def _as_list(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # JSON
    return list(value)
