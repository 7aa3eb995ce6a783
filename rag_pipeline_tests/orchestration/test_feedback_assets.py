"""Tests of the assets that report on the question log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.protocols import Rating
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline.definitions import build_defs
from rag_pipeline.orchestration.jobs import FEEDBACK_JOB
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged
from rag_pipeline_tests.orchestration.dagster_book import QUIET
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings


def run_job() -> dict[str, dict[str, Any]]:
    """Run the feedback job and return the metadata of each asset."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = (
            build_defs()
            .resolve_job_def(FEEDBACK_JOB.name)
            .execute_in_process(run_config=QUIET, instance=instance)
        )
    return {
        str(event.asset_key and event.asset_key.to_user_string()): {
            name: value.value for name, value in event.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
    }


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a tiny book, which are also the settings of the environment."""
    settings = make_settings(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("docs_dir", "data_dir", "site_base_url"):
        monkeypatch.setenv(name.upper(), str(getattr(settings, name)))
    return settings


def test_a_real_log_and_a_real_index_give_real_reports(settings: Settings) -> None:
    build_collection(settings, make_points(PAGES))
    log = open_question_log(settings)
    question = "How far can a laser scanner measure in fog?"
    log.add_answers([make_logged("a", question=question, level="not_covered"), make_logged("b")])
    log.add_rating(Rating("b", NOW, 4))
    log.close()
    metadata = run_job()
    assert metadata["answer_feedback"]["rating_count"] == 1
    assert metadata["answer_feedback"]["helpful_share"] == 1.0
    assert metadata["unanswered_questions"]["unanswered_count"] == 1
    assert metadata["unanswered_questions"]["grouped_count"] == 1
    assert "worst_sections" not in metadata["answer_feedback"]  # a table without rows
    levels = metadata["answer_feedback"]["levels"]
    assert [record.data["answers"] for record in levels.records] == [1, 1]
    (found,) = metadata["unanswered_questions"]["groups"].records
    assert found.data["question"] == question
    assert "Laser Scanners" in found.data["nearest sections"]


@pytest.mark.parametrize(("days", "message"), [("0", "no question log"), ("90", "is empty")])
def test_without_a_log_nothing_fails(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, days: str, message: str
) -> None:
    monkeypatch.setenv("QUESTION_LOG_DAYS", days)
    metadata = run_job()
    assert set(metadata) == {"answer_feedback", "unanswered_questions"}
    assert all(message in str(values["report"]) for values in metadata.values())
    assert (settings.state_dir / DATABASE_NAME).exists() is (days == "90")
