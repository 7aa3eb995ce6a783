"""Intervals and paired tests have known values and properties, and are reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.evaluation.measures import (
    compare_pairs,
    correct_p_values,
    find_interval,
    find_intervals,
)

VALUES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=40)


@given(VALUES)
def test_an_interval_contains_its_mean_and_stays_within_the_values(values: list[float]) -> None:
    interval = find_interval(values)
    assert interval.low <= interval.mean <= interval.high
    assert interval.count == len(values)
    if min(values) < max(values):
        assert min(values) - 1e-9 <= interval.low
        assert interval.high <= max(values) + 1e-9


def test_an_interval_is_reproducible_and_narrows_with_more_questions() -> None:
    few = find_interval([1.0] * 8 + [0.0] * 2)
    many = find_interval([1.0] * 80 + [0.0] * 20)
    assert few == find_interval([1.0] * 8 + [0.0] * 2)
    assert many.high - many.low < few.high - few.low
    assert (many.low, many.high) == pytest.approx((0.72, 0.88), abs=0.02)


def test_an_interval_of_perfect_results_still_has_a_width() -> None:
    interval = find_interval([1.0] * 45)
    assert (interval.mean, interval.high) == (1.0, 1.0)
    assert interval.low == pytest.approx(0.921, abs=0.001)
    none_right = find_interval([0.0] * 45)
    assert none_right.high == pytest.approx(0.079, abs=0.001)


def test_an_interval_of_equal_values_still_has_a_width() -> None:
    interval = find_interval([0.4, 0.4])
    assert (interval.low, interval.high) == pytest.approx(
        (0.4 * 0.342, 0.4 + 0.6 * 0.658), abs=0.01
    )


def test_each_column_has_its_own_interval() -> None:
    table = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert find_intervals(table) == [find_interval(column) for column in table.T.tolist()]


def test_no_values_give_no_interval() -> None:
    assert find_interval([]) is None


@pytest.mark.parametrize(
    ("lost", "p_value"), [(1, 1.0), (4, 0.125), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)]
)
def test_few_pairs_are_tested_exactly(lost: int, p_value: float) -> None:
    test = compare_pairs([1.0] * 50, [0.0] * lost + [1.0] * (50 - lost))
    assert test.p_value == pytest.approx(p_value)
    assert test.difference == pytest.approx(-lost / 50)
    assert (test.pair_count, test.changed_count) == (50, lost)


def test_the_p_value_of_many_pairs_is_near_the_exact_value() -> None:
    old = [0.0] * 12 + [1.0] * 6
    new = [1.0] * 12 + [0.0] * 6
    test = compare_pairs(old, new)
    assert test.p_value == pytest.approx(0.2379, abs=0.015)  # two-sided sign test, 6 of 18
    assert test == compare_pairs(old, new)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_a_p_value_is_a_probability_and_symmetric(pairs: list[tuple[float, float]]) -> None:
    old, new = [one for one, _ in pairs], [other for _, other in pairs]
    there, back = compare_pairs(old, new), compare_pairs(new, old)
    assert 0 < there.p_value <= 1
    assert there.p_value == pytest.approx(back.p_value)
    assert there.difference == pytest.approx(-back.difference)


def test_equal_pairs_have_a_p_value_of_one() -> None:
    assert compare_pairs([], []).p_value == 1.0
    assert compare_pairs([0.3, 0.4], [0.3, 0.4]).p_value == 1.0


@pytest.mark.slow
def test_random_pairs_are_significant_in_about_one_of_twenty_cases() -> None:
    rng = np.random.default_rng(3)
    calls = [
        compare_pairs(rng.random(12).tolist(), rng.random(12).tolist()).p_value < 0.05
        for _ in range(300)
    ]
    assert 0.02 < np.mean(calls) < 0.09


def test_holm_correction_preserves_the_order_of_the_p_values() -> None:
    assert correct_p_values([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_p_values([0.6, 0.7]) == [1.0, 1.0]
    assert correct_p_values([]) == []
