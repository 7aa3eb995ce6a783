"""The ingestion assets: five per document, one for each stage, and one for the whole index.

The five assets have a partition per document. A run of selected partitions indexes these documents.
`book_index` has no partitions. Its run, the job `ingest`, indexes what changed or what its run
config lists. All runs report each document in the same way.

Storing an event takes Dagster several milliseconds. A run therefore records an output or a verdict
only if the UI does not show the same already, so that a rebuild of unchanged pages stays fast.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import dagster as dg

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.rules import Finding
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import DocDeleted, IngestionEvent, RunPlanned, StageDone
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration import partitions
from rag_pipeline.orchestration.checks import judge, log_verdict, read_verdicts, reconcile
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.resources import IngestConfig, Ingestion

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
            partitions_def=partitions.DOC_PARTITIONS,
            skippable=True,
            group_name="ingestion",
            description=_DESCRIPTIONS[stage],
            code_version=partitions.CODE_VERSION,
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
    keys = partitions.read_selected_keys(context.run, context.instance)
    request = IngestionRequest(tuple(str(partitions.to_doc_id(key)) for key in keys))
    _ingest(context, ingestion, request, repeats=True)
    yield from ()


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            partitions.BOOK_INDEX,
            deps=[Stage.POINTS.value],
            skippable=True,
            group_name="ingestion",
            description=(
                "The whole search index. Materialize it to index what changed in the docs folder. "
                "It has a new version only if a document changed. Of a book with more than "
                "DOC_PARTITIONS_LIMIT documents, it is the only record; such a book has no "
                "partitions."
            ),
            code_version=partitions.CODE_VERSION,
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
    default, situation, useless = IngestConfig(), "with doc_ids", {"rebuild", "reread"}
    if config.doc_ids is None:
        situation, useless = "without doc_ids", {"delete_ids", "rewrite", "plan"}
    given = [
        name
        for name in IngestConfig.model_fields
        if name in useless and getattr(config, name) != getattr(default, name)
    ]
    if given:
        remedy = "Remove it from the run config, or start a run of its own for it"
        raise ConfigurationError(", ".join(given), f"does not work {situation}", remedy)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config.model_dump().items()
    }
    return IngestionRequest(**values)


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
    docs: DocReports | None = None
    with closing(ingestion.run(request, context.run.run_id)) as events:
        for event in events:
            report.add(event)
            if docs is not None:
                docs.add(event)
            elif isinstance(event, RunPlanned):
                limit = ingestion.context.settings.doc_partitions_limit
                if len(event.scan.discovery.docs) <= limit:  # more have no partitions
                    docs = DocReports(context, event.doc_ids, repeats=repeats)
    if docs is not None:
        docs.end()
    # The plan is older than what other runs have indexed meanwhile.
    reconcile(context.instance, ingestion.context, scan_docs(ingestion.context))
    if report.docs_processed or report.docs_deleted or report.docs_failed:
        context.log_event(
            dg.AssetMaterialization(partitions.BOOK_INDEX, metadata=summarize(report))
        )
    if report.failures:
        raise dg.Failure(
            description=f"{report.docs_failed} document(s) failed; all other documents are indexed",
            metadata={failure.doc_path: failure.message for failure in report.failures},
            allow_retries=False,
        )


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
        self._found: list[tuple[str, tuple[Finding, ...]]] = []
        known = partitions.add_partitions(
            context.instance, map(partitions.to_partition_key, doc_ids)
        )
        if known and not repeats:
            instance = context.instance
            # A failure makes a document red from one stage to the last.
            states = partitions.read_states(instance, Stage.POINTS, known)
            green = [key for key in known if states.get(key) == "MATERIALIZED"]
            for stage in Stage:
                for key, record in partitions.find_newest(instance, stage, green).items():
                    self._shown[stage, key] = partitions.read_version(record)
            self._verdicts = read_verdicts(instance, known)

    def add(self, event: IngestionEvent) -> None:
        """Report an event of the ingestion: a finished stage, a failure or a deletion."""
        context = self._context
        if isinstance(event, DocFailure):
            context.log.error("%s failed in %s: %s", event.doc_path, event.stage, event.message)
            partitions.mark_failed(context.instance, context.run, event)
        elif isinstance(event, DocDeleted):
            context.log.info("%s and its %d points were removed", event.doc_id, event.point_count)
        elif isinstance(event, StageDone):
            self._add_output(event)

    def end(self) -> None:
        """Record the verdicts that are left."""
        for verdict in judge(self._context.instance, self._found):
            log_verdict(self._context, verdict)
        self._found.clear()

    def _add_output(self, done: StageDone) -> None:
        key = partitions.to_partition_key(done.doc_id)
        is_new = self._shown.get((done.stage, key)) != (done.data_version, partitions.CODE_VERSION)
        if is_new:
            # `context.log_event` would also keep each event in memory until the run ends, which is
            # too much for a rebuild: it processes all documents in one run.
            step = self._context.op_execution_context.get_step_execution_context()
            metadata: dict[str, Any] = {**done.counts}
            if "url" in metadata:
                metadata["url"] = dg.MetadataValue.path(metadata["url"])
            event = partitions.materialize(done.stage, key, done.data_version, metadata)
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
            lines += [
                f"- {' '.join(text.split()).replace('<', '&lt;')}"
                for text in texts[:_LISTED_FAILURES]
            ]
    return {**numbers, "report": dg.MetadataValue.md("\n".join(lines))}
