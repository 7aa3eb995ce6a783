"""The ingestion assets of large books, with one partition per bucket instead of per document.

The same stages run as in `assets.ingestion`. Details of single documents are in the ledger.
"""

from collections.abc import Iterator

import dagster as dg

from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.parallel.planning import BucketWork, plan_bucket, scan_collection
from rag_pipeline.orchestration.buckets import (
    BUCKET_PARTITIONS,
    BucketConfig,
    bucket_asset_key,
    run_work,
    tag_report,
)
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.run_life import begin_run


def _specs() -> list[dg.AssetSpec]:
    stages = list(Stage)
    return [
        dg.AssetSpec(
            bucket_asset_key(stage),
            deps=[bucket_asset_key(stages[place - 1])] if place else [],
            partitions_def=BUCKET_PARTITIONS,
            skippable=True,
            group_name="buckets",
            description=f"The stage {stage.value} of the documents of one bucket (large books).",
            kinds={"qdrant"} if stage is Stage.POINTS else {"python"},
        )
        for place, stage in enumerate(stages)
    ]


@dg.multi_asset(specs=_specs(), name="bucket_ingestion")
def bucket_assets(
    context: dg.AssetExecutionContext,
    config: BucketConfig,
    ingestion: dg.ResourceParam[IngestionResource],
) -> Iterator[dg.AssetMaterialization]:
    """Index the documents of one bucket: its new and changed documents, and what is gone.

    A failed document is recorded in the ledger and does not fail the run.
    """
    begin_run(context.instance, context.run.run_id, ingestion.context.services.run_locks)
    work = _read_work(context, config, ingestion)
    report = run_work(context.op_execution_context, work, ingestion)
    context.instance.add_run_tags(context.run.run_id, tag_report(report))
    yield from ()


def _read_work(
    context: dg.AssetExecutionContext, config: BucketConfig, ingestion: IngestionResource
) -> BucketWork:
    """Return the work of a run; without a plan in the config, plan from the own docs folder."""
    if config.snapshot:
        return config.to_work()
    bucket = int(context.partition_key)
    return plan_bucket(ingestion.context, scan_collection(ingestion.context), bucket)
