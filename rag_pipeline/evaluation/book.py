"""Evaluation of one book: load its questions, ask its collection, write the report; and sweeps.

A sweep evaluates several designs on the same questions, and compares them. A design is a
change of one setting, for which a collection is built. JSON and errors call it a cell. A design is
named as the winner only if its advantage is statistically significant.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.adapters.connect import connect_chat_model, connect_embedder, locate_cell_lock
from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.answering import Assistant, apply_grounding_policy
from rag_pipeline.answering.voice import read_voice
from rag_pipeline.core.errors import ConfigurationError, SweepCellError, require_packages
from rag_pipeline.core.ids import hash_place
from rag_pipeline.core.models import DocFailure, ParsedDoc
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.answers import evaluate_answers
from rag_pipeline.evaluation.gates import GateResult, check_answers, check_gates
from rag_pipeline.evaluation.golden_set import (
    ALL_PATHS,
    QUESTIONS_PATH,
    GoldenSet,
    load_golden_set,
    validate_against_corpus,
)
from rag_pipeline.evaluation.measures import PairedTest, compare_pairs, correct_p_values, show
from rag_pipeline.evaluation.metrics import (
    CONTEXT_BUDGETS_TOKENS,
    DOCUMENT,
    NDCG,
    SECTION,
    SUCCESS,
    name_budget,
)
from rag_pipeline.evaluation.pages import Block, Table
from rag_pipeline.evaluation.records import Answering, build_fingerprint
from rag_pipeline.evaluation.rendering import accept, load_baseline, write_report
from rag_pipeline.evaluation.report import evaluate, search_follow_ups
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_docs
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline.retrieval import open_retriever

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.evaluation.golden_set import Half
    from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport, Summary


BASELINE_PATH: Final = QUESTIONS_PATH.with_name("baseline.json")
"""The accepted results of the golden set that comes with this package."""


@dataclass(frozen=True, slots=True)
class BookEvaluation:
    """The outcome of an evaluation.

    Attributes:
        report: The measured figures.
        gates: The result of each quality gate; empty if no gate was checked. The gates on answers
            are left out if the answers were not evaluated.
        folder: Folder of the written report: `report.json`, `report.html` and, if the answers were
            evaluated, `answers.json`.
        answers: The evaluation of answers; None if the answers were not evaluated.
    """

    report: EvaluationReport
    gates: tuple[GateResult, ...]
    folder: Path
    answers: AnswersReport | None = None

    @property
    def passed(self) -> bool:
        """True if no quality gate failed. Also True if no gate was checked."""
        return all(gate.passed for gate in self.gates)


def check_libraries() -> None:
    """Check that the libraries of an evaluation are installed, before anything is computed.

    Raises:
        MissingDependencyError: A library of the `pipeline` extra is not installed.
    """
    require_packages("pipeline", "ir_measures", "scipy")


def evaluate_book(
    settings: Settings,
    test_set: Path | None = None,
    *,
    accept_baseline: bool = False,
    paraphrased: bool = False,
    answering: Answering = Answering.QUOTED,
    report_dir: Path | None = None,
    ingest: Callable[[], object] = lambda: None,
) -> BookEvaluation:
    """Ask the questions of a golden set, check the quality gates, and write the report.

    Args:
        settings: Settings with the docs folder and the collection, which `ingest` may build.
        test_set: JSON file of questions, or None for the choice of `choose_test_set`.
        accept_baseline: Save this result as the baseline that later results are compared with.
        paraphrased: Ask the harder wording of each question that has one, and check no gates.
        answering: How the questions are also answered, to score the answers.
        report_dir: Folder for the report; None selects `evaluation/` in the state folder.
        ingest: Updates the collection. Called after the test set was checked.

    Raises:
        MissingDependencyError: A library of the `pipeline` extra is not installed.
        ConfigurationError: A setting is invalid, no test set fits, or two options contradict.
        GoldenSetError: The test set is malformed, or names a page or heading that does not exist.
        EvaluationFileError: The stored baseline is damaged or has another format version.
        StoreError: The collection is missing, has another embedding model or is unreachable.
        BaselineRefusedError: A question failed, so the written report cannot become the baseline.
    """
    check_libraries()
    if accept_baseline and (paraphrased or answering is Answering.NONE):
        problem = "only an evaluation that checks all quality gates can become the baseline"
        fix = "Leave out --accept, or --paraphrased and --no-answers"
        raise ConfigurationError("--accept", problem, fix)
    test_set = choose_test_set(settings, test_set)
    golden, documents = read_book(settings, test_set)
    chat_model = connect_chat_model(settings) if answering is Answering.CONFIGURED else None
    ingest()
    folder = report_dir or settings.state_dir / "evaluation"
    if paraphrased:
        golden = ask_paraphrased(golden)
        folder /= "paraphrased"
    with open_retriever(settings) as retriever:
        retriever.probe()
        model = connect_embedder(settings).model
        fingerprint = build_fingerprint(documents, golden, settings, model)
        report = evaluate(
            golden,
            retriever,
            lambda result, asked: apply_grounding_policy(result, asked).sufficient_context,
            documents,
            fingerprint,
        )
        answers = None
        if answering is not Answering.NONE:
            # The facts of some golden questions stand only in the solutions of quizzes.
            voice = replace(read_voice(settings), tells_solutions=True)
            ask = Assistant(retriever, chat_model, voice=voice).answer
            name = chat_model.name if chat_model else None
            answers = evaluate_answers(golden, ask, documents, name, settings.chunk_max_tokens)
        follow_ups = search_follow_ups(golden.conversations, retriever)
    baseline_path = folder / name_baseline(settings, test_set) if test_set else BASELINE_PATH
    baseline = load_baseline(baseline_path)
    gates: tuple[GateResult, ...] = ()
    if not paraphrased:
        gates = check_gates(report, baseline, follow_ups)
        gates += check_answers(answers) if answers else ()
    write_report(report, folder, gates, answers)
    if accept_baseline:
        accept(report, baseline_path, answers)
    return BookEvaluation(report, gates, folder, answers)


def choose_test_set(settings: Settings, test_set: Path | None) -> Path | None:
    """Return the path of the test set: `test_set` if given, else the one named in the settings.

    If the result is None, no file is named anywhere. `read_book` then uses the questions of this
    package, which are about one textbook, and refuses them for any other book.
    """
    if test_set is None and settings.evaluation_test_set:
        return Path(settings.evaluation_test_set)
    return test_set


def name_baseline(settings: Settings, test_set: Path) -> str:
    """Return the file name of the baseline for a test set and the docs folder of the settings.

    The name ends with a hash of both paths, so that test sets with equal file names in different
    folders have separate baselines.
    """
    place = hash_place(test_set.resolve(), settings.docs_dir.resolve())
    return f"baseline-{test_set.stem}-{place}.json"


def read_book(settings: Settings, test_set: Path | None) -> tuple[GoldenSet, tuple[ParsedDoc, ...]]:
    """Load a test set, and check that all pages and headings that it names exist in the book.

    Args:
        settings: Settings with the docs folder.
        test_set: The JSON file; None loads all cases about the textbook.

    Returns:
        The test set, and all documents of the book that can be parsed.

    Raises:
        ConfigurationError: `test_set` is None, but the book is not the textbook: it lacks more
            than half of the pages that the questions expect.
        DocsFolderError: The docs folder is missing, cannot be read or contains no document.
        GoldenSetError: The test set is malformed, or names a page or heading that does not exist.
    """
    discovery = discover_docs(
        settings.docs_dir,
        manifest=settings.site_manifest,
        sources=settings.sources or (),
        with_unlisted=settings.index_unlisted,
    )
    failures = list(discovery.failures)
    parsed = tuple(parse_docs(discovery.docs, settings.site, failures))
    problems = {failure.doc_path: failure.message for failure in failures}
    documents = [one.document for one in parsed]
    golden = load_golden_set(test_set) if test_set else load_golden_set(*ALL_PATHS)
    if test_set is None:
        expected = {section.doc_path for query in golden.queries for section in query.expected}
        known = {str(document.doc_path) for document in documents} | problems.keys()
        if len(expected & known) * 2 < len(expected):
            problem = "the questions that come with this package are about another book"
            fix = "Set it, or --test-set, to a JSON file with questions about this book"
            raise ConfigurationError("EVALUATION_TEST_SET", problem, fix)
    return validate_against_corpus(golden, documents, problems), parsed


def ask_paraphrased(golden: GoldenSet) -> GoldenSet:
    """Return a copy of the golden set in which `paraphrase`, if set, replaces each question.

    A paraphrase is a harder wording of the question.
    """
    queries = tuple(
        replace(query, question=query.paraphrase or query.question) for query in golden.queries
    )
    return replace(golden, queries=queries)


TUNE_HALF: Final[Half] = "tune"
_SIGNIFICANCE: Final = 0.05
_REMEDY: Final = 'Give half of the questions "split": "tune"; a sweep uses only those'

OpenIngestion: TypeAlias = "Callable[[Settings], IngestionContext]"

PRIMARY: Final = (SECTION, name_budget(CONTEXT_BUDGETS_TOKENS[0]))
"""Level and measure that designs are compared by; chunks of any size get equal token budgets."""

COLUMNS: Final = (PRIMARY, (SECTION, SUCCESS), (SECTION, NDCG), (DOCUMENT, SUCCESS))

PRESENT: Final = "present settings"


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A design with its measures on the tuning half of the golden set.

    Attributes:
        cell: Name of the design: its changed setting, such as `chunk_max_tokens=700`, or
            `present settings`.
        measures: Means and 95% intervals of the measures.
        test: Paired test of the design against the present settings, with the measure `PRIMARY`.
        p_value: The p-value of `test`, corrected (Holm) for the number of compared designs.
        overrides: The changed setting with its value; empty for the present settings.
    """

    cell: str
    measures: Summary
    test: PairedTest
    p_value: float
    overrides: dict[str, str]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The outcome of a sweep.

    Attributes:
        winner: The design with the largest significant advantage over the present settings; None if
            no design is significantly better.
        rows: The present settings first, then the designs in the given order.
    """

    winner: str | None
    rows: tuple[SweepRow, ...]


def sweep_book(
    settings: Settings,
    axes: Mapping[str, Sequence[str]],
    test_set: Path | None,
    open_ingestion: OpenIngestion,
    tell: Callable[[str], object],
) -> SweepResult:
    """Evaluate the present settings and designs that change one of them, and compare the results.

    The designs and the test set are checked before the first collection is built.

    Args:
        settings: The present settings.
        axes: Values to try, by setting name.
        test_set: JSON file of questions, or None for the choice of `choose_test_set`.
        open_ingestion: Opens the ingestion for the settings of a design.
        tell: Is called with the name of each design before its evaluation.

    Raises:
        MissingDependencyError: A library of the `pipeline` extra is not installed.
        ConfigurationError: A design sets an invalid value or names an unknown model; or the test
            set is missing or has no answerable question in its tuning half.
        GoldenSetError: The test set is malformed, or names a page or heading that does not exist.
        SweepCellError: A document could not be indexed. Designs with different documents cannot be
            compared.
        StoreLockedError: Another sweep is building or evaluating one of the designs.
    """
    check_libraries()
    designs: list[dict[str, str]] = [{}]
    designs += [{name: value} for name, values in axes.items() for value in values]
    chosen = [load_settings(**(settings.model_dump() | design)) for design in designs]
    for each in chosen[1:]:
        open_ingestion(each)
    require_tune_half(read_book(settings, choose_test_set(settings, test_set))[0])
    reports = []
    for design, each in zip(designs, chosen, strict=True):
        name = name_design(design)
        tell(name)
        reports.append(_evaluate_design(name, settings, each, test_set, open_ingestion))
    return compare_designs(designs, reports)


def name_design(design: Mapping[str, str]) -> str:
    """Return the changed setting with its value, or `present settings`."""
    return ", ".join(f"{name}={value}" for name, value in design.items()) or PRESENT


def require_tune_half(golden: GoldenSet) -> None:
    """Check that a golden set has an answerable question in its tuning half.

    Raises:
        ConfigurationError: The tuning half has no answerable question.
    """
    if not any(query.expected for query in golden.queries if query.half == TUNE_HALF):
        raise ConfigurationError(
            "--test-set", "the tuning half has no answerable question", _REMEDY
        )


def _evaluate_design(
    design: str,
    settings: Settings,
    chosen: Settings,
    test_set: Path | None,
    open_ingestion: OpenIngestion,
) -> EvaluationReport:
    """Build a collection with the chosen settings, evaluate it, and return the report.

    Only texts that are missing from the cache are embedded. The collection has its own name
    and is kept until the next ingest of the book, so that a repeated sweep indexes only what
    changed. The book's own collection and reports do not change. The build does not run in Dagster,
    because an experiment needs no entry in the history of runs.
    """
    digest = hashlib.sha256(f"{design} {open_ingestion(chosen).space}".encode()).hexdigest()[:8]
    name = name_cell(settings.qdrant_collection, digest)
    chosen = chosen.model_copy(update={"qdrant_collection": name})

    def ingest() -> None:
        events = run_ingestion(open_ingestion(chosen), IngestionRequest(), f"sweep-{digest}")
        failures = [event for event in events if isinstance(event, DocFailure)]
        if failures:
            raise SweepCellError(design, [(each.doc_path, each.message) for each in failures])

    folder = settings.state_dir / "sweep" / digest
    with hold_lock(locate_cell_lock(settings, name), settings.ingest_lock_timeout_s):
        return evaluate_book(
            chosen, test_set, answering=Answering.NONE, report_dir=folder, ingest=ingest
        ).report


def compare_designs(
    designs: Sequence[dict[str, str]], reports: Sequence[EvaluationReport]
) -> SweepResult:
    """Compare designs with the first one, the present settings, on the tuning half only."""
    present = _read_primary(reports[0])
    tests = [compare_pairs(present, _read_primary(report)) for report in reports]
    corrected = [1.0, *correct_p_values([test.p_value for test in tests[1:]])]
    rows = tuple(
        SweepRow(name_design(design), report.halves[TUNE_HALF], test, p_value, design)
        for design, report, test, p_value in zip(designs, reports, tests, corrected, strict=True)
    )
    better = [row for row in rows if row.test.difference > 0 and row.p_value < _SIGNIFICANCE]
    best = max(better, key=lambda row: row.test.difference, default=None)
    return SweepResult(best.cell if best else None, rows)


def _read_primary(report: EvaluationReport) -> list[float]:
    """Return the values of the tuning half, in the order of the golden set."""
    level, measure = PRIMARY
    return [
        question.scores[level][measure]
        for question in report.questions
        if question.half == TUNE_HALF and question.scores
    ]


def describe_sweep(result: SweepResult) -> tuple[Block, ...]:
    """Return a sweep's result as a table and a sentence that names the winner, if any."""
    heads = (f"{measure}, {level}" for level, measure in COLUMNS)
    rows = tuple(
        (
            row.cell,
            *(show(row.measures.get(level, {}).get(name)) for level, name in COLUMNS),
            f"{row.test.difference:+.3f}",
            f"{row.p_value:.3f}",
        )
        for row in result.rows
    )
    level, measure = PRIMARY
    count = result.rows[0].test.pair_count
    found = (
        f"Compared on {count} questions of the tuning half. {result.winner or 'No design'} is "
        f"significantly better than the present settings in {measure} ({level})."
    )
    return Table(("design", *heads, "difference", "p (Holm)"), rows), found
