"""The evaluation asset: what Dagster shows of an evaluation, and that its checks hold a run up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.evaluation.book import BookEvaluation
from rag_pipeline.evaluation.gates import GATES, GateBounds, check_gates
from rag_pipeline.evaluation.report_files import write_report
from rag_pipeline.orchestration.jobs import EVALUATE_JOB
from rag_pipeline_tests.evaluation.world import (
    KnowingRetriever,
    LeakingRetriever,
    RaisingRetriever,
    evaluate_world,
)
from rag_pipeline_tests.orchestration.dagster_book import QUIET

if TYPE_CHECKING:
    from pathlib import Path

ASSET = dg.AssetKey("retrieval_evaluation")


def run_job(retriever: KnowingRetriever, folder: Path) -> dg.ExecuteInProcessResult:
    """Materialize the asset as the job does, over an evaluation of the test book."""
    report = evaluate_world(retriever)
    gates = check_gates(report, None, GateBounds())
    evaluation = BookEvaluation(report, gates, write_report(report, folder, gates))
    definitions = build_defs({"evaluate_collection": lambda: evaluation})
    with dg.DagsterInstance.ephemeral() as instance:
        return definitions.resolve_job_def(EVALUATE_JOB.name).execute_in_process(
            run_config=QUIET, instance=instance, raise_on_error=False
        )


def read_checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {one.check_name: one.passed for one in result.get_asset_check_evaluations()}


def test_a_good_evaluation_is_shown_with_its_numbers_and_every_check(tmp_path: Path) -> None:
    result = run_job(KnowingRetriever(), tmp_path)
    assert result.success
    assert read_checks(result) == dict.fromkeys(GATES, True)
    (event,) = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["document_Success_5"].value == 1.0
    assert metadata["section_nDCG_10"].value == 1.0
    assert metadata["report_half_document_Success_5"].value == 1.0
    assert metadata["refusal_recall"].value == metadata["answered"].value == 1.0
    assert metadata["failure_count"].value == 0
    assert metadata["page"].value == str(tmp_path / "report.html")
    assert metadata["report"].value == str(tmp_path / "report.json")
    assert "| section | nDCG@10 |" in str(metadata["measures"].value)
    assert "data:image/png;base64," in str(metadata["scores"].value)
    assert metadata["settings"].value == {"chunk_max_tokens": "800"}
    assert metadata["format_version"].value == 1


@pytest.mark.parametrize(
    ("retriever", "failed"),
    [
        pytest.param(LeakingRetriever(), {"selected_text_leaks"}, id="leaks"),
        pytest.param(RaisingRetriever(), {"success_at_5", "answered", "latency_p95"}, id="raises"),
    ],
)
def test_a_bad_evaluation_fails_the_run_and_is_shown_all_the_same(
    tmp_path: Path, retriever: KnowingRetriever, failed: set[str]
) -> None:
    result = run_job(retriever, tmp_path)
    assert not result.success
    checks = read_checks(result)
    assert set(checks) == set(GATES)
    assert failed <= {name for name, passed in checks.items() if not passed}
    assert len(result.get_asset_materialization_events()) == 1
