"""Reports about documents to Dagster: what its UI shows of their partitions and checks.

Storing an event takes Dagster several milliseconds. A run therefore records an output or a verdict
only if the UI does not show the same already, so that a rebuild of unchanged pages stays fast.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from rag_pipeline.core.models import Chunk, DocFailure, Stage
from rag_pipeline.core.rules import Fault
from rag_pipeline.ingestion.events import DocDeleted, IngestionEvent, StageDone
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration.checks import judge, log_verdict, read_verdicts
from rag_pipeline.orchestration.partitions import (
    CODE_VERSION,
    add_partitions,
    find_newest,
    mark_failed,
    materialize,
    read_states,
    read_version,
    to_partition_key,
)

_PREVIEW_CHUNKS = 20  # rows; the event log never deletes them
_PREVIEW_CHARACTERS = 80
_LISTED_FAILURES = 100
_GROUP = 50  # documents whose verdicts are recorded together


class DocReports:
    """The reports of one run about the documents that it processes.

    Args:
        context: The Dagster context of the run.
        doc_ids: The documents. Each gets a partition, if it has none.
        repeats: Record outputs again that are as Dagster shows them already. The page of a run in
            the UI lists what it recorded, so a run of selected partitions repeats them.
    """

    def __init__(
        self, context: dg.AssetExecutionContext, doc_ids: Iterable[str], *, repeats: bool
    ) -> None:
        self._context = context
        self._shown: dict[tuple[Stage, str], tuple[str | None, str | None]] = {}
        self._verdicts: dict[str, bool] = {}
        self._found: list[tuple[str, tuple[Fault, ...]]] = []
        keys = [to_partition_key(doc_id) for doc_id in doc_ids]
        add_partitions(context.instance, keys)
        if not repeats and keys:
            self._read_shown(keys)

    def add(self, event: IngestionEvent) -> None:
        """Report an event of the ingestion: a finished stage, a failure or a deletion."""
        context = self._context
        if isinstance(event, DocFailure):
            context.log.error("%s failed in %s: %s", event.doc_path, event.stage, event.message)
            mark_failed(context.instance, context.run, event)
        elif isinstance(event, DocDeleted):
            context.log.info("%s and its %d points were removed", event.doc_id, event.point_count)
        elif isinstance(event, StageDone):
            self._add_output(event)

    def end(self) -> None:
        """Record the verdicts that are left."""
        for verdict in judge(self._context.instance, self._found):
            log_verdict(self._context, verdict)
        self._found.clear()

    def _read_shown(self, keys: list[str]) -> None:
        instance = self._context.instance
        for stage in Stage:
            states = read_states(instance, stage, keys)
            green = [key for key in keys if states.get(key) == "MATERIALIZED"]
            for key, record in find_newest(instance, stage, green).items():
                self._shown[stage, key] = read_version(record)
        self._verdicts = read_verdicts(instance, keys)

    def _add_output(self, done: StageDone) -> None:
        key = to_partition_key(done.doc_id)
        is_new = self._shown.get((done.stage, key)) != (done.data_version, CODE_VERSION)
        if is_new:
            # `context.log_event` would also keep each event in memory until the run ends, which is
            # too much for a rebuild: it processes all documents in one run.
            step = self._context.op_execution_context.get_step_execution_context()
            event = materialize(done.stage, key, done.data_version, _describe(done))
            dg.DagsterEvent.asset_materialization(step, event)
        if done.stage is Stage.POINTS and (
            is_new or self._verdicts.get(key) is not (not done.faults)
        ):
            self._found.append((done.doc_id, done.faults))
            if len(self._found) == _GROUP:
                self.end()


def summarize(report: IngestionReport) -> dict[str, Any]:
    """Return the metadata of an ingestion: its numbers, which Dagster plots, and its report."""
    numbers = {
        name: value for name, value in report.to_json().items() if isinstance(value, (int, float))
    }
    lines = ["| Stage | Seconds |", "|---|---|"]
    lines += [f"| {name} | {seconds:.2f} |" for name, seconds in report.stage_seconds.items()]
    for title, texts in (
        ("Failed", [failure.message for failure in report.failures]),
        ("Warnings", report.warnings),
    ):
        if texts:
            lines += ["", f"**{title}**", ""]
            lines += [f"- {_escape_cell(text)}" for text in texts[:_LISTED_FAILURES]]
    return {**numbers, "report": dg.MetadataValue.md("\n".join(lines))}


def _describe(result: StageDone) -> Mapping[str, dg.MetadataValue[Any] | int | float | str]:
    """Return the metadata of a finished stage: its counts and, for the chunks stage, a preview."""
    metadata: dict[str, dg.MetadataValue[Any] | int | float | str] = dict(result.counts)
    if "url" in metadata:
        metadata["url"] = dg.MetadataValue.path(str(metadata["url"]))
    if result.stage is Stage.CHUNKS:
        metadata["preview"] = dg.MetadataValue.md(preview_chunks(result.chunks))
    return metadata


def preview_chunks(chunks: tuple[Chunk, ...]) -> str:
    """Format the first 20 chunks of a document as a Markdown table, for the Dagster UI.

    The columns are chunk index, content type, size in tokens, section heading, and the first 80
    characters of the text.
    """
    rows = ["| # | type | tokens | section | text |", "|---|---|---|---|---|"]
    for chunk in chunks[:_PREVIEW_CHUNKS]:
        cells = (
            str(chunk.chunk_index),
            chunk.content_type.value,
            str(chunk.token_count),
            chunk.section_heading,
            chunk.text[:_PREVIEW_CHARACTERS],
        )
        rows.append("| " + " | ".join(_escape_cell(cell) for cell in cells) + " |")
    if len(chunks) > _PREVIEW_CHUNKS:
        rows.append(f"\n{len(chunks) - _PREVIEW_CHUNKS} more chunks")
    return "\n".join(rows)


def _escape_cell(text: str) -> str:
    """Put the text on one line and escape characters that would break a Markdown table cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
