"""Bootstrap intervals and paired tests, seeded, so that the same numbers give the same result.

scipy computes them; it is imported on first use, because most commands need no statistics.
"""

# ruff: noqa: PLC0415  # scipy takes a second to import

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.evaluation.records import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SEED: Final = 20260214
_RESAMPLES: Final = 5000  # the ends of a 95% interval then vary by under 0.005 at 100 questions
_PERMUTATIONS: Final = 20_000  # up to 14 changed pairs have fewer sign patterns: all are tried
_BATCH: Final = 500  # resamples in memory at once


def find_intervals(table: NDArray[np.float64]) -> list[Interval]:
    """Return the mean and 95% percentile bootstrap interval of each column.

    A column of equal values has no spread to resample, and an interval of no width would claim
    certainty. It gets the width of Wilson's interval for a proportion of zero or one, divided
    between both sides by how far the value is from zero and one.

    Args:
        table: Shape (questions, measures), values 0 to 1, at least one row.
    """
    from scipy import stats

    count = len(table)
    means = table.mean(axis=0)
    margin = stats.binomtest(0, count).proportion_ci(method="wilson").high
    lows, highs = means * (1 - margin), means + (1 - means) * margin
    varied = table.min(axis=0) < table.max(axis=0)
    if varied.any():
        lows[varied], highs[varied] = stats.bootstrap(
            (table[:, varied],),
            np.mean,
            n_resamples=_RESAMPLES,
            batch=_BATCH,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
    ends = np.column_stack([means, np.minimum(lows, means), np.maximum(highs, means)])
    return [Interval(mean, low, high, count) for mean, low, high in ends.tolist()]


def find_interval(values: Sequence[float | bool]) -> Interval | None:
    """Return `find_intervals` of one column, or None without a value."""
    if not values:
        return None
    return find_intervals(np.array(values, dtype=np.float64)[:, np.newaxis])[0]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Outcome of a paired randomization test.

    Attributes:
        difference: Mean of new minus old over all pairs.
        p_value: Two-sided: the chance of a difference at least as large if old and new were alike.
        pair_count: All pairs, ties included.
        changed_count: Pairs with a difference.
    """

    difference: float
    p_value: float
    pair_count: int
    changed_count: int


def compare_pairs(old: Sequence[float], new: Sequence[float]) -> PairedTest:
    """Test the mean difference of pairs by flipping the signs of the differences, two-sided.

    The test is exact over all sign patterns if at most 14 pairs differ, and otherwise over 20,000
    seeded draws. With no pair that differs, or only one, p is 1.

    Source:
        Smucker, Allan, Carterette: A Comparison of Statistical Significance Tests for Information
        Retrieval Evaluation, CIKM 2007.
    """
    from scipy import stats

    differences = np.subtract(new, old).astype(np.float64)
    changed = differences[differences != 0]
    p_value = 1.0
    if len(changed) > 1:
        p_value = stats.permutation_test(
            (changed,),
            lambda flipped, axis: np.abs(flipped.sum(axis=axis)),
            permutation_type="samples",
            alternative="greater",
            n_resamples=_PERMUTATIONS,
            batch=_BATCH,
            rng=np.random.default_rng(_SEED),
        ).pvalue
    difference = differences.mean() if len(differences) else 0.0
    return PairedTest(float(difference), float(p_value), len(differences), len(changed))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """Return Holm's correction for several tests at once, in the order given."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.zeros(len(p_values))
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        corrected[index] = highest
    return corrected.tolist()
