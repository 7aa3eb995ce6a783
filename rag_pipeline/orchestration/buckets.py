"""The materializations of a run over buckets: one for each bucket and stage, with totals."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import dagster as dg
import pydantic

from rag_pipeline.core.buckets import BUCKET_COUNT, bucket_of
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.ingestion.events import DocDeleted, IngestionEvent, StageDone
from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration.event_log import store_together
from rag_pipeline.orchestration.resources import IngestionResource

BUCKET_PARTITIONS: Final = dg.StaticPartitionsDefinition(
    [f"{bucket:03}" for bucket in range(BUCKET_COUNT)]
)
"""One partition per bucket. With a lower BUCKET_COUNT only the first ones are used."""


_NAMED_FAILURES = 20
_SUMMED = (
    "chunk_count",
    "chunks_created",
    "chunks_updated",
    "chunks_unchanged",
    "chunks_deleted",
    "texts_embedded",
    "embeddings_reused",
    "duration_s",
)


class BucketConfig(dg.Config):
    """Run config of a worker: the buckets to index, and the state of the book in the plan."""

    buckets: list[int] = pydantic.Field(
        default_factory=list, description="Numbers of the buckets. Empty: that of the partition."
    )
    bucket_count: int = pydantic.Field(default=0, description="Number of buckets of the book.")
    snapshot: str = pydantic.Field(
        default="",
        description=(
            "Hash of the documents in these buckets, as the coordinator saw them. A worker with "
            "other documents refuses the run. Empty: plan from the worker's own docs folder."
        ),
    )
    fingerprint: str = pydantic.Field(
        default="", description="Hash of the settings that affect chunks, payloads or vectors."
    )
    collection_id: str = pydantic.Field(default="", description="Id of the collection to write to.")
    delete_ids: list[str] = pydantic.Field(
        default_factory=list, description="Documents to remove if their files no longer exist."
    )

    def to_work(self) -> BucketWork:
        """Return the work that the config describes."""
        return BucketWork(
            tuple(self.buckets),
            self.bucket_count,
            self.snapshot,
            self.fingerprint,
            self.collection_id,
            tuple(self.delete_ids),
        )


def make_config(work: BucketWork) -> dict[str, Any]:
    """Return the run config of a worker, for its op."""
    return BucketConfig(
        buckets=list(work.buckets),
        bucket_count=work.bucket_count,
        snapshot=work.snapshot,
        fingerprint=work.fingerprint,
        collection_id=work.collection_id,
        delete_ids=list(work.delete_ids),
    ).model_dump()


@dataclass(slots=True)
class _StageTotals:
    """The totals of one stage over the documents of a bucket."""

    versions: dict[str, str] = field(default_factory=dict)
    counts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


class BucketTotals:
    """The totals of a run by bucket and stage, from which its materializations are made.

    Args:
        work: The buckets of the run.
    """

    def __init__(self, work: BucketWork) -> None:
        self._work = work
        self._stages = defaultdict[tuple[int, Stage], _StageTotals](_StageTotals)
        self._failed = defaultdict[int, list[DocFailure]](list)
        self._deleted = defaultdict[int, int](int)

    def add(self, event: IngestionEvent) -> None:
        """Add an event of the run to the totals of its bucket."""
        if isinstance(event, StageDone):
            bucket = bucket_of(event.doc_id, self._work.bucket_count)
            totals = self._stages[bucket, event.stage]
            totals.versions[event.doc_id] = event.data_version
            for name in _SUMMED:
                totals.counts[name] += float(event.counts.get(name, 0))
        elif isinstance(event, DocFailure):
            self._failed[bucket_of(event.doc_path, self._work.bucket_count)].append(event)
        elif isinstance(event, DocDeleted):
            self._deleted[bucket_of(event.doc_id, self._work.bucket_count)] += 1

    def describe_failures(self) -> Iterator[str]:
        """Yield one message per bucket with failed documents, which names the first 20 of them."""
        for bucket, failed in sorted(self._failed.items()):
            named = [
                f"{each.doc_path} failed in {each.stage}: {each.message}"
                for each in failed[:_NAMED_FAILURES]
            ]
            rest = len(failed) - len(named)
            named += [f"and {rest} more, which the ledger lists"] if rest else []
            yield f"bucket {bucket:03}: {len(failed)} failed\n" + "\n".join(named)

    def make_materializations(self) -> Iterator[dg.AssetMaterialization]:
        """Yield one materialization per bucket and stage."""
        for bucket in self._work.buckets:
            for stage in Stage:
                totals = self._stages[bucket, stage]
                yield dg.AssetMaterialization(
                    bucket_asset_key(stage),
                    partition=f"{bucket:03}",
                    metadata=self._describe(bucket, totals),
                    tags={"dagster/data_version": _hash(totals.versions)},
                )

    def _describe(self, bucket: int, totals: _StageTotals) -> Mapping[str, Any]:
        failed = self._failed[bucket]
        numbers: dict[str, Any] = {
            "doc_count": len(totals.versions),
            "failed_doc_count": len(failed),
            "deleted_doc_count": self._deleted[bucket],
        }
        numbers |= {name: value for name, value in totals.counts.items() if value}
        if failed:
            names = [each.doc_path for each in failed[:_NAMED_FAILURES]]
            numbers["failed_docs"] = ", ".join(names)
        return numbers


def run_work(
    context: dg.OpExecutionContext, work: BucketWork, ingestion: IngestionResource
) -> IngestionReport:
    """Index some buckets, log one materialization per bucket and stage, and return the report.

    The number of events in Dagster's log does not depend on the number of documents.
    """
    report, totals = IngestionReport(), BucketTotals(work)
    try:
        with closing(ingestion.index_buckets(work, context.run_id)) as events:
            for event in events:
                report.add(event)
                totals.add(event)
    finally:
        for message in totals.describe_failures():
            context.log.error(message)
    step = context.get_step_execution_context()
    with store_together(context.instance):
        for materialization in totals.make_materializations():
            dg.DagsterEvent.asset_materialization(step, materialization)
    return report


def tag_report(report: IngestionReport) -> dict[str, str]:
    """Return the main counts of an ingestion report as Dagster run tags."""
    return {
        "docs_processed": str(report.docs_processed),
        "docs_failed": str(report.docs_failed),
        "texts_embedded": str(report.texts_embedded),
    }


def bucket_asset_key(stage: Stage) -> dg.AssetKey:
    """Return the key of a stage's asset that has one partition per bucket."""
    return dg.AssetKey(["buckets", stage.value])


def _hash(versions: Mapping[str, str]) -> str:
    lines: Iterable[str] = (
        f"{doc_id}\0{version}\n" for doc_id, version in sorted(versions.items())
    )
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]
