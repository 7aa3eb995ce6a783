"""Tests of the assets that report on the question log."""

from __future__ import annotations

import dagster as dg
import pytest

from rag_pipeline.core.protocols.question_log import Rating
from rag_pipeline.definitions import build_defs
from rag_pipeline.evaluation.feedback.book import LogEntries
from rag_pipeline.evaluation.feedback.unanswered import UnansweredReport
from rag_pipeline.orchestration.jobs import FEEDBACK_JOB
from rag_pipeline_tests.adapters.question_log.databases import NOW, make_logged
from rag_pipeline_tests.orchestration.dagster_book import QUIET


def run_job(entries: LogEntries | None) -> dict[str, dict[str, object]]:
    """Run the feedback job and return the metadata of each asset."""
    report = UnansweredReport(1, {"not_covered: not_covered": 1}, 1, ())
    definitions = build_defs(
        {"read_question_log": lambda: entries, "group_unanswered": lambda _: report}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def(FEEDBACK_JOB.name).execute_in_process(
            run_config=QUIET, instance=instance
        )
    return {
        str(event.asset_key and event.asset_key.to_user_string()): {
            name: value.value for name, value in event.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
    }


def test_the_reports_are_in_the_metadata() -> None:
    metadata = run_job(LogEntries((make_logged(),), (Rating("a1", NOW, 5),)))
    assert metadata["answer_feedback"]["rating_count"] == 1
    assert metadata["answer_feedback"]["helpful_share"] == 1.0
    assert "**SC-005**" in str(metadata["answer_feedback"]["report"])
    assert metadata["unanswered_questions"]["unanswered_count"] == 1


@pytest.mark.parametrize(
    ("entries", "message"), [(None, "no question log"), (LogEntries((), ()), "is empty")]
)
def test_a_missing_or_empty_log_is_explained(entries: LogEntries | None, message: str) -> None:
    metadata = run_job(entries)
    assert set(metadata) == {"answer_feedback", "unanswered_questions"}
    assert all(message in str(values["report"]) for values in metadata.values())
