"""Bootstrap intervals and paired significance tests.

The random numbers are seeded, so that equal data always gives equal results. scipy is imported on
first use, because most commands need no statistics.
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
_RESAMPLES: Final = 5000  # with 100 questions, the ends of an interval then vary by under 0.005
_PERMUTATIONS: Final = 20_000  # up to 14 changed pairs have fewer sign patterns, so all are tried
_BATCH: Final = 500  # number of resamples that are in memory at once


def find_intervals(table: NDArray[np.float64]) -> list[Interval]:
    """Compute the mean and the 95% bootstrap interval (percentile method) of each column.

    Resampling a column of equal values would give an interval of width zero, which claims too much
    certainty. Such a column gets an interval as wide as Wilson's interval for a proportion of zero.
    Its part below the mean is proportional to the mean, and its part above to one minus the mean.

    Args:
        table: Shape (questions, measures), values 0 to 1, with at least one row.
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
    """Compute the mean and 95% bootstrap interval of the values; return None if there are none."""
    if not values:
        return None
    return find_intervals(np.array(values, dtype=np.float64)[:, np.newaxis])[0]


def show_interval(interval: Interval | None) -> str:
    """Return the mean, the ends of the interval and the number of questions as a short text."""
    if interval is None:
        return "not measured"
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] n={interval.count}"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The outcome of a paired randomization test of old against new values.

    Attributes:
        difference: Mean of new minus old over all pairs.
        p_value: Two-sided p-value: the probability of a difference at least as large, in either
            direction, if old and new values were exchangeable.
        pair_count: Number of all pairs, including pairs of equal values.
        changed_count: Number of pairs of different values.
    """

    difference: float
    p_value: float
    pair_count: int
    changed_count: int


def compare_pairs(old: Sequence[float], new: Sequence[float]) -> PairedTest:
    """Test if the mean of paired values changed, with a two-sided paired randomization test.

    The test flips the signs of the pairs' differences. It tries all sign patterns if at most 14
    pairs differ, and draws 20,000 random patterns otherwise. The p-value is 1 if fewer than two
    pairs differ.

    Args:
        old: Old values.
        new: New values; new[i] is paired with old[i].

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
    """Return the p-values of several tests with Holm's correction, in the given order."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.zeros(len(p_values))
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        corrected[index] = highest
    return corrected.tolist()
