"""Whether a difference or a level could be chance: bootstrap intervals and paired tests, seeded.

Belongs here: statistics on plain numbers. Does not belong here: what the numbers measure (metrics)
or what follows from them (gates).
"""

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
_PERMUTATIONS: Final = 20_000
_EXACT_PAIRS: Final = 14  # 16,384 sign patterns: exact costs less than drawing
_Z: Final = 1.959964  # of 95%


def find_intervals(table: NDArray[np.float64]) -> list[Interval]:
    """Mean and 95% percentile bootstrap interval of each column.

    A column of equal values has no spread to resample, and an interval of no width would claim
    certainty: it gets the width of Wilson's interval for a proportion of one or zero, on either
    side by how far the value is from it.

    Args:
        table: Shape (questions, measures), values 0 to 1, at least one row.
    """
    count = len(table)
    rng = np.random.default_rng(_SEED)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES) / count
    lows, highs = np.percentile(weights @ table, [2.5, 97.5], axis=0)
    intervals = []
    for column, low, high in zip(table.T, lows, highs, strict=True):
        mean = float(column.mean())
        if column.min() == column.max():
            margin = _Z**2 / (count + _Z**2)
            low, high = mean * (1 - margin), mean + (1 - mean) * margin  # noqa: PLW2901  # see docstring
        intervals.append(Interval(mean, min(float(low), mean), max(float(high), mean), count))
    return intervals


def find_interval(values: Sequence[float | bool]) -> Interval | None:
    """`find_intervals` of one column; None for no value."""
    if not values:
        return None
    return find_intervals(np.array(values, dtype=np.float64)[:, np.newaxis])[0]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Outcome of a paired randomization test.

    Attributes:
        difference: Mean of new minus old over all pairs.
        p_value: Two-sided: chance of a difference at least as large were old and new alike.
        pair_count: All pairs, ties included.
        changed_count: Pairs with a difference.
    """

    difference: float
    p_value: float
    pair_count: int
    changed_count: int


def compare_pairs(old: Sequence[float], new: Sequence[float]) -> PairedTest:
    """Two-sided paired randomization test on the mean difference.

    Exact over all sign patterns where at most 14 pairs differ, else over 20,000 seeded draws. No
    pair, or none that differs, gives p = 1.

    Source:
        Smucker, Allan, Carterette: A Comparison of Statistical Significance Tests for Information
        Retrieval Evaluation, CIKM 2007.
    """
    differences = np.subtract(new, old).astype(np.float64)
    if not differences.any():
        return PairedTest(0.0, 1.0, len(differences), 0)
    changed = differences[differences != 0]
    observed = abs(changed.sum()) - 1e-9  # sums of equal terms differ in their last bits
    if len(changed) <= _EXACT_PAIRS:
        patterns = np.arange(2 ** len(changed))[:, np.newaxis] >> np.arange(len(changed)) & 1
        p_value = float((np.abs((2 * patterns - 1) @ changed) >= observed).mean())
    else:
        signs = np.random.default_rng(_SEED).integers(0, 2, (_PERMUTATIONS, len(changed))) * 2 - 1
        reached = int((np.abs(signs @ changed) >= observed).sum())
        p_value = (reached + 1) / (_PERMUTATIONS + 1)
    return PairedTest(float(differences.mean()), p_value, len(differences), len(changed))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """Holm's correction for several tests at once, in the order given."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.zeros(len(p_values))
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        corrected[index] = highest
    return corrected.tolist()
