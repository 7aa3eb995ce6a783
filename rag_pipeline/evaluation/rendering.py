"""An evaluation report as a tree, which becomes HTML or text, and the files it is written to."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.local_files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.measures import show
from rag_pipeline.evaluation.metrics import DOCUMENT, NDCG, SECTION, SUCCESS
from rag_pipeline.evaluation.pages import Block, Form, Items, Line, Mark, Section, Table, to_page
from rag_pipeline.evaluation.records import (
    AnswersReport,
    Baseline,
    BaselineQuestion,
    EvaluationReport,
    Summary,
    dump_record,
    fold,
    list_failures,
    read_record,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.gates import GateResult


_COMPARED: Final = ((DOCUMENT, SUCCESS), (SECTION, SUCCESS), (SECTION, NDCG))
"""Level and measure of the figures that are shown by group and over time."""

_HISTORY_RUNS: Final = 30
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
        Section("Measures", report.describe_measures()),
        Section("History", (_tabulate_groups(earlier),)),
        Section("Categories", (_tabulate_groups(report.categories),)),
        Section("Modules", (_tabulate_groups(report.modules),)),
        Section("Questions", fold("Questions", report.questions)),
        *([answers.describe(with_texts=True)] if answers else []),
        Section(
            "Versions and settings of this evaluation",
            (Items(tuple(f"{name}: {value}" for name, value in versions.items())),),
            "details",
        ),
    ]
    return to_page("Evaluation of search and answers", blocks)


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
        lines += [f"Failed questions: {report.failure_count}", *list_failures(errors)]
    return verdict if gates else "No gates were checked.", Items(tuple(lines))


def _tabulate_groups(groups: Mapping[str, Summary]) -> Table:
    rows = tuple(
        (name, *(show(summary.get(level, {}).get(one)) for level, one in _COMPARED))
        for name, summary in groups.items()
    )
    return Table(("group", *(f"{one}, {level}" for level, one in _COMPARED)), rows)


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
