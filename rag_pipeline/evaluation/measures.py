"""Measures as declarations, their means with 95% intervals, and whether two results differ.

A measure is declared once, as a field of a class of figures: its name, its label, how it is
computed and its goal. Reports, tables and metadata follow from the declaration.
"""

# ruff: noqa: PLC0415  # scipy takes a second to import

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `count` questions with the ends `low` and `high` of its 95% interval."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """Return the mean, the ends of the interval and the number of questions."""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] n={self.count}"


def show(figure: Interval | None) -> str:
    """Return a figure as a short text; None is "not measured"."""
    return "not measured" if figure is None else str(figure)


@dataclass(frozen=True, slots=True)
class Measure:
    """The declaration of a measure.

    Attributes:
        label: Name of the measure in tables.
        values: Returns the values that one case contributes; none if the case does not count.
        summarize: Computes the figure from the values of all cases.
        goal: The project's goal in words; empty if there is none. A missed goal is no failure.
        gate: Name and lowest allowed value of the quality gate on the measure; None without one.
    """

    label: str
    values: Callable[[Any], Iterable[float]]
    summarize: Callable[[list[float]], object]
    goal: str = ""
    gate: tuple[str, float] | None = None


def share(
    label: str,
    values: Callable[[Any], Iterable[float]],
    goal: str = "",
    gate: tuple[str, float] | None = None,
) -> Any:  # noqa: ANN401  # the field has the type of its annotation
    """Declare a field with the share of cases of which something is true, or None without cases."""
    measure = Measure(label, values, find_interval, goal, gate)
    return field(default=None, metadata={"measure": measure})


def count(label: str, is_counted: Callable[[Any], bool]) -> Any:  # noqa: ANN401  # the field has the type of its annotation
    """Declare a field with the number of cases of which something is true."""
    measure = Measure(label, lambda case: [is_counted(case)], sum)
    return field(default=0, metadata={"measure": measure})


_Figures = TypeVar("_Figures")
_Case = TypeVar("_Case")


def list_measures(figures: Any) -> dict[str, Measure]:  # noqa: ANN401  # any class of figures
    """Return the measures that a class of figures declares, by name."""
    return {one.name: one.metadata["measure"] for one in fields(figures)}


def compute(figures: type[_Figures], cases: Iterable[object]) -> _Figures:
    """Compute all measures that a class of figures declares over the cases."""
    listed = list(cases)
    return figures(
        **{
            name: one.summarize([value for case in listed for value in one.values(case)])
            for name, one in list_measures(figures).items()
        }
    )


def group_by(
    cases: Iterable[_Case], names_of: Callable[[_Case], Iterable[str]]
) -> dict[str, list[_Case]]:
    """Return the cases of each group that they belong to, by the sorted names of the groups."""
    groups: dict[str, list[_Case]] = defaultdict(list)
    for case in cases:
        for name in names_of(case):
            groups[name].append(case)
    return {name: groups[name] for name in sorted(groups)}


def tabulate(figures: object) -> list[tuple[str, str, str]]:
    """Return the label, the figure as text and the goal of each measure that has a figure."""
    found = [(one, getattr(figures, name)) for name, one in list_measures(figures).items()]
    return [(one.label, str(figure), one.goal) for one, figure in found if figure is not None]


def since_ms(started: float) -> float:
    """Return the milliseconds since a time of `time.perf_counter`."""
    return (time.perf_counter() - started) * 1000


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
