"""Compares designs: the same questions over several settings, and a winner only where one is shown.

Belongs here: the grid and the comparison. Does not belong here: building a collection or retriever
(the caller's), measuring (report).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.evaluation.matching import DOCUMENT, SECTION
from rag_pipeline.evaluation.metrics import CONTEXT_BUDGETS_TOKENS, NDCG, SUCCESS, name_budget
from rag_pipeline.evaluation.significance import PairedTest, compare_pairs, correct_p_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.evaluation.golden_set import GoldenSet, Half
    from rag_pipeline.evaluation.records import EvaluationReport, Interval, Summary

TUNE_HALF: Final[Half] = "tune"
_SIGNIFICANCE: Final = 0.05
_MEND: Final = 'Give half of the questions "split": "tune", for a sweep decides by those alone'

SettingValue: TypeAlias = "str | int | float | bool"

PRIMARY: Final = (SECTION, name_budget(CONTEXT_BUDGETS_TOKENS[0]))
"""What designs are compared by: chunks of any size get the same context to be right in."""

COLUMNS: Final = (
    PRIMARY,
    (SECTION, SUCCESS),
    (SECTION, NDCG),
    (DOCUMENT, SUCCESS),
    ("token", "IoU@5"),
)


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One design: names and values of the settings that differ from the present ones."""

    overrides: tuple[tuple[str, SettingValue], ...] = ()

    @property
    def name(self) -> str:
        """The overrides in a line."""
        return ", ".join(f"{name}={value}" for name, value in self.overrides) or "present settings"


class EvaluateCell(Protocol):
    """Builds a cell's collection, embedding only texts not in the cache, and evaluates it."""

    def __call__(self, cell: SweepCell, /) -> EvaluationReport:
        """Evaluate a cell on the whole golden set; raises what building or opening raises."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A cell with its measures on the tune half.

    Attributes:
        measures: Those of `COLUMNS`.
        test: Against the present settings by `PRIMARY`, question by question.
        p_value: Of `test`, corrected for the number of cells compared.
    """

    cell: SweepCell
    measures: Summary
    test: PairedTest
    p_value: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Outcome of a sweep.

    Attributes:
        rows: The present settings first, then the cells in their order.
        winner: The best cell that is better than the present settings beyond chance; None where the
            data shows none, and the present settings stay.
    """

    rows: tuple[SweepRow, ...]
    winner: SweepCell | None


def make_grid(
    axes: Mapping[str, Sequence[SettingValue]], *, crossed: bool = False
) -> tuple[SweepCell, ...]:
    """Cells of a grid.

    Args:
        axes: Values to try by setting name.
        crossed: Every combination; otherwise one setting at a time is moved.
    """
    if crossed:
        names = tuple(axes)
        return tuple(
            SweepCell(tuple(zip(names, values, strict=True)))
            for values in itertools.product(*axes.values())
        )
    return tuple(SweepCell(((name, value),)) for name, values in axes.items() for value in values)


def require_tune_half(golden: GoldenSet) -> None:
    """Check that there is something to compare by.

    Raises:
        ConfigurationError: No answerable question is of the tune half.
    """
    if not any(query.expected for query in golden.select_half(TUNE_HALF).queries):
        raise ConfigurationError("--test-set", "no answerable question is of the tune half", _MEND)


def run_sweep(
    cells: Sequence[SweepCell],
    evaluate_cell: EvaluateCell,
    on_cell: Callable[[SweepCell], None] | None = None,
) -> SweepResult:
    """Evaluate each cell and the present settings, and compare them on the tune half alone.

    Args:
        cells: Designs to try; the golden set has a tune half, by `require_tune_half`.
        evaluate_cell: Called once for each, one after the other.
        on_cell: Told before a cell is evaluated, for showing progress.
    """
    reports = []
    for cell in (SweepCell(), *cells):
        if on_cell is not None:
            on_cell(cell)
        reports.append((cell, evaluate_cell(cell)))
    present = _read_primary(reports[0][1])
    tests = [_compare(present, _read_primary(report)) for _, report in reports]
    corrected = [1.0, *correct_p_values([test.p_value for test in tests[1:]])]
    rows = tuple(
        SweepRow(cell, _read_measures(report), test, p_value)
        for (cell, report), test, p_value in zip(reports, tests, corrected, strict=True)
    )
    return SweepResult(rows, _find_winner(rows))


def render_sweep(result: SweepResult) -> str:
    """A Markdown table of the cells, and a sentence that names the winner or says there is none."""
    heads = [f"{measure}, {level}" for level, measure in COLUMNS]
    lines = [
        f"| cell | {' | '.join(heads)} | difference | p (Holm) |",
        "|---" * (len(heads) + 3) + "|",
    ]
    for row in result.rows:
        cells = [_describe(row.measures.get(level, {}).get(name)) for level, name in COLUMNS]
        verdict = f"{row.test.difference:+.3f} | {row.p_value:.3f}"
        lines.append(f"| {row.cell.name} | {' | '.join(cells)} | {verdict} |")
    level, measure = PRIMARY
    found = (
        f"{result.winner.name} is better than the present settings by {measure} ({level})."
        if result.winner
        else f"No cell is better than the present settings beyond chance by {measure} ({level})."
    )
    count = result.rows[0].test.pair_count
    return "\n".join([*lines, "", f"{count} questions of the tune half. {found}"]) + "\n"


def _describe(interval: Interval | None) -> str:
    if interval is None:
        return "none"
    return f"{interval.mean:.3f} [{interval.low:.2f}, {interval.high:.2f}]"


def _read_primary(report: EvaluationReport) -> dict[str, float]:
    level, measure = PRIMARY
    return {
        question.query_id: question.scores[level][measure]
        for question in report.questions
        if question.half == TUNE_HALF and question.scores
    }


def _compare(present: Mapping[str, float], other: Mapping[str, float]) -> PairedTest:
    return compare_pairs(list(present.values()), [other[query_id] for query_id in present])


def _read_measures(report: EvaluationReport) -> Summary:
    summary = report.halves[TUNE_HALF]
    levels = dict.fromkeys(level for level, _ in COLUMNS)
    return {
        level: {measure: summary[level][measure] for own, measure in COLUMNS if own == level}
        for level in levels
    }


def _find_winner(rows: Sequence[SweepRow]) -> SweepCell | None:
    better = [row for row in rows if row.test.difference > 0 and row.p_value < _SIGNIFICANCE]
    return max(better, key=lambda row: row.test.difference).cell if better else None
