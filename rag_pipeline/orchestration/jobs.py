"""Jobs and schedules over the assets."""

from typing import Final

import dagster as dg

from rag_pipeline.core.models import Stage
from rag_pipeline.orchestration.store_check import store_matches_ledger

_AUDIT = dg.AssetSelection.checks(store_matches_ledger)

INGEST_JOB: Final = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(*(stage.value for stage in Stage)) - _AUDIT,
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

AUDIT_JOB: Final = dg.define_asset_job(
    "audit",
    selection=_AUDIT,
    description="Compare ledger, artifacts and store of the whole collection; writes nothing.",
)

NIGHTLY_RECONCILIATION: Final = dg.ScheduleDefinition(
    name="nightly_reconciliation",
    job=INGEST_JOB,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    run_config={"ops": {"ingestion": {"config": {"reread": True}}}},
    description=(
        "Read every document again, even where size and time of its file say that it is unchanged, "
        "and index what differs."
    ),
)

NIGHTLY_AUDIT: Final = dg.ScheduleDefinition(
    name="nightly_audit",
    job=AUDIT_JOB,
    cron_schedule="30 3 * * *",  # a schedule has one job; the queue keeps it behind the nightly run
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="After the reconciliation: does the store hold what was indexed, and nothing else?",
)
