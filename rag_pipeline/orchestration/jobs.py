"""The Dagster jobs and schedules."""

from typing import Final

import dagster as dg

from rag_pipeline.orchestration.checks import store_matches_ledger
from rag_pipeline.orchestration.partitions import BOOK_INDEX

_AUDIT = dg.AssetSelection.checks(store_matches_ledger)

INGEST_JOB: Final = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(BOOK_INDEX).without_checks(),
    description=(
        "Index the documents that the run config names. By default, index everything in the docs "
        "folder that changed since the last run."
    ),
)
"""The ingestion job, which the command line, the sensor, the schedule and the UI start."""

EVALUATE_JOB: Final = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.groups("evaluation"),
    description="Measure retrieval with the golden set. The asset checks are the quality gates.",
)

AUDIT_JOB: Final = dg.define_asset_job(
    "audit",
    selection=_AUDIT,
    description="Check that the store contains exactly what was indexed. Writes nothing.",
)

FEEDBACK_JOB: Final = dg.define_asset_job(
    "feedback",
    selection=dg.AssetSelection.groups("feedback"),
    description="Report the ratings and the unanswered questions of the question log.",
)

NIGHTLY_RECONCILIATION: Final = dg.ScheduleDefinition(
    name="nightly_reconciliation",
    job=INGEST_JOB,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    run_config={"ops": {"ingestion": {"config": {"reread": True}}}},
    description=(
        "Read every document again, even if the size and time of its file are unchanged, and index "
        "the documents whose content changed."
    ),
)

NIGHTLY_AUDIT: Final = dg.ScheduleDefinition(
    name="nightly_audit",
    job=AUDIT_JOB,
    # A schedule starts only one job. The run queue delays the audit until the ingestion has ended.
    cron_schedule="30 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Check after the reconciliation that the store contains exactly what was indexed.",
)

DAILY_FEEDBACK: Final = dg.ScheduleDefinition(
    name="daily_feedback",
    job=FEEDBACK_JOB,
    cron_schedule="0 5 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Report each day what readers think of the answers and what was not answered.",
)

DAILY_EVALUATION: Final = dg.AutomationConditionSensorDefinition(
    name="daily_evaluation",
    target=dg.AssetSelection.groups("evaluation"),
    default_status=dg.DefaultSensorStatus.STOPPED,
    minimum_interval_seconds=300,
    description=(
        "Measure search and answers at 4:00 if the index changed since the last evaluation. It is "
        "off, because questions to an embedding or answer service cost money."
    ),
)
