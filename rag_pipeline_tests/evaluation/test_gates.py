"""Quality gates: a perfect retriever passes all gates, and each bad one fails certain gates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import BaselineRefusedError
from rag_pipeline.evaluation.gates import SEARCH_GATES, check_gates
from rag_pipeline.evaluation.pages import to_text
from rag_pipeline.evaluation.rendering import accept, load_baseline
from rag_pipeline_tests.evaluation.generated_book import (
    GOLDEN,
    ConstantRetriever,
    KnowingRetriever,
    RaisingRetriever,
    RandomRetriever,
    ReversedRetriever,
    ThresholdGrounder,
    evaluate_generated_book,
    evaluate_once,
)
from rag_pipeline_tests.evaluation.test_answers import run

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import Baseline, EvaluationReport
    from rag_pipeline.retrieval import Query, RetrievalResult, Retriever

LOSS_GATES = {"no_loss_document_success_at_5", "no_loss_section_ndcg_at_10"}
SUCCESS_GATE = "success_at_5"


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    return accept(evaluate_once(KnowingRetriever), tmp_path / "baseline.json")


def find_failed(report: EvaluationReport, baseline: Baseline | None = None) -> set[str]:
    gates = check_gates(report, baseline)
    assert [gate.name for gate in gates] == list(SEARCH_GATES)
    assert all(gate.sentence for gate in gates)
    return {gate.name for gate in gates if not gate.passed}


def test_a_perfect_retriever_passes_every_gate(baseline: Baseline) -> None:
    assert find_failed(evaluate_once(KnowingRetriever), baseline) == set()


@pytest.mark.parametrize(
    "retriever",
    [RandomRetriever(), ReversedRetriever(), ConstantRetriever()],
    ids=["random", "reversed", "constant"],
)
def test_a_bad_ranking_fails_the_success_and_loss_gates(
    retriever: Retriever, baseline: Baseline
) -> None:
    failed = find_failed(evaluate_generated_book(retriever), baseline)
    assert {SUCCESS_GATE, *LOSS_GATES} <= failed


def test_a_raising_retriever_fails_the_gates_and_skips_no_question(baseline: Baseline) -> None:
    report = evaluate_once(RaisingRetriever)
    assert find_failed(report, baseline) >= {
        SUCCESS_GATE,
        *LOSS_GATES,
        "refusal_recall",
        "refusal_precision",
        "answered",
        "latency_p95",
    }
    assert report.failure_count == len(GOLDEN.queries)
    assert len(report.questions) == len(GOLDEN.queries)
    assert all("connection error: no store for" in (one.error or "") for one in report.questions)


def test_a_policy_that_never_refuses_fails_the_refusal_gates() -> None:
    report = evaluate_generated_book(KnowingRetriever(), ThresholdGrounder(0.0))
    assert find_failed(report) == {"refusal_recall", "refusal_precision"}


def test_a_policy_that_always_refuses_fails_the_precision_and_answer_gates() -> None:
    report = evaluate_generated_book(KnowingRetriever(), ThresholdGrounder(2.0))
    assert find_failed(report) == {"refusal_precision", "answered"}
    assert report.refusal["all"].answered.mean == 0


def test_slow_retrieval_fails_the_latency_gate() -> None:
    report = evaluate_once(KnowingRetriever)
    slow = replace(report, latency=replace(report.latency, p95_ms=5001.0))
    assert find_failed(slow) == {"latency_p95"}


@pytest.mark.parametrize(("failing", "passed"), [(3, True), (4, False)])
def test_a_failed_question_counts_as_slowest(failing: int, *, passed: bool) -> None:
    lost = {one.question for one in GOLDEN.queries[:failing]}

    class TimingOut(KnowingRetriever):
        def retrieve(self, query: Query) -> RetrievalResult:
            if query.question in lost:
                raise TimeoutError(query.question)
            return super().retrieve(query)

    report = evaluate_generated_book(TimingOut())  # 3 of 60 questions are 5%
    assert ("latency_p95" not in find_failed(report)) is passed
    assert (report.latency.p95_ms is not None) is passed
    assert report.latency.p50_ms is not None
    assert (
        "p95 has no value (too many questions failed)" in to_text(report.describe_measures())
    ) is not passed


def test_a_loss_gate_reports_too_few_and_missing_questions(
    baseline: Baseline,
) -> None:
    golden = replace(GOLDEN, queries=GOLDEN.queries[:5])
    report = evaluate_generated_book(ReversedRetriever(), golden=golden)
    losses = {gate.name: gate for gate in check_gates(report, baseline) if gate.name in LOSS_GATES}
    assert len(losses) == 2
    for gate in losses.values():
        assert gate.verdict == "not measured"
        assert gate.sentence.endswith(
            "; fewer than 6 questions cannot show a loss; 43 questions of the baseline are "
            "missing or changed"
        )


def test_a_set_without_answerable_questions_fails_the_success_gate() -> None:
    golden = replace(GOLDEN, queries=tuple(one for one in GOLDEN.queries if not one.expected))
    assert find_failed(evaluate_generated_book(KnowingRetriever(), golden=golden)) == {SUCCESS_GATE}


def test_a_set_of_only_answerable_questions_passes_with_unmeasured_gates() -> None:
    golden = replace(GOLDEN, queries=tuple(one for one in GOLDEN.queries if one.expected))
    report = evaluate_generated_book(KnowingRetriever(), golden=golden)
    assert find_failed(report) == set()
    unmeasured = {gate.name for gate in check_gates(report, None) if gate.value is None}
    assert unmeasured == {
        "refusal_recall",
        "refusal_precision",
        "success_at_5_report_half",
        "follow_ups_found",
        *LOSS_GATES,
    }


def test_a_loss_of_five_questions_passes_and_of_six_fails(baseline: Baseline) -> None:
    report = evaluate_once(KnowingRetriever)

    def lose(count: int) -> EvaluationReport:
        questions = list(report.questions)
        for at in range(count):
            scores = {level: dict(values) for level, values in questions[at].scores.items()}
            scores["document"]["Success@5"] = 0.0
            questions[at] = replace(questions[at], scores=scores)
        return replace(report, questions=tuple(questions))

    assert find_failed(lose(5), baseline) == set()
    assert find_failed(lose(6), baseline) == {"no_loss_document_success_at_5"}


def test_an_improvement_passes(tmp_path: Path) -> None:
    worse = accept(evaluate_once(RandomRetriever), tmp_path / "baseline.json")
    assert find_failed(evaluate_once(KnowingRetriever), worse) == set()


def test_a_reworded_question_is_not_compared(baseline: Baseline) -> None:
    golden = replace(GOLDEN, queries=tuple(replace(one, category="fact") for one in GOLDEN.queries))
    report = evaluate_generated_book(KnowingRetriever(), golden=golden)
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
    accepted = accept(evaluate_once(KnowingRetriever), path)
    assert load_baseline(path) == accepted


def test_a_result_with_failures_cannot_become_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    with pytest.raises(BaselineRefusedError, match=r"60 questions or cases failed .*no store for"):
        accept(evaluate_once(RaisingRetriever), path)
    assert load_baseline(path) is None


def test_a_failed_answer_cannot_become_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    answers = run()
    term = replace(answers.terms[0], error="AnswerError: no")
    failed = replace(answers, terms=(term, *answers.terms[1:]))
    with pytest.raises(BaselineRefusedError, match="AnswerError: no"):
        accept(evaluate_once(KnowingRetriever), path, failed)
    assert not path.exists()
