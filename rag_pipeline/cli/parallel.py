"""`rag-pipeline ingest` with several workers."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Final

import typer

from rag_pipeline.cli.indexing import ingest_changes, require_dagster, run_job
from rag_pipeline.cli.output import print_result
from rag_pipeline.cli.progress import tell_note
from rag_pipeline.core.settings.rules import OPEN, SITE_FIELDS
from rag_pipeline.core.site.source_entries import dump_sources

if TYPE_CHECKING:
    from typing import Self

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.parallel.planning import BucketWork
    from rag_pipeline.ingestion.planning import Scan
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.orchestration.submitting import Following

_STORE_WAIT_S: Final = 600.0
_LINE_S: Final = 10.0
_QUEUED_S: Final = 30.0  # the daemon starts a waiting run within seconds


def ingest_with_workers(context: IngestionContext, worker_count: int) -> IngestionReport:
    """Index new and changed documents with several processes of this machine.

    Dagster starts the processes. With fewer buckets to index than workers, or nothing to do, this
    process alone does it.

    Raises:
        StoreError: A worker ended before its documents were indexed; the others were completed.
    """
    from rag_pipeline.adapters.embedders.provider import CLIENT_MODULES
    from rag_pipeline.ingestion.context import IngestionRequest
    from rag_pipeline.ingestion.finishing import record_site
    from rag_pipeline.ingestion.parallel.planning import divide_work, plan_buckets, scan_collection
    from rag_pipeline.ingestion.planning import leave_moved, scan_docs
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.upkeep.changes import list_changes
    from rag_pipeline.ingestion.upkeep.recovery import recover_current

    recover_current(context)
    scan = scan_collection(context)
    works = plan_buckets(context, scan)
    if len(works) <= 1:
        return ingest_changes(context)
    changes = list_changes(context, scan)
    from rag_pipeline.orchestration.forking import start_imports
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    prepare_dagster_home(context.settings)
    export_settings(context.settings)
    start_imports(CLIENT_MODULES[context.services.embedder.model.provider])
    require_dagster()  # the slow imports of this process run at the same time
    from rag_pipeline.orchestration.workers import run_shares

    begun = time.monotonic()
    shares = divide_work(context, scan, works, worker_count)
    whole = IngestionReport(collection_id=scan.collection_id, warnings=changes)
    for report in run_shares(shares, worker_count, context.services.run_locks):
        whole.merge(report)
    after = scan_docs(context)
    moved = leave_moved(after.plan.delete, after.entries, after.plan.process)
    if moved:  # their old paths go only now, after the new ones are indexed
        whole.merge(run_job(context, IngestionRequest((), moved), after, 0))
    record_site(context, context.services.open_ledger(scan.collection_id))
    whole.docs_discovered = len(scan.discovery.docs) + len(scan.discovery.failures)
    whole.docs_unchanged = len(scan.plan.unchanged)
    whole.chunks_unchanged = sum(entry.chunk_count for entry in after.entries.values())
    whole.chunks_unchanged -= whole.chunks_created + whole.chunks_updated
    whole.duration_s = time.monotonic() - begun
    return whole


def ingest_detached(context: IngestionContext, *, as_json: bool) -> None:
    """Submit a run per bucket to the Dagster instance, and show how far they are.

    Runs of an earlier call that have not ended are followed too. Ctrl-C ends only the view. Exits
    with code 1 if a run or a document failed.
    """
    from rag_pipeline.ingestion.finishing import record_site
    from rag_pipeline.ingestion.parallel.planning import plan_buckets, scan_collection
    from rag_pipeline.ingestion.upkeep.recovery import recover_current

    require_dagster()
    from rag_pipeline.orchestration.instance import prepare_dagster_home
    from rag_pipeline.orchestration.submitting import submit_and_follow

    recover_current(context)
    prepare_dagster_home(context.settings)
    export_settings(context.settings)
    scans: list[Scan] = []

    def plan() -> tuple[BucketWork, ...]:
        scans[:] = [scan_collection(context)]
        return plan_buckets(context, scans[0])

    with ProgressLine() as line:
        try:
            found = submit_and_follow(plan, line.show, context.services)
        except KeyboardInterrupt:
            tell_note(
                "the runs go on without this view. Follow them again with `rag-pipeline ingest "
                "--detach`, or in the Dagster UI"
            )
            raise
    record_site(context, context.services.open_ledger(scans[0].collection_id))
    print_result(dataclasses.asdict(found), describe_following(found), as_json=as_json)
    if found.runs_failed or found.docs_failed:
        raise typer.Exit(1)


class ProgressLine:
    """One line on standard error that says how far the runs are.

    On a terminal it is replaced in place. Elsewhere a new line is written when a run has ended, at
    most every 10 s.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._shown_at = -_LINE_S
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        """Begin without a line."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the line on a terminal."""
        if self._is_terminal and self._shown:
            sys.stderr.write("\n")

    def show(self, found: Following) -> None:
        """Show the numbers, if they differ from those that are shown."""
        text, now = describe_following(found), time.monotonic()
        if text == self._shown:
            return
        if self._is_terminal:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
        elif now - self._shown_at >= _LINE_S or found.runs_done == found.run_count:
            tell_note(text)
            self._shown_at = now
        self._shown = text


def describe_following(found: Following) -> str:
    """Return how far the runs are, in one line."""
    if not found.run_count:
        return "nothing to index: all documents are up to date"
    rate = f", {found.docs_per_s:.1f}/s" if found.docs_timed else ""
    parts = [
        f"{found.runs_done} of {found.run_count} buckets done, {found.runs_running} running",
        f"{found.docs_done} of {found.docs_planned} documents{rate}",
    ]
    if found.runs_failed or found.docs_failed:
        parts.append(f"{found.runs_failed} runs and {found.docs_failed} documents failed")
    if found.left_s and found.runs_done < found.run_count:
        parts.append(f"about {found.left_s:.0f} s left")
    if not found.runs_running and not found.runs_done and found.elapsed_s > _QUEUED_S:
        parts.append("no run has started: is the Dagster daemon running (`make dev`)?")
    return "; ".join(parts)


def export_settings(settings: Settings) -> None:
    """Set the environment variables with which the workers see the book of this command."""
    os.environ["DOCS_DIR"] = str(settings.docs_dir.absolute())
    # The embedded store admits one process at a time, and all workers write to it.
    os.environ["STORE_LOCK_TIMEOUT_S"] = str(max(settings.store_lock_timeout_s, _STORE_WAIT_S))
    os.environ["DATA_DIR"] = str(settings.data_dir.absolute())
    if settings.sources is not None:
        os.environ["SOURCES"] = json.dumps(dump_sources(settings.sources))
    for name in SITE_FIELDS:
        value = getattr(settings, f"site_{name}")
        if value is not None:
            os.environ[f"SITE_{name.upper()}"] = value if value == OPEN else str(value)
