"""Gates: the good retriever passes all, each bad one fails the gate made for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import BaselineRefusedError
from rag_pipeline.evaluation.gates import GATES, GateBounds, check_gates
from rag_pipeline.evaluation.rendering import render_text
from rag_pipeline.evaluation.report_files import accept, load_baseline
from rag_pipeline_tests.evaluation.world import (
    GOLDEN,
    ConstantRetriever,
    KnowingRetriever,
    LeakingRetriever,
    RaisingRetriever,
    RandomRetriever,
    ReversedRetriever,
    ThresholdGrounder,
    evaluate_world,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import Baseline, EvaluationReport
    from rag_pipeline.evaluation.runner import Retriever
    from rag_pipeline.retrieval import Query, RetrievalResult, ScoredChunk

LOSS_GATES = {"no_loss_document_success_at_5", "no_loss_section_ndcg_at_10"}
SUCCESS_GATE = "success_at_5"


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    return accept(evaluate_world(KnowingRetriever()), tmp_path / "baseline.json")


def find_failed(report: EvaluationReport, baseline: Baseline | None = None) -> set[str]:
    gates = check_gates(report, baseline, GateBounds())
    assert [gate.name for gate in gates] == list(GATES)
    assert all(gate.sentence for gate in gates)
    return {gate.name for gate in gates if not gate.passed}


def test_a_retriever_that_knows_passes_every_gate(baseline: Baseline) -> None:
    assert find_failed(evaluate_world(KnowingRetriever()), baseline) == set()


@pytest.mark.parametrize(
    "retriever",
    [RandomRetriever(), ReversedRetriever(), ConstantRetriever()],
    ids=["random", "reversed", "constant"],
)
def test_a_bad_ranking_fails_by_level_and_by_loss(retriever: Retriever, baseline: Baseline) -> None:
    failed = find_failed(evaluate_world(retriever), baseline)
    assert {SUCCESS_GATE, *LOSS_GATES} <= failed
    assert "selected_text_leaks" not in failed


def test_a_retriever_that_leaks_fails_by_its_leaks_alone(baseline: Baseline) -> None:
    report = evaluate_world(LeakingRetriever())
    assert find_failed(report, baseline) == {"selected_text_leaks"}
    assert report.selected_text.leak_count == len(GOLDEN.selected_text)


def test_a_selected_text_mode_that_returns_nothing_fails_though_it_leaks_nothing() -> None:
    class Mute(KnowingRetriever):
        def select(self, query: Query) -> tuple[ScoredChunk, ...]:
            del query
            return ()

    assert find_failed(evaluate_world(Mute())) == {"selected_text_judged"}


def test_a_retriever_that_raises_fails_everything_and_skips_nothing(baseline: Baseline) -> None:
    report = evaluate_world(RaisingRetriever())
    assert find_failed(report, baseline) >= {
        SUCCESS_GATE,
        *LOSS_GATES,
        "refusal_recall",
        "refusal_precision",
        "answered",
        "selected_text_leaks",
        "selected_text_judged",
        "latency_p95",
    }
    assert report.failure_count == len(GOLDEN.queries) + len(GOLDEN.selected_text)
    assert len(report.questions) == len(GOLDEN.queries)
    assert all("ConnectionError: no store for" in (one.error or "") for one in report.questions)


def test_a_policy_that_never_refuses_fails_by_refusals() -> None:
    report = evaluate_world(KnowingRetriever(), ThresholdGrounder(0.0))
    assert find_failed(report) == {"refusal_recall", "refusal_precision"}


def test_a_policy_that_always_refuses_fails_by_precision_and_by_what_it_answers() -> None:
    report = evaluate_world(KnowingRetriever(), ThresholdGrounder(2.0))
    assert find_failed(report) == {"refusal_precision", "answered", "selected_text_judged"}
    assert report.refusal["all"].answered is not None
    assert report.refusal["all"].answered.mean == 0


def test_slow_retrieval_fails_by_latency() -> None:
    report = evaluate_world(KnowingRetriever())
    slow = replace(report, latency=replace(report.latency, p95_ms=5001.0))
    assert find_failed(slow) == {"latency_p95"}


@pytest.mark.parametrize(("failing", "passed"), [(3, True), (4, False)])
def test_a_failure_is_slower_than_any_answer(failing: int, *, passed: bool) -> None:
    lost = {one.question for one in GOLDEN.queries[:failing]}

    class TimingOut(KnowingRetriever):
        def retrieve(self, query: Query) -> RetrievalResult:
            if query.question in lost:
                raise TimeoutError(query.question)
            return super().retrieve(query)

    report = evaluate_world(TimingOut())  # of 60 questions, 3 are 5%
    assert ("latency_p95" not in find_failed(report)) is passed
    assert (report.latency.p95_ms is not None) is passed
    assert report.latency.p50_ms is not None
    assert ("p95 none, too many failed" in render_text(report)) is not passed


def test_too_few_questions_to_show_a_loss_are_said_and_so_are_those_left_out(
    baseline: Baseline,
) -> None:
    golden = replace(GOLDEN, queries=GOLDEN.queries[:5])
    report = evaluate_world(ReversedRetriever(), golden=golden)
    losses = {
        gate.name: gate
        for gate in check_gates(report, baseline, GateBounds())
        if gate.name in LOSS_GATES
    }
    assert len(losses) == 2
    for gate in losses.values():
        assert gate.verdict == "not measured"
        assert gate.sentence.endswith(
            "; fewer than 6 questions cannot show one; 43 accepted questions are not in this "
            "golden set any more"
        )


def test_a_set_without_answerable_questions_passes_no_success_gate() -> None:
    golden = replace(GOLDEN, queries=tuple(one for one in GOLDEN.queries if not one.expected))
    assert find_failed(evaluate_world(KnowingRetriever(), golden=golden)) == {SUCCESS_GATE}


def test_a_set_of_answerable_questions_alone_passes_and_says_what_was_not_measured() -> None:
    golden = replace(
        GOLDEN, queries=tuple(one for one in GOLDEN.queries if one.expected), selected_text=()
    )
    report = evaluate_world(KnowingRetriever(), golden=golden)
    assert find_failed(report) == set()
    unmeasured = {
        gate.name for gate in check_gates(report, None, GateBounds()) if gate.value is None
    }
    assert unmeasured == {
        "refusal_recall",
        "refusal_precision",
        "selected_text_leaks",
        "selected_text_judged",
        "success_at_5_report_half",
        *LOSS_GATES,
    }


def test_five_questions_lost_are_chance_and_six_are_not(baseline: Baseline) -> None:
    report = evaluate_world(KnowingRetriever())

    def lose(count: int) -> EvaluationReport:
        questions = list(report.questions)
        for at in range(count):
            scores = {level: dict(values) for level, values in questions[at].scores.items()}
            scores["document"]["Success@5"] = 0.0
            questions[at] = replace(questions[at], scores=scores)
        return replace(report, questions=tuple(questions))

    assert find_failed(lose(5), baseline) == set()
    assert find_failed(lose(6), baseline) == {"no_loss_document_success_at_5"}


def test_a_gain_passes(tmp_path: Path) -> None:
    worse = accept(evaluate_world(RandomRetriever()), tmp_path / "baseline.json")
    assert find_failed(evaluate_world(KnowingRetriever()), worse) == set()


def test_a_reworded_question_is_not_compared(baseline: Baseline) -> None:
    golden = replace(GOLDEN, queries=tuple(replace(one, category="fact") for one in GOLDEN.queries))
    report = evaluate_world(KnowingRetriever(), golden=golden)
    assert len(baseline.pair_with(report, "document", "Success@5")) == 48
    reworded = replace(
        report,
        questions=tuple(
            replace(one, question_hash=f"new {one.query_id}") for one in report.questions
        ),
    )
    assert baseline.pair_with(reworded, "document", "Success@5") == []


def test_a_baseline_reads_back_as_it_was_accepted(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "baseline.json"
    assert load_baseline(path) is None
    accepted = accept(evaluate_world(KnowingRetriever()), path)
    assert load_baseline(path) == accepted


def test_a_result_with_failures_is_no_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    with pytest.raises(BaselineRefusedError, match=r"66 questions or cases failed .*no store for"):
        accept(evaluate_world(RaisingRetriever()), path)
    assert load_baseline(path) is None
