"""Parameter sweeps: evaluate several designs on the same questions, and compare them.

A design is a combination of settings, for which a collection is built. The code calls it a cell. A
design is named as the winner only if its advantage is statistically significant.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.adapters.connect import locate_cell_lock
from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.core.errors import ConfigurationError, SweepCellError
from rag_pipeline.core.models import DocFailure
from rag_pipeline.core.settings import load_settings
from rag_pipeline.evaluation.book import (
    check_libraries,
    choose_test_set,
    evaluate_book,
    load_for,
    parse_corpus,
)
from rag_pipeline.evaluation.metrics import (
    CONTEXT_BUDGETS_TOKENS,
    DOCUMENT,
    NDCG,
    SECTION,
    SUCCESS,
    PairedTest,
    compare_pairs,
    correct_p_values,
    name_budget,
    show_interval,
)
from rag_pipeline.evaluation.pages import Table
from rag_pipeline.evaluation.records import Answering
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.run import run_ingestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.golden_set import GoldenSet, Half
    from rag_pipeline.evaluation.pages import Block
    from rag_pipeline.evaluation.records import EvaluationReport, Summary
    from rag_pipeline.ingestion.context import IngestionContext

TUNE_HALF: Final[Half] = "tune"
_SIGNIFICANCE: Final = 0.05
_REMEDY: Final = 'Give half of the questions "split": "tune"; a sweep uses only those'

SettingValue: TypeAlias = "str | int | float | bool"
OpenIngestion: TypeAlias = "Callable[[Settings], IngestionContext]"

PRIMARY: Final = (SECTION, name_budget(CONTEXT_BUDGETS_TOKENS[0]))
"""Level and measure that designs are compared by; chunks of any size get equal token budgets."""

COLUMNS: Final = (
    PRIMARY,
    (SECTION, SUCCESS),
    (SECTION, NDCG),
    (DOCUMENT, SUCCESS),
    ("token", "IoU@5"),
)


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One design of a sweep: a combination of settings, given as changes to the present settings.

    Attributes:
        overrides: (name, value) pairs of the changed settings; empty for the present settings.
    """

    overrides: tuple[tuple[str, SettingValue], ...] = ()

    @property
    def name(self) -> str:
        """The changed settings, such as `chunk_max_tokens=700`, or else `present settings`."""
        return ", ".join(f"{name}={value}" for name, value in self.overrides) or "present settings"


EvaluateCell: TypeAlias = "Callable[[SweepCell], EvaluationReport]"
"""A function that builds and evaluates a collection for one design (sweep cell)."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A combination of settings with its measures on the tuning half of the golden set.

    Attributes:
        cell: The combination of settings.
        measures: Means and 95% intervals of the measures in `COLUMNS`.
        test: Paired test of these settings against the present ones, with the measure `PRIMARY`.
        p_value: The p-value of `test`, corrected (Holm) for the number of compared combinations.
    """

    cell: SweepCell
    measures: Summary
    test: PairedTest
    p_value: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The outcome of a sweep, which compares designs (combinations of settings).

    Attributes:
        rows: The present settings first, then the designs in the given order.
        winner: The design with the largest significant advantage over the present settings; None if
            no design is significantly better.
    """

    rows: tuple[SweepRow, ...]
    winner: SweepCell | None


def make_grid(
    axes: Mapping[str, Sequence[SettingValue]], *, crossed: bool = False
) -> tuple[SweepCell, ...]:
    """Return the combinations of settings that a sweep evaluates besides the present settings.

    Args:
        axes: Values to try, by setting name.
        crossed: True for every combination of the values; False to change one setting at a time.
    """
    if crossed:
        names = tuple(axes)
        return tuple(
            SweepCell(tuple(zip(names, values, strict=True)))
            for values in itertools.product(*axes.values())
        )
    return tuple(SweepCell(((name, value),)) for name, values in axes.items() for value in values)


def require_tune_half(golden: GoldenSet) -> None:
    """Check that a golden set has an answerable question in its tuning half.

    Raises:
        ConfigurationError: The tuning half has no answerable question.
    """
    if not any(query.expected for query in golden.select_half(TUNE_HALF).queries):
        raise ConfigurationError(
            "--test-set", "the tuning half has no answerable question", _REMEDY
        )


def run_sweep(cells: Sequence[SweepCell], evaluate_cell: EvaluateCell) -> SweepResult:
    """Evaluate the present settings and each design, and compare them on the tuning half only.

    Args:
        cells: Designs to compare with the present settings.
        evaluate_cell: Function that evaluates a design. It is called for the present settings and
            then for each design. Its golden set must have an answerable question in the tuning
            half.
    """
    reports = [(cell, evaluate_cell(cell)) for cell in (SweepCell(), *cells)]
    present = list(_read_primary(reports[0][1]))
    tests = [compare_pairs(present, list(_read_primary(report))) for _, report in reports]
    corrected = [1.0, *correct_p_values([test.p_value for test in tests[1:]])]
    rows = tuple(
        SweepRow(cell, _read_measures(report), test, p_value)
        for (cell, report), test, p_value in zip(reports, tests, corrected, strict=True)
    )
    return SweepResult(rows, _find_winner(rows))


def describe_sweep(result: SweepResult) -> tuple[Block, ...]:
    """Return a sweep's result as a table and a sentence that names the winner, if any."""
    heads = (f"{measure}, {level}" for level, measure in COLUMNS)
    rows = tuple(
        (
            row.cell.name,
            *(show_interval(row.measures.get(level, {}).get(name)) for level, name in COLUMNS),
            f"{row.test.difference:+.3f}",
            f"{row.p_value:.3f}",
        )
        for row in result.rows
    )
    level, measure = PRIMARY
    winner = result.winner.name if result.winner else "No design"
    count = result.rows[0].test.pair_count
    found = (
        f"Compared on {count} questions of the tuning half. {winner} is significantly better than "
        f"the present settings in {measure} ({level})."
    )
    return Table(("design", *heads, "difference", "p (Holm)"), rows), found


def _read_primary(report: EvaluationReport) -> Iterator[float]:
    """Yield the values of the tuning half, in the order of the golden set."""
    level, measure = PRIMARY
    for question in report.questions:
        if question.half == TUNE_HALF and question.scores:
            yield question.scores[level][measure]


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
    """Return a copy of the settings to which the changes of a design (a sweep cell) are applied.

    Raises:
        ConfigurationError: The design changes a setting that does not exist, or sets an invalid
            value.
    """
    return load_settings(**(settings.model_dump() | dict(cell.overrides)))


def check_sweep(
    settings: Settings,
    cells: Sequence[SweepCell],
    test_set: Path | None,
    open_ingestion: OpenIngestion,
) -> None:
    """Check the designs (sweep cells) and the test set before the first collection is built.

    Raises:
        MissingDependencyError: A library of the `pipeline` extra is not installed.
        ConfigurationError: A design changes a setting that does not exist, sets an invalid value or
            names an unknown model; or the test set is missing or has no answerable question in its
            tuning half.
        GoldenSetError: The test set is malformed, or names a page or heading that does not exist.
    """
    check_libraries()
    for cell in cells:
        open_ingestion(choose_settings(settings, cell))
    corpus = parse_corpus(settings)
    require_tune_half(load_for(choose_test_set(settings, test_set), corpus))


def evaluate_cell(
    settings: Settings, cell: SweepCell, test_set: Path | None, open_ingestion: OpenIngestion
) -> EvaluationReport:
    """Build a collection with the settings of `cell`, evaluate it, and return the report.

    Only texts that are missing from the cache are embedded. The collection has its own name
    and is kept until the next ingest of the book, so that a repeated sweep indexes only what
    changed. The book's own collection and reports do not change. The build does not run in Dagster,
    because an experiment needs no entry in the history of runs.

    Raises:
        ConfigurationError: The design changes a setting that does not exist, or sets an invalid
            value.
        SweepCellError: A document could not be indexed. Designs with different documents cannot be
            compared.
        StoreLockedError: Another sweep is building or evaluating this design.
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
        none = Answering.NONE
        return evaluate_book(
            chosen, test_set, answering=none, report_dir=folder, ingest=ingest
        ).report
