"""The five ingestion assets as one multi-asset: a run takes any set of documents.

One document's failure never affects the others. The ingestion itself is in ingestion.run.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import unquote

import dagster as dg
import pydantic

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Chunk, DocFailure, Stage
from rag_pipeline.core.rules import Fault
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import (
    DocDeleted,
    IngestionEvent,
    RunPlanned,
    StageDone,
)
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration.checks import CHECK_SPECS, log_checks
from rag_pipeline.orchestration.dead_runs import name_process
from rag_pipeline.orchestration.event_log import store_together
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_doc_id, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource

_STORED_TOGETHER = 100  # events: about twenty documents
_PREVIEW_CHUNKS = 20  # rows; the event log keeps every one of them for good
_PREVIEW_CHARACTERS = 80

_DESCRIPTIONS = {
    Stage.DISCOVERED: "Markdown files that Docusaurus builds, each with the hash of its content.",
    Stage.PARSED: "Documents as front matter, headings with their anchors, and typed blocks.",
    Stage.CHUNKS: "Pieces of one section each, with the exact place in the book they are cited by.",
    Stage.EMBEDDINGS: "Vectors of the chunks; a text embedded before is never embedded again.",
    Stage.POINTS: "What the store holds: a document's chunks, searchable, and nothing else of it.",
}


class IngestConfig(dg.Config):
    """What a run without partitions ingests; as it stands: whatever changed."""

    doc_ids: list[str] | None = None
    delete_ids: list[str] = pydantic.Field(default_factory=list)
    rewrite: bool = False
    rebuild: bool = False
    reread: bool = False


def _specs() -> list[dg.AssetSpec]:
    stages = list(Stage)
    return [
        dg.AssetSpec(
            stage.value,
            deps=[stages[place - 1].value] if place else [],
            partitions_def=DOC_PARTITIONS,
            skippable=True,
            group_name="ingestion",
            description=_DESCRIPTIONS[stage],
            kinds={"qdrant"} if stage is Stage.POINTS else {"python"},
        )
        for place, stage in enumerate(stages)
    ]


@dg.multi_asset(
    specs=_specs(),
    can_subset=True,
    backfill_policy=dg.BackfillPolicy.single_run(),
    check_specs=CHECK_SPECS,
    name="ingestion",
)
def ingestion_assets(
    context: dg.AssetExecutionContext,
    config: IngestConfig,
    ingestion: dg.ResourceParam[IngestionResource],
) -> Iterator[Any]:
    """Take documents from file to point; see the descriptions of the five assets."""
    instance, run_id = context.instance, context.run.run_id
    instance.add_run_tags(run_id, name_process())
    known_keys = instance.get_dynamic_partitions(str(DOC_PARTITIONS.name))
    report, planned = IngestionReport(), None
    faults = dict[DocId, tuple[Fault, ...]]()
    deleted = set[DocId]()
    run = ingestion.run(_read_request(context, config), run_id)
    with closing(run) as events, _log_in_batches(context) as log:
        for event in events:
            report.add(event)
            log(event)
            if isinstance(event, RunPlanned):
                planned = event
            elif isinstance(event, StageDone) and event.stage is Stage.POINTS:
                faults[event.doc_id] = event.faults
            elif isinstance(event, DocDeleted):
                deleted.add(event.doc_id)
    if faults:
        with store_together(instance):
            log_checks(context, faults)
    if planned is not None:
        _forget_gone(instance, known_keys, planned, deleted)
    context.log.info("ingestion report: %s", report.to_json())
    instance.add_run_tags(run_id, _report_tags(report))
    if report.failures:
        raise dg.Failure(
            description=f"{report.docs_failed} document(s) failed; the others are indexed",
            metadata={failure.doc_path: failure.message for failure in report.failures},
            allow_retries=False,
        )
    yield from ()


def _read_request(context: dg.AssetExecutionContext, config: IngestConfig) -> IngestionRequest:
    stages = frozenset(Stage(key.to_user_string()) for key in context.selected_asset_keys)
    if context.has_partition_key or context.has_partition_key_range:
        doc_ids = tuple(str(to_doc_id(key)) for key in context.partition_keys)
        return IngestionRequest(doc_ids, stages=stages)
    if config.doc_ids is None:
        return IngestionRequest(stages=stages, rebuild=config.rebuild, reread=config.reread)
    return IngestionRequest(
        tuple(config.doc_ids), tuple(config.delete_ids), stages, rewrite=config.rewrite
    )


@contextmanager
def _log_in_batches(
    context: dg.AssetExecutionContext,
) -> Iterator[Callable[[IngestionEvent], None]]:
    """Give a function that logs events, which are stored together; the rest at the block's end."""
    pending = list[IngestionEvent]()

    def store_pending() -> None:
        with store_together(context.instance):
            for event in pending:
                _log_event(context, event)
        pending.clear()

    def log(event: IngestionEvent) -> None:
        pending.append(event)
        if len(pending) >= _STORED_TOGETHER or isinstance(event, RunPlanned):
            store_pending()

    try:
        yield log
    finally:
        store_pending()


def _log_event(context: dg.AssetExecutionContext, event: IngestionEvent) -> None:
    if isinstance(event, DocFailure):
        context.log.error("%s failed in %s: %s", event.doc_path, event.stage, event.message)
    elif isinstance(event, RunPlanned):
        keys = [to_partition_key(doc_id) for doc_id in event.doc_ids]
        context.instance.add_dynamic_partitions(str(DOC_PARTITIONS.name), keys)
    elif isinstance(event, DocDeleted):
        context.log.info("%s removed with %d points", event.doc_id, event.point_count)
    elif isinstance(event, StageDone):
        materialization = dg.AssetMaterialization(
            event.stage.value,
            partition=to_partition_key(event.doc_id),
            metadata=_metadata(event),
            tags={"dagster/data_version": event.data_version},
        )
        # `context.log_event` would also keep each event in memory until the run ends, and a
        # rebuild is one run of all documents.
        step = context.op_execution_context.get_step_execution_context()
        dg.DagsterEvent.asset_materialization(step, materialization)


def _forget_gone(
    instance: dg.DagsterInstance,
    known_keys: Iterable[str],
    planned: RunPlanned,
    deleted: Collection[DocId],
) -> None:
    """Delete partitions of documents that are neither in the docs folder nor in the ledger.

    This run may have removed them, or may never have known them: a rebuild begins with an empty
    ledger, and a page may go between a sensor's tick and its run.

    Args:
        instance: The Dagster instance.
        known_keys: The partitions as they were before the run looked at the docs folder.
        planned: What the run found.
        deleted: Documents that the run removed.
    """
    in_folder = (doc.doc_id for doc in planned.scan.discovery.docs)
    in_ledger = (doc_id for doc_id in planned.scan.plan.delete if doc_id not in deleted)
    kept = {to_partition_key(doc_id) for doc_id in (*in_folder, *in_ledger)}
    for key in known_keys:
        if key not in kept and not planned.scan.discovery.is_hidden(unquote(key)):
            instance.delete_dynamic_partition(str(DOC_PARTITIONS.name), key)


def _metadata(result: StageDone) -> Mapping[str, dg.MetadataValue[Any] | int | float | str]:
    metadata: dict[str, dg.MetadataValue[Any] | int | float | str] = dict(result.counts)
    if "url" in metadata:
        metadata["url"] = dg.MetadataValue.path(str(metadata["url"]))
    if result.stage is Stage.CHUNKS:
        metadata["preview"] = dg.MetadataValue.md(preview_chunks(result.chunks))
    return metadata


def preview_chunks(chunks: tuple[Chunk, ...]) -> str:
    """The first chunks of a document as a Markdown table: place, kind, size, section and how the
    text begins.
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
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _report_tags(report: IngestionReport) -> dict[str, str]:
    return {
        "docs_processed": str(report.docs_processed),
        "docs_failed": str(report.docs_failed),
        "texts_embedded": str(report.texts_embedded),
    }
