"""Sweeps: the grid, the comparison on the tuning half, and the choice of a winner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.evaluation.book import compare_designs, describe_sweep, require_tune_half
from rag_pipeline.evaluation.pages import to_text
from rag_pipeline_tests.evaluation.generated_book import (
    GOLDEN,
    KnowingRetriever,
    RandomRetriever,
    ReversedRetriever,
    evaluate_once,
)

if TYPE_CHECKING:
    from rag_pipeline.evaluation.records import EvaluationReport

GOOD, RANDOM, BAD = KnowingRetriever, RandomRetriever, ReversedRetriever


def sweep(*found: EvaluationReport | type[KnowingRetriever]) -> tuple[str | None, str]:
    designs = [{}, *({"cell": str(number)} for number in range(len(found) - 1))]
    reports = [evaluate_once(one) if isinstance(one, type) else one for one in found]
    result = compare_designs(designs, reports)
    return result.winner, to_text(describe_sweep(result))


def test_a_much_better_design_wins() -> None:
    winner, table = sweep(BAD, RANDOM, GOOD)
    assert winner == "cell=1"
    assert "cell=1 is significantly better than the present settings" in table


def test_an_equal_or_worse_design_does_not_win() -> None:
    winner, table = sweep(GOOD, GOOD, BAD)
    assert winner is None
    assert "No design is significantly better than the present settings" in table
    assert "present settings" in table.splitlines()[1]
    assert "24 questions of the tuning half" in table


def test_the_report_half_does_not_influence_the_winner() -> None:
    best, worst = evaluate_once(GOOD), evaluate_once(BAD)
    mixed = tuple(
        good if good.half == "report" else bad
        for good, bad in zip(best.questions, worst.questions, strict=True)
    )
    assert sweep(BAD, replace(worst, questions=mixed))[0] is None


def test_a_set_without_answerable_tuning_questions_is_refused() -> None:
    require_tune_half(GOLDEN)
    report = tuple(query for query in GOLDEN.queries if query.half == "report")
    tune = (query for query in GOLDEN.queries if query.half == "tune")
    unanswerable = tuple(replace(query, expected=(), all_of=False) for query in tune)
    for queries in (report, (*report, *unanswerable)):
        with pytest.raises(ConfigurationError, match="tuning half"):
            require_tune_half(replace(GOLDEN, queries=queries))
