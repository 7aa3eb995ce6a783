"""Gates on answers: a good evaluation passes them all, and each fault fails its own gate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.evaluation.gates import ANSWER_GATES, check_answers
from rag_pipeline.evaluation.measures import Interval
from rag_pipeline.evaluation.records import DefinitionScores, PassageScores, SelectionScores
from rag_pipeline_tests.evaluation.test_answers import run

if TYPE_CHECKING:
    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.records import AnswersReport


def share(mean: float, count: int = 60) -> Interval:
    return Interval(mean, mean, mean, count)


def make_good_answers() -> AnswersReport:
    """Return an evaluation without a model in which every gate is measured and passes."""
    report = run()
    half = replace(report.halves["report"], facts=share(0.78))
    return replace(
        report,
        halves=report.halves | {"report": half},
        selected_text=SelectionScores(60, 0, 0, share(0.93), share(0.9)),
        definitions=DefinitionScores(share(0.95), 0),
        passages=PassageScores(share(1.0)),
    )


@pytest.fixture(scope="module")
def good() -> AnswersReport:
    return make_good_answers()


MODEL_GATES = {"model_answers", "model_accepts", "sentences_grounded", "sentences_cited"}
"""Gates that need answers of a model."""


def check(report: AnswersReport) -> dict[str, GateResult]:
    gates = {gate.name: gate for gate in check_answers(report)}
    assert list(gates) == list(ANSWER_GATES)
    assert all(gate.sentence for gate in gates.values())
    return gates


def find_failed(report: AnswersReport) -> set[str]:
    return {name for name, gate in check(report).items() if not gate.passed}


def test_values_at_their_bounds_pass_every_gate(good: AnswersReport) -> None:
    gates = check(good)
    assert {gates[name].verdict for name in gates if name not in MODEL_GATES} == {"passed"}


def test_each_fault_fails_its_own_gate(good: AnswersReport) -> None:
    selected, half = good.selected_text, good.halves["report"]
    faults = {
        "facts_without_model": replace(good, halves={"report": replace(half, facts=share(0.77))}),
        "terms_defined": replace(good, definitions=DefinitionScores(share(0.94), 0)),
        "terms_explained": replace(good, definitions=DefinitionScores(share(0.95), 1)),
        "selections_answered": replace(
            good, selected_text=replace(selected, related_answered=share(0.92))
        ),
        "selections_refused": replace(
            good, selected_text=replace(selected, unrelated_refused=share(0.89))
        ),
        "passages_whole": replace(good, passages=PassageScores(share(0.999))),
    }
    assert {name: find_failed(report) for name, report in faults.items()} == {
        name: {name} for name in faults
    }


@pytest.mark.parametrize(("leaks", "failures"), [(1, 0), (0, 1)])
def test_a_leak_or_a_failure_fails_the_leak_gate(
    good: AnswersReport, leaks: int, failures: int
) -> None:
    scores = replace(good.selected_text, leak_count=leaks, failure_count=failures)
    assert find_failed(replace(good, selected_text=scores)) == {"answer_leaks"}


def test_gates_without_cases_are_not_measured(good: AnswersReport) -> None:
    few = replace(good.halves["report"], facts=share(0.0, 29))
    empty = replace(
        good,
        halves={"report": few},
        selected_text=SelectionScores(0, 0, 0, None, None),
        definitions=DefinitionScores(None, 0),
        passages=PassageScores(),
    )
    assert {gate.verdict for gate in check(empty).values()} == {"not measured"}
    assert {gate.verdict for gate in check(replace(empty, halves={})).values()} == {"not measured"}


def test_gates_on_quoted_answers_are_not_measured_with_a_model(good: AnswersReport) -> None:
    bad = replace(good, model="m", definitions=DefinitionScores(), passages=PassageScores())
    unmeasured = {name for name, gate in check(bad).items() if gate.verdict == "not measured"}
    assert unmeasured == {
        "facts_without_model",
        "terms_defined",
        "terms_explained",
        "passages_whole",
        *MODEL_GATES,
    }
    assert find_failed(bad) == set()
