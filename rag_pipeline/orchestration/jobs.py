"""Jobs and schedules over the assets."""

from typing import Final

import dagster as dg

from rag_pipeline.core.models import Stage

INGEST_JOB: Final = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(*(stage.value for stage in Stage)),
    description=(
        "Index the documents named in the run config or the chosen partitions; without either, "
        "whatever changed in the docs folder since it was last indexed."
    ),
)
"""Started by the command line, the sensor, the schedule and the UI."""

EVALUATE_JOB: Final = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.groups("evaluation"),
    description="Put the golden set to the collection in use; its checks gate a release.",
)

NIGHTLY_RECONCILIATION: Final = dg.ScheduleDefinition(
    name="nightly_reconciliation",
    job=INGEST_JOB,
    cron_schedule="0 3 * * *",
    run_config={"ops": {"ingestion": {"config": {"reread": True}}}},
    description=(
        "Read every document again, even where size and time of its file say that it is unchanged, "
        "and index what differs."
    ),
)
