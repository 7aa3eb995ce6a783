"""The ingestion assets: five per document, one for each stage, and one for the whole index.

The five assets have a partition per document. A run of selected partitions indexes these documents.
`book_index` has no partitions. Its run, the job `ingest`, indexes what changed or what its run
config lists. All runs report each document in the same way: see `reporting`.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import dagster as dg

from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import RunPlanned
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration.checks import reconcile
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.partitions import (
    CODE_VERSION,
    DOC_PARTITIONS,
    read_selected_keys,
    remove_partitions,
    to_doc_id,
)
from rag_pipeline.orchestration.reporting import DocReports, summarize
from rag_pipeline.orchestration.resources import IngestConfig, Ingestion, refuse_fields

BOOK_INDEX = "book_index"
"""Name of the asset that stands for the whole index."""

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
            code_version=CODE_VERSION,
            kinds={"qdrant"} if stage is Stage.POINTS else {"python"},
        )
        for place, stage in enumerate(stages)
    ]


@dg.multi_asset(
    specs=_specs(),
    backfill_policy=dg.BackfillPolicy.single_run(),
    name="documents",
)
def document_assets(
    context: dg.AssetExecutionContext, ingestion: dg.ResourceParam[Ingestion]
) -> Iterator[Any]:
    """Index the documents of the selected partitions, even if they are unchanged.

    Raises:
        dagster.Failure: At least one document failed; the other documents are indexed.
    """
    keys = read_selected_keys(context.run, context.instance)
    request = IngestionRequest(tuple(str(to_doc_id(key)) for key in keys))
    _ingest(context, ingestion, request, repeats=True)
    yield from ()


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            BOOK_INDEX,
            deps=[Stage.POINTS.value],
            skippable=True,
            group_name="ingestion",
            description=(
                "The whole search index. Materialize it to index what changed in the docs folder. "
                "It has a new version only if a document changed. Of a book with more than "
                "DOC_PARTITIONS_LIMIT documents, it is the only record; such a book has no "
                "partitions."
            ),
            code_version=CODE_VERSION,
            kinds={"qdrant"},
        )
    ],
    name="ingestion",
)
def book_index(
    context: dg.AssetExecutionContext,
    config: IngestConfig,
    ingestion: dg.ResourceParam[Ingestion],
) -> Iterator[Any]:
    """Index what the run config says; by default every new, changed or deleted document.

    Raises:
        dagster.Failure: At least one document failed; the other documents are indexed.
    """
    _ingest(context, ingestion, read_request(config))
    yield from ()


def read_request(config: IngestConfig) -> IngestionRequest:
    """Return the ingestion request of a run config.

    Raises:
        ConfigurationError: The config sets fields that would have no effect in this run.
    """
    if config.doc_ids is None:
        refuse_fields(config, {"delete_ids", "rewrite", "plan"}, "without doc_ids")
        return IngestionRequest(rebuild=config.rebuild, reread=config.reread)
    refuse_fields(config, {"rebuild", "reread"}, "with doc_ids")
    return IngestionRequest(
        tuple(config.doc_ids), tuple(config.delete_ids), rewrite=config.rewrite, plan=config.plan
    )


def _ingest(
    context: dg.AssetExecutionContext,
    ingestion: Ingestion,
    request: IngestionRequest,
    *,
    repeats: bool = False,
) -> None:
    """Run an ingestion, and report each document and the whole index to Dagster.

    With `repeats`, outputs that are as Dagster shows them already are recorded again.
    """
    begin_run(context.instance, context.run.run_id, ingestion.context.services.run_locks)
    report = IngestionReport()
    planned: RunPlanned | None = None
    docs: DocReports | None = None
    with closing(ingestion.run(request, context.run.run_id)) as events:
        for event in events:
            report.add(event)
            if docs is not None:
                docs.add(event)
            elif isinstance(event, RunPlanned):
                planned = event
                if not _is_summarized(ingestion, event):
                    docs = DocReports(context, event.doc_ids, repeats=repeats)
    if docs is not None:
        docs.end()
        # The plan is older than what other runs have indexed meanwhile.
        reconcile(context.instance, ingestion.context, scan_docs(ingestion.context))
    elif planned is not None:
        remove_partitions(context.instance, planned.scan, ())
    if report.docs_processed or report.docs_deleted or report.docs_failed:
        context.log_event(dg.AssetMaterialization(BOOK_INDEX, metadata=summarize(report)))
    if report.failures:
        raise dg.Failure(
            description=f"{report.docs_failed} document(s) failed; all other documents are indexed",
            metadata={failure.doc_path: failure.message for failure in report.failures},
            allow_retries=False,
        )


def _is_summarized(ingestion: Ingestion, planned: RunPlanned) -> bool:
    """Return True if the book has too many documents for a partition each."""
    limit = ingestion.context.settings.doc_partitions_limit
    return len(planned.scan.discovery.docs) > limit
