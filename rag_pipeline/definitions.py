"""The Dagster code location: all assets, checks, jobs, sensors, schedules and resources."""

import os
from collections.abc import Mapping

import dagster as dg

from rag_pipeline.orchestration import jobs
from rag_pipeline.orchestration.checks import document_checks, store_matches_ledger
from rag_pipeline.orchestration.evaluating import (
    answer_feedback,
    retrieval_evaluation,
    unanswered_questions,
)
from rag_pipeline.orchestration.ingesting import book_index, document_assets
from rag_pipeline.orchestration.resources import (
    EvaluationResource,
    IngestionResource,
    QuestionLogResource,
)


def build_defs(
    resource_overrides: Mapping[str, object] | None = None, *, sensor_interval_s: int = 30
) -> dg.Definitions:
    """Return the Dagster definitions of the project.

    The call opens nothing, and reads only the setting ASSET_OWNERS. The other settings are read
    when a run or a sensor first needs them.

    Args:
        resource_overrides: Resources by name that replace the default ones. The `ingest` command
            and tests use this.
        sensor_interval_s: Seconds between two ticks of the sensor `docs_changes`.
    """
    owners = [it.strip() for it in os.environ.get("ASSET_OWNERS", "").split(",") if it.strip()]
    return dg.Definitions(
        assets=dg.map_asset_specs(
            lambda spec: spec.replace_attributes(owners=owners),
            [
                document_assets,
                book_index,
                retrieval_evaluation,
                answer_feedback,
                unanswered_questions,
            ],
        ),
        asset_checks=[document_checks, store_matches_ledger],
        jobs=[jobs.INGEST_JOB, jobs.AUDIT_JOB, jobs.EVALUATE_JOB, jobs.FEEDBACK_JOB],
        sensors=[jobs.build_docs_sensor(sensor_interval_s), jobs.DAILY_EVALUATION],
        schedules=[jobs.NIGHTLY_RECONCILIATION, jobs.NIGHTLY_AUDIT, jobs.DAILY_FEEDBACK],
        resources={
            "ingestion": IngestionResource(),
            "evaluation": EvaluationResource(),
            "question_log": QuestionLogResource(),
            **(resource_overrides or {}),
        },
        executor=dg.in_process_executor,
    )


defs = build_defs()
