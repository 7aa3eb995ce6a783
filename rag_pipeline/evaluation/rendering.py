"""An evaluation report as a tree, which becomes HTML or text, and the files it is written to."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.adapters.local_files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.measures import show, tabulate
from rag_pipeline.evaluation.metrics import DOCUMENT, NDCG, SECTION, SUCCESS, hits_section
from rag_pipeline.evaluation.pages import Block, Form, Items, Line, Mark, Section, Table, to_page
from rag_pipeline.evaluation.records import (
    AnswerResult,
    AnswersReport,
    Baseline,
    BaselineQuestion,
    DefinitionAnswer,
    EvaluationReport,
    ExpectedPlace,
    QuestionResult,
    RetrievedChunk,
    SelectionAnswer,
    Summary,
    dump_record,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.gates import GateResult


_COMPARED: Final = ((DOCUMENT, SUCCESS), (SECTION, SUCCESS), (SECTION, NDCG))
"""Level and measure of the figures that are shown by group and over time."""

_HISTORY_RUNS: Final = 30
_SHOWN_CHUNKS: Final = 5
_SHOWN_FAILURES: Final = 3  # failures usually share one cause, so a few examples are enough
_MARKS: Final[dict[str, tuple[str, Form]]] = {
    "passed": ("pass", "good"),
    "failed": ("FAIL", "bad"),
    "not measured": ("----", "near"),
}


def render_html(
    report: EvaluationReport,
    history: Sequence[EvaluationReport],
    gates: Sequence[GateResult] = (),
    answers: AnswersReport | None = None,
) -> str:
    """Return a report as one self-contained HTML page without scripts or requests.

    Args:
        report: The evaluation to show.
        history: Earlier evaluations and this one, oldest first. Of those with the same golden set,
            the page shows the last 30.
        gates: Gate results to show at the top of the page.
        answers: The evaluation of answers to show; None if the answers were not evaluated.
    """
    golden = report.fingerprint.golden_version
    runs = [run for run in history if run.fingerprint.golden_version == golden] or [report]
    earlier = {
        run.created_at[:19].replace("T", " "): run.overall
        for run in reversed(runs[-_HISTORY_RUNS:])
    }
    used = report.fingerprint
    versions = {
        "corpus": used.corpus_version,
        "golden set": used.golden_version,
        "format version": str(used.format_version),
        "model": used.model,
        **used.settings,
    }
    blocks: list[Block] = [
        f"{report.created_at[:19].replace('T', ' ')} UTC, {len(report.questions)} questions",
        Section("Quality gates", describe_gates(report, gates)),
        Section("Measures", describe_measures(report)),
        Section("History", (_tabulate_groups(earlier),)),
        Section("Categories", (_tabulate_groups(report.categories),)),
        Section("Modules", (_tabulate_groups(report.modules),)),
        Section("Questions", _fold("Questions", report.questions, _describe_question)),
        *([describe_answers(answers, with_texts=True)] if answers else []),
        Section(
            "Versions and settings of this evaluation",
            (Items(tuple(f"{name}: {value}" for name, value in versions.items())),),
            "details",
        ),
    ]
    return to_page("Evaluation of search and answers", blocks)


def _describe_question(one: QuestionResult) -> Section:
    badges = [one.category, f"{one.half} half", *one.modules]
    badges += ["recall@5 below 0.5"] if one.flagged else []
    badges += ["all parts needed"] if one.all_of else []
    if one.refused is not None:
        badges.append("refused" if one.refused else "passages sufficient")
    expected = [_describe_expected(place) for place in one.expected]
    found = [_describe_retrieved(chunk, one.expected) for chunk in one.retrieved[:_SHOWN_CHUNKS]]
    lists = (
        Section("Expected", (Items(tuple(expected)),)),
        Section("Found", (Items(tuple(found)),)),
    )
    return _describe_case(one.question, one.query_id, badges, one.error, *lists)


def _describe_expected(place: ExpectedPlace) -> Line:
    part = f" (part {place.group})" if place.group else ""
    text = f" {place.section_heading}{part}: "
    rank = place.section_rank
    if rank is None:
        return Mark(place.doc_path, "code"), text, Mark("not found", "bad")
    form: Form = "good" if rank <= _SHOWN_CHUNKS else "near"
    return Mark(place.doc_path, "code"), text, Mark(f"rank {rank}", form)


def _describe_retrieved(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> Line:
    path = " > ".join(chunk.heading_breadcrumb)
    shown: str | Mark = path
    if any(hits_section(chunk, place) for place in expected):
        shown = Mark(path, "good")
    elif any(place.doc_path == chunk.doc_path for place in expected):
        shown = Mark(path, "near")
    return Mark(chunk.doc_path, "code"), " ", shown, f" ({chunk.score:.3f}): {chunk.excerpt}"


def _describe_case(
    title: str, name: str, badges: Iterable[str], error: str | None, *blocks: Block
) -> Section:
    """Return a question, selected-text case or term with its result as a box."""
    marks = [part for badge in badges for part in (Mark(badge, "badge"), " ")]
    failed = (Mark(error, "bad"),) if error else ()
    return Section(title, ((*marks, Mark(name, "code")), *failed, *blocks), "article")


def describe_gates(report: EvaluationReport, gates: Sequence[GateResult]) -> tuple[Block, ...]:
    """Return a sentence that says if the gates passed, and a list.

    The list has the failed gates, then the others and the first failures.
    """
    failed = sum(not gate.passed for gate in gates)
    verdict = f"PASSED: none of the {len(gates)} gates failed."
    if failed:
        verdict = f"FAILED: {failed} of {len(gates)} gates failed."
    lines: list[Line] = [
        (Mark(*_MARKS[gate.verdict]), " ", Mark(gate.name, "code"), f": {gate.sentence}")
        for gate in sorted(gates, key=lambda gate: gate.passed)
    ]
    if report.failure_count:
        errors = ((one.query_id, one.error) for one in report.questions)
        lines += [f"Failed questions: {report.failure_count}", *_list_failures(errors)]
    return verdict if gates else "No gates were checked.", Items(tuple(lines))


def _list_failures(errors: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return the names and the first lines of the first errors."""
    failed = [f"{name}: {error.splitlines()[0]}" for name, error in errors if error]
    return failed[:_SHOWN_FAILURES]


def describe_measures(report: EvaluationReport) -> tuple[Block, ...]:
    """Return tables of the measures of the search, for all questions and each half.

    Below them are lines about latency and failures.
    """
    columns: dict[str, Summary] = {"all": report.overall, **report.halves}
    rows = tuple(
        (level, measure, *(show(one.get(level, {}).get(measure)) for one in columns.values()))
        for level, values in report.overall.items()
        for measure in values
    )
    refusals = tuple(
        (name, label, figure)
        for name, scores in report.refusal.items()
        for label, figure, _ in tabulate(scores)
    )
    latency = report.latency
    p50, p95 = (
        "has no value (too many questions failed)" if value is None else f"{value:.1f} ms"
        for value in (latency.p50_ms, latency.p95_ms)
    )
    flagged = sum(question.flagged for question in report.questions)
    lines = (
        f"latency: p50 {p50}, p95 {p95} (at most 500 ms), first query {latency.cold_ms:.0f} ms",
        f"flagged (recall@5 below 0.5): {flagged}; failures: {report.failure_count}",
    )
    return (
        Table(("level", "measure", *columns), rows),
        Table(("group", "measure", "share"), refusals),
        Items(lines),
    )


def _tabulate_groups(groups: Mapping[str, Summary]) -> Table:
    rows = tuple(
        (name, *(show(summary.get(level, {}).get(one)) for level, one in _COMPARED))
        for name, summary in groups.items()
    )
    return Table(("group", *(f"{one}, {level}" for level, one in _COMPARED)), rows)


def describe_answers(report: AnswersReport, *, with_texts: bool = False) -> Section:
    """Return an evaluation of answers as a tree.

    It has the measures over all questions, each half and each category with their goals, and the
    first failures. A missed goal is no failure.

    Args:
        report: The evaluation of answers.
        with_texts: Also show each answer, in folded sections.
    """
    groups = {
        "all": report.overall,
        **report.halves,
        **report.categories,
        "selected text": report.selected_text,
        "glossary": report.definitions,
        "passages": report.passages,
        "model": report.written,
    }
    rows = [(name, *row) for name, scores in groups.items() for row in tabulate(scores)]
    errors = [(one.query_id, one.error) for one in report.questions]
    errors += [(one.case_id, one.error) for one in report.selections]
    errors += [(one.term, one.error) for one in report.terms]
    lines = (f"failed answers: {report.failure_count}", *_list_failures(errors))
    title = f"Answers by {report.model}" if report.model else "Answers without a model"
    blocks: list[Block] = [Table(("group", "measure", "value", "goal"), tuple(rows)), Items(lines)]
    if with_texts:
        blocks += [
            *_fold("Answers", report.questions, _describe_answer),
            *_fold("Answers from selected text", report.selections, _describe_selection),
            *_fold("Main passages about terms", report.terms, _describe_term),
        ]
    return Section(title, tuple(blocks))


def _describe_answer(one: AnswerResult) -> Section:
    badges = (one.category, f"{one.half} half", one.kind or "failed")
    found = _list_texts(
        ("found", one.facts_found, "good"),
        ("missed", one.facts_missed, "bad"),
        ("not whole", one.broken_passages, "bad"),
        ("not in its sources", one.unsupported, "bad"),
        ("cited", one.sections, "badge"),
    )
    quote = Mark(one.text, "quote")
    return _describe_case(one.question, one.query_id, badges, one.error, found, quote)


def _list_texts(*found: tuple[str, Iterable[str], Form]) -> Items:
    """Return a list with a line for each text of each group, after the name of the group."""
    return Items(
        tuple((f"{name}: ", Mark(text, form)) for name, texts, form in found for text in texts)
    )


def _describe_selection(one: SelectionAnswer) -> Section:
    badges = (one.relation, one.kind or "failed")
    found = _list_texts(("leaked", one.leaks, "bad"), ("not whole", one.broken_passages, "bad"))
    quote = Mark(one.text, "quote")
    return _describe_case(one.question, one.case_id, badges, one.error, found, quote)


def _describe_term(one: DefinitionAnswer) -> Section:
    badges = [one.kind or "failed", "defined" if one.defined else "not defined"]
    badges += [one.flaw] if one.flaw else []
    quote = Mark(one.passage, "quote")
    return _describe_case(one.question, one.place, badges, one.error, quote)


_Result = TypeVar(
    "_Result", "QuestionResult", "AnswerResult", "SelectionAnswer", "DefinitionAnswer"
)


def _fold(
    title: str, results: Sequence[_Result], describe: Callable[[_Result], Section]
) -> tuple[Section, Section]:
    """Return the results in two folded sections: those with a fault, and those that are right."""
    wrong = tuple(describe(one) for one in results if not one.is_right)
    right = tuple(describe(one) for one in results if one.is_right)
    return (
        Section(f"{title}: with a fault ({len(wrong)})", wrong, "details"),
        Section(f"{title}: right ({len(right)})", right, "details"),
    )


_HISTORY_DIR: Final = "history"
_LOG: Final = logging.getLogger(__name__)


def write_report(
    report: EvaluationReport,
    folder: Path,
    gates: Sequence[GateResult] = (),
    answers: AnswersReport | None = None,
) -> None:
    """Write a report as `report.json` and `report.html`, and add a summary to `history/`.

    An evaluation of answers, if there is one, is written as `answers.json` and shown on the page.
    The summary is the report without its questions. The HTML page shows the last summaries in
    `history/` that have the same golden set.
    """
    summary = replace(report, questions=())
    stamp = "".join(char for char in report.created_at if char.isdigit())[:20]
    write_bytes_atomically(folder / _HISTORY_DIR / f"{stamp}.json", dump_record(summary))
    write_bytes_atomically(folder / "report.json", dump_record(report))
    page = render_html(report, load_history(folder), gates, answers)
    write_text_atomically(folder / "report.html", page)
    if answers is not None:
        write_bytes_atomically(folder / "answers.json", dump_record(answers))


def load_report(path: Path) -> EvaluationReport:
    """Read a report from its JSON file.

    Raises:
        EvaluationFileError: The file is missing, damaged or has another format version.
    """
    fix = "Delete the file, or run `rag-pipeline evaluate` again"
    return read_record(path, EvaluationReport, fix)


def load_history(folder: Path) -> tuple[EvaluationReport, ...]:
    """Read the summaries that `write_report` saved in the folder's `history/`, oldest first.

    A summary is a report without questions. Unreadable files are logged and left out.
    """
    reports = []
    for path in sorted((folder / _HISTORY_DIR).glob("*.json")):
        try:
            reports.append(load_report(path))
        except EvaluationFileError as error:
            _LOG.warning("the history leaves out an unreadable report: %s", error)
    return tuple(reports)


def accept(report: EvaluationReport, path: Path, answers: AnswersReport | None = None) -> Baseline:
    """Save a report as the baseline that later reports are compared with, and return the baseline.

    An earlier baseline at this path is replaced.

    Raises:
        BaselineRefusedError: The system failed on a question, selected-text case or term. A failure
            counts as a miss, and a baseline of misses would hide later losses.
    """
    errors = [one.error for one in report.questions if one.error is not None]
    if answers is not None:
        asked = (*answers.questions, *answers.selections, *answers.terms)
        errors += [one.error for one in asked if one.error is not None]
    if errors:
        raise BaselineRefusedError(path, len(errors), errors[0])
    baseline = Baseline(
        1,
        report.created_at,
        report.fingerprint,
        {
            result.query_id: BaselineQuestion(result.question_hash, result.scores)
            for result in report.questions
            if result.answerable
        },
    )
    write_bytes_atomically(path, dump_record(baseline))
    return baseline


def load_baseline(path: Path) -> Baseline | None:
    """Read the accepted baseline from its file; return None if the file does not exist.

    Raises:
        EvaluationFileError: The file is damaged or has another format version.
    """
    if not path.exists():
        return None
    fix = "Delete the file, then run `rag-pipeline evaluate --accept`"
    return read_record(path, Baseline, fix)
