"""The evaluation of a book: golden set, corpus and collection of some settings brought together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.connect import connect_embedder
from rag_pipeline.answering import apply_grounding_policy
from rag_pipeline.core.errors import ConfigurationError, DocumentError, MissingDependencyError
from rag_pipeline.core.ids import hash_place
from rag_pipeline.evaluation.fingerprint import build_fingerprint
from rag_pipeline.evaluation.gates import GateBounds, GateResult, check_gates
from rag_pipeline.evaluation.golden_set import (
    QUESTIONS_PATH,
    SELECTED_TEXT_PATH,
    GoldenSet,
    load_golden_set,
    validate_against_corpus,
)
from rag_pipeline.evaluation.report import evaluate
from rag_pipeline.evaluation.report_files import ReportFiles, accept, load_baseline, write_report
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.retrieval import open_retriever

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.models import ParsedDoc, SiteSettings
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.records import EvaluationReport

BASELINE_PATH: Final = QUESTIONS_PATH.with_name("baseline.json")
"""Accepted results of the golden set that comes with this package."""

_LIBRARIES: Final = {
    "ir_measures": "ir-measures",
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "scipy": "scipy",
}
"""Modules of the `pipeline` extra that an evaluation imports on the way, and their packages."""


@dataclass(frozen=True, slots=True)
class BookEvaluation:
    """A report, the verdicts on it, and where both were written."""

    report: EvaluationReport
    gates: tuple[GateResult, ...]
    files: ReportFiles

    @property
    def passed(self) -> bool:
        """True if every gate passed."""
        return all(gate.passed for gate in self.gates)


def evaluate_book(
    settings: Settings,
    test_set: Path | None = None,
    *,
    accept_baseline: bool = False,
    paraphrased: bool = False,
    report_dir: Path | None = None,
    ingest: Callable[[], None] = lambda: None,
) -> BookEvaluation:
    """Ask a golden set's questions, judge the results, and write the report.

    Args:
        settings: The docs folder and the collection, which must have been ingested.
        test_set: Questions in the form of the golden set. None takes the file that the settings
            name, or else the questions of the textbook.
        accept_baseline: Make this result the one that later ones are compared with.
        paraphrased: Ask in the harder wording of the questions that have one; nothing is gated.
        report_dir: Folder of the report; None for `evaluation/` in the state folder.
        ingest: Called after the test set was checked and before the collection is opened.

    Raises:
        MissingDependencyError: A library of the `pipeline` extra is not installed.
        ConfigurationError: The book has no test set, or options contradict each other.
        GoldenSetError: The test set is malformed, or expects a page or heading that is missing.
        StoreError: The collection is missing, of another model, or not reached.
        BaselineRefusedError: A question failed, so the result cannot be accepted. It is written.
    """
    for module, package in _LIBRARIES.items():
        if find_spec(module) is None:
            raise MissingDependencyError(package, "pipeline")
    if accept_baseline and paraphrased:
        problem = "the harder wording has no baseline, since nothing is gated by it"
        raise ConfigurationError("--accept", problem, "Leave out --accept or --paraphrased")
    test_set = choose_test_set(settings, test_set)
    corpus = parse_corpus(settings.docs_dir, settings.site)
    documents, golden = corpus.documents, load_for(test_set, corpus)
    ingest()
    folder = report_dir or settings.state_dir / "evaluation"
    if paraphrased:
        golden = ask_paraphrased(golden)
        folder /= "paraphrased"
    with open_retriever(settings) as retriever:
        retriever.probe()
        model = connect_embedder(settings).model
        fingerprint = build_fingerprint(documents, golden, settings, model)
        report = evaluate(golden, retriever, apply_grounding_policy, documents, fingerprint)
    baseline_path = folder / name_baseline(settings, test_set) if test_set else BASELINE_PATH
    baseline = load_baseline(baseline_path)
    gates = () if paraphrased else check_gates(report, baseline, GateBounds())
    files = write_report(report, folder, gates)
    if accept_baseline:
        accept(report, baseline_path)
    return BookEvaluation(report, gates, files)


def choose_test_set(settings: Settings, test_set: Path | None) -> Path | None:
    """Return the test set that was named, or that of the settings; None for the textbook's own."""
    if test_set is None and settings.evaluation_test_set:
        return Path(settings.evaluation_test_set)
    return test_set


def name_baseline(settings: Settings, test_set: Path) -> str:
    """Name the baseline file of a test set; test sets of one name in two folders have one each."""
    place = hash_place(test_set.resolve(), settings.docs_dir.resolve())
    return f"baseline-{test_set.stem}-{place}.json"


def load_for(test_set: Path | None, corpus: Corpus) -> GoldenSet:
    """Load a test set, or the textbook's own with its selected-text cases, checked against a
    corpus.

    Raises:
        ConfigurationError: No test set was named, and the corpus is not the textbook.
        GoldenSetError: The test set is malformed, or expects a page or heading that is missing.
    """
    documents = [parsed.document for parsed in corpus.documents]
    if test_set is not None:
        return validate_against_corpus(load_golden_set(test_set), documents, corpus.problems)
    golden = load_golden_set(QUESTIONS_PATH, SELECTED_TEXT_PATH)
    expected = {section.doc_path for query in golden.queries for section in query.expected}
    known = {str(document.doc_path) for document in documents} | corpus.problems.keys()
    if len(expected & known) * 2 < len(expected):
        problem = "the questions that come with this package are those of another book"
        fix = "Name a file of your own there or with --test-set"
        raise ConfigurationError("EVALUATION_TEST_SET", problem, fix)
    return validate_against_corpus(golden, documents, corpus.problems)


def ask_paraphrased(golden: GoldenSet) -> GoldenSet:
    """Return the set with each question in its harder wording, if it has one."""
    queries = tuple(
        replace(query, question=query.paraphrase or query.question) for query in golden.queries
    )
    return replace(golden, queries=queries)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents of a folder. Those in `problems`, by path, cannot be read or indexed."""

    documents: tuple[ParsedDoc, ...]
    problems: dict[str, str]


def parse_corpus(docs_dir: Path, site: SiteSettings) -> Corpus:
    """Parse all documents of a folder."""
    discovery = discover_docs(docs_dir)
    documents = []
    problems = {failure.doc_path: failure.message for failure in discovery.failures}
    for doc in discovery.docs:
        try:
            documents.append(parse_doc(doc, site))
        except DocumentError as error:
            problems[doc.doc_id] = str(error)
    return Corpus(tuple(documents), problems)
