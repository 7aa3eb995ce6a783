"""A sweep: the same questions over several designs, each in a collection of its own.

A winner is named only if the difference is significant.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from rag_pipeline.adapters.connect import locate_cell_lock
from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.core.errors import ConfigurationError, SweepCellError
from rag_pipeline.core.models import DocFailure
from rag_pipeline.core.settings import load_settings
from rag_pipeline.evaluation.book import choose_test_set, evaluate_book, load_for, parse_corpus
from rag_pipeline.evaluation.matching import DOCUMENT, SECTION
from rag_pipeline.evaluation.metrics import CONTEXT_BUDGETS_TOKENS, NDCG, SUCCESS, name_budget
from rag_pipeline.evaluation.significance import PairedTest, compare_pairs, correct_p_values
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.run import run_ingestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.golden_set import GoldenSet, Half
    from rag_pipeline.evaluation.records import EvaluationReport, Interval, Summary
    from rag_pipeline.ingestion.context import IngestionContext

TUNE_HALF: Final[Half] = "tune"
_SIGNIFICANCE: Final = 0.05
_MEND: Final = 'Give half of the questions "split": "tune", for a sweep decides by those alone'

SettingValue: TypeAlias = "str | int | float | bool"
OpenIngestion: TypeAlias = "Callable[[Settings], IngestionContext]"

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


def choose_settings(settings: Settings, cell: SweepCell) -> Settings:
    """Return the settings of a cell: the present ones with its overrides.

    Raises:
        ConfigurationError: An override is not a setting or is out of its bounds.
    """
    return load_settings(**(settings.model_dump() | dict(cell.overrides)))


def check_sweep(
    settings: Settings,
    cells: Sequence[SweepCell],
    test_set: Path | None,
    open_ingestion: OpenIngestion,
) -> None:
    """Find out what would end a sweep, before its first collection is built.

    Raises:
        ConfigurationError: An override is not a setting, is out of its bounds or names an unknown
            model, or the test set has nothing to compare by.
        GoldenSetError: The test set is malformed, or expects a page or heading that is missing.
    """
    for cell in cells:
        open_ingestion(choose_settings(settings, cell))
    corpus = parse_corpus(settings.docs_dir, settings.site)
    require_tune_half(load_for(choose_test_set(settings, test_set), corpus))


def evaluate_cell(
    settings: Settings, cell: SweepCell, test_set: Path | None, open_ingestion: OpenIngestion
) -> EvaluationReport:
    """Build a cell's collection, embedding only texts that are not in the cache, and evaluate it.

    The collection has its own name and stays until the next ingest of the book, so that a second
    sweep builds only what changed. The book's own collection and reports are left alone. It runs
    without Dagster: a cell is an experiment, not an ingestion that anybody looks up later.

    Raises:
        ConfigurationError: An override is not a setting or is out of its bounds.
        SweepCellError: Documents failed. Cells that lack different pages cannot be compared.
        StoreLockedError: Another sweep is working on this design.
    """
    chosen = choose_settings(settings, cell)
    digest = hashlib.sha256(f"{cell.name} {open_ingestion(chosen).space}".encode()).hexdigest()[:8]
    name = name_cell(settings.qdrant_collection, digest)
    chosen = chosen.model_copy(update={"qdrant_collection": name})

    def ingest() -> None:
        events = run_ingestion(open_ingestion(chosen), IngestionRequest(), f"sweep-{digest}")
        failures = [event for event in events if isinstance(event, DocFailure)]
        if failures:
            raise SweepCellError(cell.name, [(each.doc_path, each.message) for each in failures])

    folder = settings.state_dir / "sweep" / digest
    with hold_lock(locate_cell_lock(settings, name), settings.ingest_lock_timeout_s):
        return evaluate_book(chosen, test_set, report_dir=folder, ingest=ingest).report
