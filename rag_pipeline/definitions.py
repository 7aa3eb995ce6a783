"""The Dagster code location: all assets, checks, jobs, sensors, schedules and resources."""

import os
from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.ingestion.context import IngestionContext
from rag_pipeline.ingestion.site.detection import settle_site
from rag_pipeline.orchestration.assets.evaluation import retrieval_evaluation
from rag_pipeline.orchestration.assets.feedback import answer_feedback, unanswered_questions
from rag_pipeline.orchestration.assets.ingestion import book_index, document_assets
from rag_pipeline.orchestration.checks import document_checks
from rag_pipeline.orchestration.jobs import (
    AUDIT_JOB,
    DAILY_EVALUATION,
    DAILY_FEEDBACK,
    EVALUATE_JOB,
    FEEDBACK_JOB,
    INGEST_JOB,
    NIGHTLY_AUDIT,
    NIGHTLY_RECONCILIATION,
)
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.sensors import build_docs_sensor
from rag_pipeline.orchestration.store_check import store_matches_ledger

_RESOURCES: Final = {
    "ingestion": "The settings and services of the book, and the ingestion that uses them.",
    "evaluate_collection": "Measures search and answers with the golden set of questions.",
    "read_question_log": "Reads the questions, answers and ratings of the question log.",
    "group_unanswered": "Groups the questions that the book did not answer.",
    "write_feedback_page": "Writes the page for authors about the question log.",
}
"""What the Dagster UI says about each resource."""


def build_defs(
    resource_overrides: Mapping[str, Any] | None = None, *, sensor_interval_s: int = 30
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
    resources = {
        "ingestion": IngestionResource(build=_open_ingestion),
        "evaluate_collection": _evaluate,
        "read_question_log": _read_log,
        "group_unanswered": _group_unanswered,
        "write_feedback_page": _write_feedback_page,
    } | dict(resource_overrides or {})
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
        jobs=[INGEST_JOB, AUDIT_JOB, EVALUATE_JOB, FEEDBACK_JOB],
        sensors=[build_docs_sensor(sensor_interval_s), DAILY_EVALUATION],
        schedules=[NIGHTLY_RECONCILIATION, NIGHTLY_AUDIT, DAILY_FEEDBACK],
        resources={name: _provide(name, value) for name, value in resources.items()},
        executor=dg.in_process_executor,
    )


def _provide(name: str, value: object) -> dg.ResourceDefinition:
    """Return the definition of a resource; the UI shows the name of its function."""

    def provide(_: dg.InitResourceContext) -> object:
        return value

    provide.__name__ = name
    return dg.ResourceDefinition(provide, description=_RESOURCES[name])


def _load_book() -> Settings:
    """Read the settings, and the site settings of the docs folder."""
    return settle_site(load_settings())


def _open_ingestion() -> IngestionContext:
    """Read the settings and return the context of an ingestion: the settings and the services."""
    settings = _load_book()
    return IngestionContext(settings, connect_services(settings))


# An ingestion needs neither the evaluation nor the question log, whose imports take half a second.
# ruff: noqa: PLC0415


def _evaluate() -> Any:  # noqa: ANN401  # Dagster's resources have no types
    from rag_pipeline.evaluation.book import evaluate_book

    return evaluate_book(_load_book())


def _read_log() -> Any:  # noqa: ANN401  # see above
    from rag_pipeline.evaluation.feedback import read_log

    return read_log(load_settings())


def _group_unanswered(entries: Any) -> Any:  # noqa: ANN401  # see above
    from rag_pipeline.evaluation.feedback import group_unanswered

    return group_unanswered(load_settings(), entries)


def _write_feedback_page(entries: Any, unanswered: Any) -> Any:  # noqa: ANN401  # see above
    from rag_pipeline.evaluation.feedback import write_page

    return write_page(load_settings(), entries, unanswered)


defs = build_defs()
