"""A helper that runs the ingestion job on a small book and reads the result from Dagster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from rag_pipeline.core.models import Stage
from rag_pipeline.orchestration.checks import DOCUMENT_CHECK
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.orchestration.resources import Ingestion
    from rag_pipeline_tests.book import Book

STAGES = tuple(stage.value for stage in Stage)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class DagsterBook:
    """A test book with a Dagster instance, and definitions whose resource uses the book."""

    book: Book
    instance: dg.DagsterInstance
    definitions: dg.Definitions
    resource: Ingestion

    def run(
        self,
        *,
        partition: str | None = None,
        partition_range: tuple[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Run the ingestion job with this config, or the assets of these partitions as the UI does.

        A failed run is returned too.
        """
        if partition is not None or partition_range is not None:
            first, last = partition_range or (partition, partition)
            ends = {"start": str(first), "end": str(last)}
            tags = {f"dagster/asset_partition_range_{end}": key for end, key in ends.items()}
            return self.run_assets(STAGES, tags)
        run_config = QUIET | ({"ops": {"ingestion": {"config": dict(config)}}} if config else {})
        return self.definitions.resolve_job_def(INGEST_JOB.name).execute_in_process(
            run_config=run_config,
            instance=self.instance,
            tags=dict(tags or {}),
            raise_on_error=False,
        )

    def run_assets(
        self, names: Sequence[str], tags: Mapping[str, str] | None = None
    ) -> dg.ExecuteInProcessResult:
        """Materialize assets with all their checks, as the pages of the UI do."""
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            run_config=QUIET,
            instance=self.instance,
            asset_selection=[dg.AssetKey(name) for name in names],
            tags=dict(tags or {}),
            raise_on_error=False,
        )

    def read_verdicts(self, *partitions: str) -> dict[str, str]:
        """Return the verdict that the UI shows for each partition, such as `SUCCEEDED`.

        The UI shows no verdict on an earlier materialization of a partition.
        """
        key = dg.AssetCheckKey(dg.AssetKey("qdrant_points"), DOCUMENT_CHECK)
        storage = self.instance.event_log_storage
        found = storage.get_asset_check_partition_info([key], partition_keys=partitions)
        return {
            str(one.partition_key): one.latest_execution_status.value
            for one in found
            if one.is_current
        }

    def count_events(self) -> int:
        """Return how many outputs and verdicts of documents the last run has recorded."""
        (run,) = self.instance.get_runs(limit=1)
        outputs = dg.DagsterEventType.ASSET_MATERIALIZATION
        verdicts = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        entries = self.instance.all_logs(run.run_id, of_type={outputs, verdicts})
        events = [entry.dagster_event for entry in entries if entry.dagster_event]
        return sum(it.event_type is verdicts or it.partition is not None for it in events)

    @property
    def partitions(self) -> set[str]:
        """The partition keys of all documents that Dagster knows."""
        return set(self.instance.get_dynamic_partitions(str(DOC_PARTITIONS.name)))

    def add_partitions(self, *keys: str) -> None:
        """Add the partitions of documents, as the sensor does."""
        self.instance.add_dynamic_partitions(str(DOC_PARTITIONS.name), list(keys))

    def events(self, asset: str, partition: str) -> list[dg.AssetMaterialization]:
        """Return the materializations of an asset for one document, newest first."""
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[partition]), limit=20
        ).records
        return [record.asset_materialization for record in records if record.asset_materialization]

    def statuses(self, asset: str) -> dict[str, str]:
        """Return the status of each document in Dagster's UI, without documents that never ran."""
        found = self.instance.get_status_by_partition(
            dg.AssetKey(asset), sorted(self.partitions), DOC_PARTITIONS
        )
        return {key: status.value for key, status in (found or {}).items() if status}
