"""The five ingestion assets as one multi-asset: a run takes any set of documents, and each fails or
lands alone.

Belongs here: reading what a run was asked for and logging what it did. Does not belong here: doing
it (ingestion.run).
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote

import dagster as dg
import pydantic

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Chunk, DocFailure, Stage
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import (
    DocDeleted,
    DocsChosen,
    IngestionEnvironment,
    IngestionRequest,
    RunEvent,
    run_ingestion,
    scan,
)
from rag_pipeline.ingestion.soundness import Fault
from rag_pipeline.ingestion.work import StageResult
from rag_pipeline.orchestration.checks import CHECK_SPECS, log_checks
from rag_pipeline.orchestration.dead_runs import name_process
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_doc_id, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource

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
    context.instance.add_run_tags(context.run.run_id, name_process())
    report = IngestionReport()
    checked, faults = 0, dict[DocId, tuple[Fault, ...]]()
    request = _read_request(context, config)
    run_id = context.run.run_id
    with closing(run_ingestion(request, ingestion.environment, run_id, report)) as events:
        for event in events:
            _log_event(context, event)
            if isinstance(event, StageResult) and event.stage is Stage.POINTS:
                checked += 1
                if event.faults:
                    faults[event.doc_id] = event.faults
    if checked:
        log_checks(context, faults, checked)
    with suppress(RagPipelineError, OSError):  # a later run tries again
        _forget_gone(context.instance, ingestion.environment)
    context.log.info("ingestion report: %s", report.to_json())
    context.instance.add_run_tags(context.run.run_id, _report_tags(report))
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


def _log_event(context: dg.AssetExecutionContext, event: RunEvent) -> None:
    if isinstance(event, DocFailure):
        context.log.error("%s failed in %s: %s", event.doc_path, event.stage, event.message)
        return
    if isinstance(event, DocsChosen):
        keys = [to_partition_key(doc_id) for doc_id in event.doc_ids]
        context.instance.add_dynamic_partitions(str(DOC_PARTITIONS.name), keys)
        return
    if isinstance(event, DocDeleted):
        context.log.info("%s removed with %d points", event.doc_id, event.point_count)
        return
    materialization = dg.AssetMaterialization(
        event.stage.value,
        partition=to_partition_key(event.doc_id),
        metadata=_metadata(event),
        tags={"dagster/data_version": event.data_version},
    )
    # Writes to the event log, as `context.log_event` does, which also keeps each event in memory
    # until the run ends: a rebuild is one run of all documents.
    step = context.op_execution_context.get_step_execution_context()
    dg.DagsterEvent.asset_materialization(step, materialization)


def _forget_gone(instance: dg.DagsterInstance, environment: IngestionEnvironment) -> None:
    """Delete partitions of documents that are neither in the docs folder nor known to the ledger.

    Whether a run removed them or never knew them: a rebuild begins with an empty ledger, and a page
    may go between the sensor's look and its run.
    """
    name = str(DOC_PARTITIONS.name)
    keys = instance.get_dynamic_partitions(name)  # before the look: a page that comes then is in it
    discovery, plan, _ = scan(environment)
    doc_ids = [doc.doc_id for doc in (*plan.process, *plan.unchanged)]
    known = {to_partition_key(doc_id) for doc_id in (*doc_ids, *plan.delete)}
    for key in keys:
        if key not in known and not discovery.is_hidden(unquote(key)):
            instance.delete_dynamic_partition(name, key)


def _metadata(result: StageResult) -> Mapping[str, dg.MetadataValue[Any] | int | float | str]:
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
