"""Files of an evaluation: write and read reports, their history, and accepted baselines."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from rag_pipeline.adapters.local_files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.answers import (
    BASELINE_VERSION,
    AnswersBaseline,
    make_baseline,
)
from rag_pipeline.evaluation.records import (
    REPORT_VERSION,
    AnswersReport,
    Baseline,
    BaselineQuestion,
    EvaluationReport,
)
from rag_pipeline.evaluation.rendering import render_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.gates import GateResult

_HISTORY_DIR: Final = "history"
_ACCEPT_AGAIN: Final = "Delete the file, then run `rag-pipeline evaluate --accept`"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The paths of a written report, and the number of reports in its history folder.

    Attributes:
        answers_path: Path of the evaluation of answers; None if the answers were not evaluated.
    """

    json_path: Path
    html_path: Path
    run_count: int
    answers_path: Path | None = None


_REPORT: Final = TypeAdapter(EvaluationReport)
_ANSWERS: Final = TypeAdapter(AnswersReport)
_BASELINE: Final = TypeAdapter(Baseline)
_ANSWERS_BASELINE: Final = TypeAdapter(AnswersBaseline)
_Versioned = TypeVar("_Versioned", EvaluationReport, Baseline, AnswersBaseline)


def write_report(
    report: EvaluationReport,
    folder: Path,
    gates: Sequence[GateResult] = (),
    answers: AnswersReport | None = None,
) -> ReportFiles:
    """Write a report as `report.json` and `report.html`, and add a summary to `history/`.

    An evaluation of answers, if there is one, is written as `answers.json` and shown on the page.
    The summary is the report without its questions. The HTML page plots
    all summaries in `history/` that have the same golden set.
    """
    summary = replace(report, questions=())
    stamp = "".join(char for char in report.created_at if char.isdigit())[:20]
    write_bytes_atomically(folder / _HISTORY_DIR / f"{stamp}.json", dump_report(summary))
    files = ReportFiles(folder / "report.json", folder / "report.html", 0)
    write_bytes_atomically(files.json_path, dump_report(report))
    history = load_history(folder)
    write_text_atomically(files.html_path, render_html(report, history, gates, answers))
    if answers is not None:
        path = folder / "answers.json"
        files = replace(files, answers_path=path)
        write_bytes_atomically(path, _ANSWERS.dump_json(answers, indent=1) + b"\n")
    return replace(files, run_count=len(history))


def dump_report(report: EvaluationReport) -> bytes:
    """Return a report as UTF-8 encoded JSON that `load_report` can read."""
    return _REPORT.dump_json(report, indent=1) + b"\n"


def load_report(path: Path) -> EvaluationReport:
    """Read a report from its JSON file.

    Raises:
        EvaluationFileError: The file is missing, damaged or has another format version.
    """
    return _read(path, _REPORT, "Delete the file, or run `rag-pipeline evaluate` again")


def load_history(folder: Path) -> tuple[EvaluationReport, ...]:
    """Read the summaries that `write_report` saved in the folder's `history/`, oldest first.

    A summary is a report without questions. Unreadable files are logged and left out.
    """
    reports = []
    for path in sorted((folder / _HISTORY_DIR).glob("*.json")):
        try:
            reports.append(load_report(path))
        except EvaluationFileError as error:
            _LOG.warning("the history plot leaves out an unreadable report: %s", error)
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
    return _read(path, _BASELINE, _ACCEPT_AGAIN) if path.exists() else None


def load_accepted_answers(path: Path) -> AnswersBaseline | None:
    """Read the accepted answers of the baseline at `path`; return None if there are none.

    Raises:
        EvaluationFileError: The file is damaged or has another format version.
    """
    place = locate_answers(path)
    return _read(place, _ANSWERS_BASELINE, _ACCEPT_AGAIN) if place.exists() else None


def _read(path: Path, adapter: TypeAdapter[_Versioned], fix: str) -> _Versioned:
    try:
        record = adapter.validate_json(path.read_bytes())
    except OSError as error:
        raise EvaluationFileError(path, f"cannot be read ({error.strerror})", fix) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise EvaluationFileError(path, f"{place}: {first['msg']}", fix) from error
    version = BASELINE_VERSION if isinstance(record, AnswersBaseline) else REPORT_VERSION
    if record.report_version != version:
        problem = f"the file has format version {record.report_version}, not {version}"
        raise EvaluationFileError(path, problem, fix)
    return record
