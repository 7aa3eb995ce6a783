"""Tests of the evaluation asset: its metadata, its checks, and runs that fail because of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.evaluation.book import BookEvaluation
from rag_pipeline.evaluation.gates import GATES, check_answers, check_gates
from rag_pipeline.evaluation.rendering import write_report
from rag_pipeline.orchestration.evaluating import retrieval_evaluation
from rag_pipeline.orchestration.jobs import EVALUATE_JOB
from rag_pipeline.orchestration.resources import EvaluationResource
from rag_pipeline_tests.end_to_end.command import embed, make_command
from rag_pipeline_tests.evaluation.generated_book import (
    KnowingRetriever,
    RaisingRetriever,
    evaluate_generated_book,
)
from rag_pipeline_tests.evaluation.test_answer_gates import make_good_answers
from rag_pipeline_tests.loopback import serve
from rag_pipeline_tests.orchestration.dagster_book import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline_tests.end_to_end.command import Command

ASSET = dg.AssetKey("retrieval_evaluation")


def run_job(retriever: KnowingRetriever, folder: Path, leaks: int = 0) -> dg.ExecuteInProcessResult:
    """Run the evaluation job with an evaluation of the test corpus by the given retriever."""
    report, answers = evaluate_generated_book(retriever), make_good_answers()
    answers = replace(answers, selected_text=replace(answers.selected_text, leak_count=leaks))
    gates = check_gates(report, None) + check_answers(answers)
    write_report(report, folder, gates, answers)
    evaluation = BookEvaluation(report, gates, folder, answers)

    class Evaluated(EvaluationResource):
        def evaluate(self) -> BookEvaluation:
            return evaluation

    definitions = build_defs({"evaluation": Evaluated()})
    with dg.DagsterInstance.ephemeral() as instance:
        return definitions.resolve_job_def(EVALUATE_JOB.name).execute_in_process(
            run_config=QUIET, instance=instance, raise_on_error=False
        )


def read_checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """Return whether each asset check of the run passed, by check name."""
    return {one.check_name: one.passed for one in result.get_asset_check_evaluations()}


def test_a_good_evaluation_has_its_numbers_as_metadata_and_passes_every_check(
    tmp_path: Path,
) -> None:
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
    assert metadata["facts_without_model"].value == 0.78
    assert metadata["terms_defined"].value == 0.95
    assert metadata["passages_whole"].value == 1.0
    assert metadata["answer_leaks"].value == 0
    assert metadata["answers"].value == str(tmp_path / "answers.json")
    assert metadata["page"].value == str(tmp_path / "report.html")
    assert metadata["report"].value == str(tmp_path / "report.json")
    assert "| section | nDCG@10 |" in str(metadata["measures"].value)
    assert metadata["settings"].value == {"chunk_max_tokens": "800"}
    assert metadata["format_version"].value == 1


@pytest.mark.parametrize(
    ("retriever", "leaks", "failed"),
    [
        pytest.param(KnowingRetriever(), 1, {"answer_leaks"}, id="leaks"),
        pytest.param(
            RaisingRetriever(), 0, {"success_at_5", "answered", "latency_p95"}, id="raises"
        ),
    ],
)
def test_a_bad_evaluation_fails_the_run_and_is_materialized_nevertheless(
    tmp_path: Path, retriever: KnowingRetriever, leaks: int, failed: set[str]
) -> None:
    result = run_job(retriever, tmp_path, leaks)
    assert not result.success
    checks = read_checks(result)
    assert set(checks) == set(GATES)
    assert failed <= {name for name, passed in checks.items() if not passed}
    assert len(result.get_asset_materialization_events()) == 1


def test_the_automation_evaluates_at_four_if_the_index_changed_since_the_last_evaluation() -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    index, evaluation = "book_index", ASSET.to_user_string()
    steps: list[tuple[int, int, list[str], int]] = [
        (0, 1, [], 0),
        (0, 4, [], 0),  # there is no index
        (0, 5, [index], 0),
        (1, 4, [], 1),
        (1, 5, [evaluation], 0),
        (2, 4, [], 0),  # the index did not change
        (2, 5, [index], 0),
        (3, 4, [], 1),
        (3, 5, [index, evaluation], 0),  # the index changed during the evaluation
        (4, 4, [], 1),
    ]
    cursor = None
    with dg.DagsterInstance.ephemeral() as instance:
        for day, hour, updated, requested in steps:
            for changed in updated:
                instance.report_runless_asset_event(dg.AssetMaterialization(changed))
            result = dg.evaluate_automation_conditions(
                build_defs(),
                instance,
                asset_selection=dg.AssetSelection.assets(ASSET),
                evaluation_time=midnight + timedelta(days=day, hours=hour, minutes=1),
                cursor=cursor,
            )
            cursor = result.cursor
            assert result.total_requested == requested, (day, hour)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Ingest a small book by command, with a local embedding service that hashes words."""
    with serve(embed) as server:
        command = make_command(tmp_path_factory.mktemp("book"), server.url)
        outcome = command.run("ingest")
        assert outcome.code == 0, outcome
        yield command


def ask_about_each_section() -> list[dict[str, Any]]:
    """Return golden set entries, two for each of five sections of the small book."""
    sections = {
        "Start": ("intro.md", 10),
        "Why": ("intro.md", 21),
        "Two": ("module-1/large.md", 42),
        "Three": ("module-1/large.md", 53),
        "Alone": ("module-1/small page.md", 61),
    }
    return [
        {
            "id": f"{heading}-{number}",
            "question": f"{words} robot {robot} {words}",
            "expected": [{"doc_path": doc_path, "section_heading": heading}],
        }
        for heading, (doc_path, robot) in sections.items()
        for number, words in enumerate(("by rule moves", "rule of"))
    ]


def evaluate_for_real(
    book: Command, queries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> dg.ExecuteInProcessResult:
    """Materialize the asset for the ingested book, with the real evaluator of the definitions."""
    test_set = book.root / "questions.json"
    test_set.write_text(json.dumps({"queries": queries}), "utf-8")
    monkeypatch.chdir(book.root)
    for name, value in book.environment.items():
        monkeypatch.setenv(name, value)
    with dg.DagsterInstance.ephemeral() as instance:
        return dg.materialize(
            [retrieval_evaluation],
            resources={"evaluation": EvaluationResource(test_set=str(test_set))},
            instance=instance,
            run_config=QUIET,
            raise_on_error=False,
        )


def test_the_real_evaluator_passes_the_gates_of_a_small_book(
    ingested: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = evaluate_for_real(ingested, ask_about_each_section(), monkeypatch)
    assert result.success
    checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert set(checks) == set(GATES)
    assert all(check.passed for check in checks.values())
    assert checks["success_at_5"].metadata["value"].value == 1.0
    assert str(checks["refusal_recall"].metadata["verdict"].value).startswith("not measured: ")
    (event,) = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["document_Success_5"].value == 1.0
    assert metadata["failure_count"].value == 0
    assert metadata["latency_p95"].value > 0  # type: ignore[operator]  # a number
    report = json.loads(Path(str(metadata["report"].value)).read_text("utf-8"))
    assert [one["query_id"] for one in report["questions"]][:2] == ["Start-0", "Start-1"]
    assert Path(str(metadata["page"].value)).read_text("utf-8").startswith("<!doctype html>")


def test_the_real_evaluator_fails_the_run_when_a_gate_fails(
    ingested: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [
        one | {"expected": []} for one in ask_about_each_section()
    ]  # the book answers them, so expecting a refusal is wrong
    result = evaluate_for_real(ingested, queries, monkeypatch)
    assert not result.success
    checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert set(checks) == set(GATES)
    failed = {name for name, check in checks.items() if not check.passed}
    assert {"success_at_5", "refusal_recall"} <= failed
    verdict = str(checks["refusal_recall"].metadata["verdict"].value)
    assert verdict.startswith("failed: the share of unanswerable questions that were refused is 0.")
    assert len(result.get_asset_materialization_events()) == 1
