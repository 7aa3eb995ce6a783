"""An evaluation report as HTML, terminal text and Markdown, and the files it is written to."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import TypeAdapter

from rag_pipeline.adapters.local_files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.answers import BASELINE_VERSION, AnswersBaseline, make_baseline
from rag_pipeline.evaluation.metrics import (
    DOCUMENT,
    NDCG,
    SECTION,
    SUCCESS,
    hits_section,
    show_interval,
)
from rag_pipeline.evaluation.pages import TEMPLATES, Items, Section, Table, to_html
from rag_pipeline.evaluation.records import (
    REPORT_VERSION,
    AnswersReport,
    Baseline,
    BaselineQuestion,
    EvaluationReport,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.pages import Block
    from rag_pipeline.evaluation.records import (
        AnswerResult,
        ExpectedPlace,
        Latency,
        QuestionResult,
        RetrievedChunk,
        Spread,
        Summary,
    )


_COMPARED: Final = ((DOCUMENT, SUCCESS), (SECTION, SUCCESS), (SECTION, NDCG))
"""Level and measure of the figures that are shown by group and over time."""

_HISTORY_RUNS: Final = 30
_SHOWN_CHUNKS: Final = 5
_SHOWN_FAILURES: Final = 3  # failures usually share one cause, so a few examples are enough
_MARKS: Final = {"passed": "pass", "failed": "FAIL", "not measured": "----"}


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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # only the `pipeline` extra has it

    golden = report.fingerprint.golden_version
    runs = [run for run in history if run.fingerprint.golden_version == golden] or [report]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja").render(
        report=report,
        gates=gates,
        measures=to_html(describe_measures(report)),
        categories=to_html([_tabulate_groups(report.categories)]),
        modules=to_html([_tabulate_groups(report.modules)]),
        history=to_html([_tabulate_groups(_name_runs(runs))]),
        folds=_fold_questions(report.questions),
        judge=_judge,
        shown_chunks=_SHOWN_CHUNKS,
        answers=answers,
        answer_measures=to_html([describe_answers(answers, report.latency)]) if answers else "",
        answer_folds=fold_answers(answers.questions) if answers else {},
    )


def _fold_questions(questions: Sequence[QuestionResult]) -> dict[str, list[QuestionResult]]:
    """Return the questions in three lists by title, the worst first."""

    def grade(question: QuestionResult) -> int:
        misjudged = question.refused is not None and question.refused is question.answerable
        missed = question.scores.get(SECTION, {}).get(SUCCESS, 1.0) < 1
        if question.flagged or question.error is not None:
            return 0
        return 1 if misjudged or missed else 2

    titles = (
        "Flagged: recall@5 below 0.5, or failed",
        "Right page but wrong section, or wrong decision to answer or refuse",
        "Correct",
    )
    return fold(questions, titles, grade)


def _judge(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> str:
    """Return the CSS class of a retrieved chunk.

    The class is `good` for an expected section, `near` for another section of an expected page, and
    empty otherwise.
    """
    if any(hits_section(chunk, place) for place in expected):
        return "good"
    return "near" if any(place.doc_path == chunk.doc_path for place in expected) else ""


def render_verdict(report: EvaluationReport, gates: Sequence[GateResult]) -> str:
    """Return a text of several lines that says if the gates passed.

    The first line is the verdict. The failed gates follow, then the others and the first failures.
    """
    failed = [gate for gate in gates if not gate.passed]
    if not gates:
        verdict = "No gates were checked."
    elif failed:
        verdict = f"FAILED: {len(failed)} of {len(gates)} gates failed."
    else:
        verdict = f"PASSED: none of the {len(gates)} gates failed."
    ordered = sorted(gates, key=lambda gate: gate.passed)
    shown = [f"{_MARKS[gate.verdict]} {gate.name}: {gate.sentence}" for gate in ordered]
    if report.failure_count:
        shown += [f"Failed questions: {report.failure_count}", *_name_failures(report)]
    return "\n".join([verdict, *shown]) + "\n"


def describe_measures(report: EvaluationReport) -> tuple[Block, ...]:
    """Return a table with a row per measure and columns for all questions and for each half.

    Below it are lines about refusals, latency and failures.
    """
    columns: dict[str, Summary] = {"all": report.overall, **report.halves}
    rows = tuple(
        (
            level,
            measure,
            *(show_interval(one.get(level, {}).get(measure)) for one in columns.values()),
        )
        for level, values in report.overall.items()
        for measure in values
    )
    return Table(("level", "measure", *columns), rows), Items(tuple(_describe_rest(report)))


def _name_runs(runs: Sequence[EvaluationReport]) -> dict[str, Summary]:
    """Return the measures of the last evaluations by their times and commits, newest first."""
    return {
        f"{run.created_at[:19].replace('T', ' ')} ({run.fingerprint.commit or 'unknown'})": (
            run.overall
        )
        for run in reversed(runs[-_HISTORY_RUNS:])
    }


def _tabulate_groups(groups: Mapping[str, Summary]) -> Table:
    rows = tuple(
        (name, *(show_interval(summary.get(level, {}).get(one)) for level, one in _COMPARED))
        for name, summary in groups.items()
    )
    return Table(("group", *(f"{one}, {level}" for level, one in _COMPARED)), rows)


def _describe_rest(report: EvaluationReport) -> list[str]:
    """Return lines that describe refusals, latency and failures."""
    lines = []
    for name, scores in report.refusal.items():
        precision = "not measured" if scores.precision is None else f"{scores.precision:.3f}"
        lines.append(
            f"refusals ({name}): precision {precision}, recall {show_interval(scores.recall)}, "
            f"answerable questions not refused {show_interval(scores.answered)}"
        )
    latency = report.latency
    p50, p95 = (
        "has no value (too many questions failed)" if value is None else f"{value:.1f} ms"
        for value in (latency.p50_ms, latency.p95_ms)
    )
    lines.append(f"latency: p50 {p50}, p95 {p95}, first query {latency.cold_ms:.0f} ms")
    flagged = sum(question.flagged for question in report.questions)
    lines.append(f"flagged (recall@5 below 0.5): {flagged}; failures: {report.failure_count}")
    return lines


def _name_failures(report: EvaluationReport) -> list[str]:
    failed = [
        f"  {one.query_id}: {one.error.splitlines()[0]}" for one in report.questions if one.error
    ]
    return failed[:_SHOWN_FAILURES]


_Result = TypeVar("_Result")


def list_goals(report: AnswersReport, retrieval: Latency) -> Table:
    """Return a table of the measured values beside the project's goals. A missed one is no failure.

    Values with a quality gate are not repeated. Times and memory are compared with the budgets of
    the validation plan and of SC-006.

    Args:
        report: The evaluation of answers.
        retrieval: The times of retrieval, without answering.
    """
    overall = report.overall
    rows = [
        ("answerable questions refused", show_interval(overall.wrongly_refused), "at most 0.05"),
        ("words per answer", _show_spread(overall.words), "at most 250 (without a model)"),
        (
            "time of retrieval",
            f"median {_show_ms(retrieval.p50_ms)}, p95 {_show_ms(retrieval.p95_ms)}",
            "p95 at most 500 ms",
        ),
    ]
    goals = {"extracted": "p95 at most 500 ms", "generated": "p95 at most 5000 ms"}
    rows += [
        (f"time of {kind} answers", _show_spread(spread, " ms"), goals[kind])
        for kind, spread in report.latency_ms.items()
        if kind in goals
    ]
    growth = report.memory.growth_mb
    shown = "not measured" if growth is None else f"{growth:.0f} MB"
    memory = f"{shown} (the whole process, with ingestion: at most {report.memory.peak_mb:.0f} MB)"
    rows.append(("growth of memory while answering", memory, "at most 256 MB"))
    return Table(("measure", "value", "goal"), tuple(rows))


def describe_answers(report: AnswersReport, retrieval: Latency) -> Section:
    """Return an evaluation of answers as a tree.

    It has the goals, the shares with their 95% intervals over all questions, each half and each
    category, and then words, sections, times and the first failures.

    Args:
        report: The evaluation of answers.
        retrieval: The times of retrieval, without answering.
    """
    groups = {"all": report.overall, **report.halves, **report.categories}
    rows = tuple(
        (name, measure, show_interval(share))
        for name, scores in groups.items()
        for measure, share in {
            "facts contained": scores.facts,
            "first passage from a right section": scores.first_passage,
            "answered": scores.answered,
            "answered, no answer in the book": scores.wrongly_answered,
            "refused although answerable": scores.wrongly_refused,
            "refused, no answer in the book": scores.rightly_refused,
            "dangling start": scores.dangling,
            "sentences with support": scores.supported,
        }.items()
        if share
    )
    lines = [
        f"words per answer: {_show_spread(report.overall.words)}",
        f"sections cited per answer: {_show_spread(report.overall.sections, digits=1)}",
    ]
    lines += [
        f"answering time ({kind}): {_show_spread(spread, ' ms')}"
        for kind, spread in report.latency_ms.items()
    ]
    errors = [(one.query_id, one.error) for one in report.questions]
    errors += [(one.case_id, one.error) for one in report.selections]
    errors += [(one.term, one.error) for one in report.terms]
    failed = [f"{name}: {error.splitlines()[0]}" for name, error in errors if error]
    lines += [f"failed answers: {report.failure_count}", *failed[:_SHOWN_FAILURES]]
    title = f"Answers by {report.model}" if report.model else "Answers without a model"
    shares = Table(("group", "measure", "share"), rows)
    return Section(title, (list_goals(report, retrieval), shares, Items(tuple(lines))))


def fold_answers(results: Sequence[AnswerResult]) -> dict[str, list[AnswerResult]]:
    """Return the answers in four lists by title, the worst first."""

    def grade(result: AnswerResult) -> int:
        misjudged = result.refused is result.answerable
        if result.accepted is not None and result.accepted.lost:
            return 0
        if result.error is not None or result.facts_missed or misjudged:
            return 1
        return 3 if result.has_facts or result.refused else 2

    titles = (
        "Facts of the accepted answer lost",
        "Facts missed, failed, wrongly refused or wrongly answered",
        "No facts to check",
        "All facts found, or rightly refused",
    )
    return fold(results, titles, grade)


def fold(
    results: Iterable[_Result], titles: Sequence[str], grade: Callable[[_Result], int]
) -> dict[str, list[_Result]]:
    """Return the results in lists by title. Each list becomes a foldable part of the HTML page.

    Args:
        results: The results in the order in which each list shows them.
        titles: The title of each list.
        grade: Function that returns the index of a result's title.
    """
    folds: list[list[_Result]] = [[] for _ in titles]
    for result in results:
        folds[grade(result)].append(result)
    return dict(zip(titles, folds, strict=True))


def _show_ms(value: float | None) -> str:
    return "has no value (failures)" if value is None else f"{value:.0f} ms"


def _show_spread(spread: Spread | None, unit: str = "", digits: int = 0) -> str:
    if spread is None:
        return "not measured"
    values = {"mean": spread.mean, "median": spread.p50, "p95": spread.p95}
    shown = [
        f"{name} has no value (failures)" if value is None else f"{name} {value:.{digits}f}{unit}"
        for name, value in values.items()
    ]
    return f"{', '.join(shown)}, n={spread.count}"


_HISTORY_DIR: Final = "history"
_ACCEPT_AGAIN: Final = "Delete the file, then run `rag-pipeline evaluate --accept`"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The paths of a written report.

    Attributes:
        answers_path: Path of the evaluation of answers; None if the answers were not evaluated.
    """

    json_path: Path
    html_path: Path
    answers_path: Path | None = None


_REPORT: Final = TypeAdapter(EvaluationReport)
_ANSWERS: Final = TypeAdapter(AnswersReport)
_BASELINE: Final = TypeAdapter(Baseline)
_ANSWERS_BASELINE: Final = TypeAdapter(AnswersBaseline)


def write_report(
    report: EvaluationReport,
    folder: Path,
    gates: Sequence[GateResult] = (),
    answers: AnswersReport | None = None,
) -> ReportFiles:
    """Write a report as `report.json` and `report.html`, and add a summary to `history/`.

    An evaluation of answers, if there is one, is written as `answers.json` and shown on the page.
    The summary is the report without its questions. The HTML page shows the last summaries in
    `history/` that have the same golden set.
    """
    summary = replace(report, questions=())
    stamp = "".join(char for char in report.created_at if char.isdigit())[:20]
    write_bytes_atomically(folder / _HISTORY_DIR / f"{stamp}.json", dump_report(summary))
    answers_path = folder / "answers.json"
    files = ReportFiles(
        folder / "report.json", folder / "report.html", answers_path if answers else None
    )
    write_bytes_atomically(files.json_path, dump_report(report))
    page = render_html(report, load_history(folder), gates, answers)
    write_text_atomically(files.html_path, page)
    if answers is not None:
        write_bytes_atomically(answers_path, _ANSWERS.dump_json(answers, indent=1) + b"\n")
    return files


def dump_report(report: EvaluationReport) -> bytes:
    """Return a report as UTF-8 encoded JSON that `load_report` can read."""
    return _REPORT.dump_json(report, indent=1) + b"\n"


def load_report(path: Path) -> EvaluationReport:
    """Read a report from its JSON file.

    Raises:
        EvaluationFileError: The file is missing, damaged or has another format version.
    """
    fix = "Delete the file, or run `rag-pipeline evaluate` again"
    return read_record(path, _REPORT, REPORT_VERSION, fix)


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

    An earlier baseline at this path is replaced. The answers, if given, are saved beside it.

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
        REPORT_VERSION,
        report.created_at,
        report.fingerprint,
        {
            result.query_id: BaselineQuestion(result.question_hash, result.scores)
            for result in report.questions
            if result.answerable
        },
    )
    write_bytes_atomically(path, _BASELINE.dump_json(baseline, indent=1) + b"\n")
    if answers is not None:
        kept = _ANSWERS_BASELINE.dump_json(make_baseline(answers), indent=1)
        write_bytes_atomically(locate_answers(path), kept + b"\n")
    return baseline


def locate_answers(path: Path) -> Path:
    """Return the path of the accepted answers that belong to the baseline at `path`."""
    return path.with_name(f"{path.stem}_answers{path.suffix}")


def load_baseline(path: Path) -> Baseline | None:
    """Read the accepted baseline from its file; return None if the file does not exist.

    Raises:
        EvaluationFileError: The file is damaged or has another format version.
    """
    if not path.exists():
        return None
    return read_record(path, _BASELINE, REPORT_VERSION, _ACCEPT_AGAIN)


def load_accepted_answers(path: Path) -> AnswersBaseline | None:
    """Read the accepted answers of the baseline at `path`; return None if there are none.

    Raises:
        EvaluationFileError: The file is damaged or has another format version.
    """
    place = locate_answers(path)
    if not place.exists():
        return None
    return read_record(place, _ANSWERS_BASELINE, BASELINE_VERSION, _ACCEPT_AGAIN)
