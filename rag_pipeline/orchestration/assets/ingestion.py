"""The five ingestion assets, one per stage, as one Dagster multi-asset.

One run can process any set of documents, and a failed document does not affect the other documents.
The assets only log to Dagster what the ingestion in `ingestion.run` does.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import unquote

import dagster as dg

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
from rag_pipeline.orchestration.checks import CHECK_SPECS, log_checks, yield_check_outputs
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_doc_id, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.run_config import IngestConfig, refuse_fields
from rag_pipeline.orchestration.run_life import begin_run

_PREVIEW_CHUNKS = 20  # rows; the event log never deletes them
_PREVIEW_CHARACTERS = 80

_DESCRIPTIONS = {
    Stage.DISCOVERED: "The Markdown files that Docusaurus builds, with the hash of their content.",
    Stage.PARSED: "The parsed documents: front matter, headings with anchors, and typed blocks.",
    Stage.CHUNKS: "Pieces of one section each, with the exact place in the book for citations.",
    Stage.EMBEDDINGS: "The embeddings of the chunks. A text is embedded only once.",
    Stage.POINTS: "The searchable points in the vector store: exactly one for each chunk.",
}


def _specs() -> list[dg.AssetSpec]:
    """Return one asset spec per ingestion stage; each asset depends on the asset before it."""
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
    """Ingest the documents that the partitions or the run config name, and log what happens.

    Without partitions, the run config decides, and its default is every new, changed or deleted
    document. A materialization is logged per document and stage, and a result per asset check.

    Raises:
        dagster.Failure: At least one document failed; the other documents are indexed.
    """
    instance, run_id = context.instance, context.run.run_id
    begin_run(instance, run_id, ingestion.context.services.run_locks)
    known_keys = instance.get_dynamic_partitions(str(DOC_PARTITIONS.name))
    report, planned = IngestionReport(), None
    faults = dict[DocId, tuple[Fault, ...]]()
    deleted = set[DocId]()
    run = ingestion.run(_read_request(context, config), run_id)
    with closing(run) as events:
        for event in events:
            report.add(event)
            _log_event(context, event)
            if isinstance(event, RunPlanned):
                planned = event
            elif isinstance(event, StageDone) and event.stage is Stage.POINTS:
                faults[event.doc_id] = event.faults
            elif isinstance(event, DocDeleted):
                deleted.add(event.doc_id)
    if faults:
        log_checks(context, faults)
    if planned is not None:
        _forget_gone(instance, known_keys, planned, deleted)
    context.log.info("ingestion report: %s", report.to_json())
    instance.add_run_tags(
        run_id,
        {"docs_processed": str(report.docs_processed), "docs_failed": str(report.docs_failed)},
    )
    if report.failures:
        raise dg.Failure(
            description=f"{report.docs_failed} document(s) failed; all other documents are indexed",
            metadata={failure.doc_path: failure.message for failure in report.failures},
            allow_retries=False,
        )
    yield from yield_check_outputs(context)


def _read_request(context: dg.AssetExecutionContext, config: IngestConfig) -> IngestionRequest:
    """Return the ingestion request of a run.

    Selected partitions determine the documents; without partitions the run config does.

    Raises:
        ConfigurationError: The config sets fields that would have no effect in this run.
    """
    if context.has_partition_key or context.has_partition_key_range:
        refuse_fields(config, set(IngestConfig.model_fields), "with selected partitions")
        doc_ids = tuple(str(to_doc_id(key)) for key in context.partition_keys)
        return IngestionRequest(doc_ids)
    if config.doc_ids is None:
        refuse_fields(config, {"delete_ids", "rewrite"}, "without doc_ids")
        return IngestionRequest(rebuild=config.rebuild, reread=config.reread)
    refuse_fields(config, {"rebuild", "reread"}, "with doc_ids")
    return IngestionRequest(tuple(config.doc_ids), tuple(config.delete_ids), rewrite=config.rewrite)


def _log_event(context: dg.AssetExecutionContext, event: IngestionEvent) -> None:
    """Log one ingestion event to Dagster.

    A finished stage becomes an asset materialization. For the plan of the run, a partition is added
    for each document to be processed. Failures and deletions become log lines. Other events are
    ignored.
    """
    if isinstance(event, DocFailure):
        context.log.error("%s failed in %s: %s", event.doc_path, event.stage, event.message)
    elif isinstance(event, RunPlanned):
        keys = [to_partition_key(doc_id) for doc_id in event.doc_ids]
        context.instance.add_dynamic_partitions(str(DOC_PARTITIONS.name), keys)
    elif isinstance(event, DocDeleted):
        context.log.info("%s and its %d points were removed", event.doc_id, event.point_count)
    elif isinstance(event, StageDone):
        materialization = dg.AssetMaterialization(
            event.stage.value,
            partition=to_partition_key(event.doc_id),
            metadata=_metadata(event),
            tags={"dagster/data_version": event.data_version},
        )
        # `context.log_event` would also keep each event in memory until the run ends, which is too
        # much for a rebuild: it processes all documents in one run.
        step = context.op_execution_context.get_step_execution_context()
        dg.DagsterEvent.asset_materialization(step, materialization)


def _forget_gone(
    instance: dg.DagsterInstance,
    known_keys: Iterable[str],
    planned: RunPlanned,
    deleted: Collection[DocId],
) -> None:
    """Delete the partitions of documents that are neither in the docs folder nor in the ledger.

    The ledger records which documents are indexed. A document may have left it earlier than in this
    run, or never been in it (a rebuild starts with an empty ledger), so all partitions are compared
    and not only `deleted`. A document that could not be read, or whose folder could not be read,
    keeps its partition.

    Args:
        instance: The Dagster instance.
        known_keys: The partition keys that existed before the run scanned the docs folder.
        planned: The plan of the run, with its scan of the docs folder.
        deleted: Documents that the run removed.
    """
    in_folder = (doc.doc_id for doc in planned.scan.discovery.docs)
    in_ledger = (doc_id for doc_id in planned.scan.plan.delete if doc_id not in deleted)
    kept = {to_partition_key(doc_id) for doc_id in (*in_folder, *in_ledger)}
    for key in known_keys:
        if key not in kept and not planned.scan.discovery.is_hidden(unquote(key)):
            instance.delete_dynamic_partition(str(DOC_PARTITIONS.name), key)


def _metadata(result: StageDone) -> Mapping[str, dg.MetadataValue[Any] | int | float | str]:
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
