"""Evaluation of one book: load its questions, ask its collection, and write the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.connect import connect_chat_model, connect_embedder
from rag_pipeline.answering import Assistant, apply_grounding_policy
from rag_pipeline.answering.voice import read_voice
from rag_pipeline.core.errors import ConfigurationError, DocumentError, require_packages
from rag_pipeline.core.ids import hash_place
from rag_pipeline.evaluation.answers import compare_answers, evaluate_answers, read_resident_mb
from rag_pipeline.evaluation.gates import (
    GateResult,
    check_answers,
    check_conversations,
    check_gates,
)
from rag_pipeline.evaluation.golden_set import (
    DEFINITIONS_PATH,
    QUESTIONS_PATH,
    SELECTED_TEXT_PATH,
    GoldenSet,
    load_conversations,
    load_golden_set,
    validate_against_corpus,
)
from rag_pipeline.evaluation.records import Answering, build_fingerprint
from rag_pipeline.evaluation.rendering import (
    ReportFiles,
    accept,
    load_accepted_answers,
    load_baseline,
    write_report,
)
from rag_pipeline.evaluation.report import evaluate, run_conversations
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.retrieval import open_retriever

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport
    from rag_pipeline.retrieval import RetrievalResult

BASELINE_PATH: Final = QUESTIONS_PATH.with_name("baseline.json")
"""The accepted results of the golden set that comes with this package."""

_LIBRARIES: Final = ("ir_measures", "jinja2", "matplotlib", "scipy")
"""The libraries of the `pipeline` extra that evaluating needs."""


@dataclass(frozen=True, slots=True)
class BookEvaluation:
    """The outcome of an evaluation.

    Attributes:
        report: The measured figures.
        gates: The result of each quality gate; empty if no gate was checked. The gates on answers
            are left out if the answers were not evaluated.
        files: Paths of the written report.
        answers: The evaluation of answers; None if the answers were not evaluated.
    """

    report: EvaluationReport
    gates: tuple[GateResult, ...]
    files: ReportFiles
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
    require_packages("pipeline", *_LIBRARIES)


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
    if accept_baseline:
        _require_gates(checked=not paraphrased and answering is not Answering.NONE)
    test_set = choose_test_set(settings, test_set)
    corpus = parse_corpus(settings)
    documents, golden = corpus.documents, load_for(test_set, corpus)
    chat_model = connect_chat_model(settings) if answering is Answering.CONFIGURED else None
    ingest()
    folder = report_dir or settings.state_dir / "evaluation"
    if paraphrased:
        golden = ask_paraphrased(golden)
        folder /= "paraphrased"
    for module in _LIBRARIES:
        import_module(module)  # now, so that the growth of memory does not include them
    with open_retriever(settings) as retriever:
        memory_before_mb = read_resident_mb()  # the client libraries are loaded
        retriever.probe()
        model = connect_embedder(settings).model
        fingerprint = build_fingerprint(documents, golden, settings, model)
        report = evaluate(golden, retriever, _is_sufficient, documents, fingerprint)
        answers = None
        if answering is not Answering.NONE:
            # The facts of some golden questions stand only in the solutions of quizzes.
            voice = replace(read_voice(settings), tells_solutions=True)
            ask = Assistant(retriever, chat_model, voice=voice).answer
            name = chat_model.name if chat_model else None
            answers = evaluate_answers(
                golden, ask, documents, name, memory_before_mb, settings.chunk_max_tokens
            )
        conversations = () if test_set else run_conversations(load_conversations(), retriever)
    baseline_path = folder / name_baseline(settings, test_set) if test_set else BASELINE_PATH
    baseline = load_baseline(baseline_path)
    if answers is not None:
        answers = compare_answers(answers, load_accepted_answers(baseline_path))
    gates = check_gates(report, baseline)
    gates += check_answers(answers) if answers else ()
    gates += (check_conversations(conversations),)
    gates = () if paraphrased else gates
    files = write_report(report, folder, gates, answers)
    if accept_baseline:
        accept(report, baseline_path, answers)
    return BookEvaluation(report, gates, files, answers)


def _is_sufficient(result: RetrievalResult, question: str) -> bool:
    return apply_grounding_policy(result, question).sufficient_context


def _require_gates(*, checked: bool) -> None:
    """Refuse to save an evaluation as the baseline if it does not check all quality gates."""
    if not checked:
        problem = "only an evaluation that checks all quality gates can become the baseline"
        fix = "Leave out --accept, or --paraphrased and --no-answers"
        raise ConfigurationError("--accept", problem, fix)


def choose_test_set(settings: Settings, test_set: Path | None) -> Path | None:
    """Return the path of the test set: `test_set` if given, else the one named in the settings.

    If the result is None, no file is named anywhere. `load_for` then uses the questions of this
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


def load_for(test_set: Path | None, corpus: Corpus) -> GoldenSet:
    """Load a test set and check that all pages and headings that it names exist in the corpus.

    If `test_set` is None, all cases about the textbook are loaded.

    Raises:
        ConfigurationError: `test_set` is None, but the corpus is not the textbook: it lacks more
            than half of the pages that the questions expect.
        GoldenSetError: The test set is malformed, or names a page or heading that does not exist.
    """
    documents = [parsed.document for parsed in corpus.documents]
    if test_set is not None:
        return validate_against_corpus(load_golden_set(test_set), documents, corpus.problems)
    golden = load_golden_set(QUESTIONS_PATH, SELECTED_TEXT_PATH, DEFINITIONS_PATH)
    expected = {section.doc_path for query in golden.queries for section in query.expected}
    known = {str(document.doc_path) for document in documents} | corpus.problems.keys()
    if len(expected & known) * 2 < len(expected):
        problem = "the questions that come with this package are about another book"
        fix = "Set it, or --test-set, to a JSON file with questions about this book"
        raise ConfigurationError("EVALUATION_TEST_SET", problem, fix)
    return validate_against_corpus(golden, documents, corpus.problems)


def ask_paraphrased(golden: GoldenSet) -> GoldenSet:
    """Return a copy of the golden set in which `paraphrase`, if set, replaces each question.

    A paraphrase is a harder wording of the question.
    """
    queries = tuple(
        replace(query, question=query.paraphrase or query.question) for query in golden.queries
    )
    return replace(golden, queries=queries)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents of a docs folder.

    Attributes:
        documents: Every document that could be parsed.
        problems: Error message of every other document, by its path below the docs folder.
    """

    documents: tuple[ParsedDoc, ...]
    problems: dict[str, str]


def parse_corpus(settings: Settings) -> Corpus:
    """Parse all documents of a book, and collect the errors of those that fail.

    Raises:
        DocsFolderError: The docs folder is missing, cannot be read or contains no document.
    """
    discovery = discover_docs(
        settings.docs_dir,
        manifest=settings.site_manifest,
        sources=settings.sources or (),
        with_unlisted=settings.index_unlisted,
    )
    documents = []
    problems = {failure.doc_path: failure.message for failure in discovery.failures}
    for doc in discovery.docs:
        try:
            documents.append(parse_doc(doc, settings.site))
        except DocumentError as error:
            problems[doc.doc_id] = str(error)
    return Corpus(tuple(documents), problems)
