"""Reports and accepted baselines on disk."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from rag_pipeline.adapters.state.files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.records import (
    REPORT_VERSION,
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
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Paths of a written report, and the number of runs in its history."""

    json_path: Path
    html_path: Path
    run_count: int


_REPORT: Final = TypeAdapter(EvaluationReport)
_BASELINE: Final = TypeAdapter(Baseline)
_Versioned = TypeVar("_Versioned", EvaluationReport, Baseline)


def write_report(
    report: EvaluationReport, folder: Path, gates: Sequence[GateResult] = ()
) -> ReportFiles:
    """Write `report.json` and `report.html`, and the JSON without its questions to `history/`.

    The page plots the runs of that history that used the same golden set.
    """
    summary = replace(report, questions=(), selected_text_runs=())
    stamp = "".join(char for char in report.created_at if char.isdigit())[:20]
    write_bytes_atomically(folder / _HISTORY_DIR / f"{stamp}.json", dump_report(summary))
    files = ReportFiles(folder / "report.json", folder / "report.html", 0)
    write_bytes_atomically(files.json_path, dump_report(report))
    history = load_history(folder)
    write_text_atomically(files.html_path, render_html(report, history, gates))
    return replace(files, run_count=len(history))


def dump_report(report: EvaluationReport) -> bytes:
    """Serialize a report as JSON."""
    return _REPORT.dump_json(report, indent=1) + b"\n"


def load_report(path: Path) -> EvaluationReport:
    """Read a report.

    Raises:
        EvaluationFileError: The file is missing, damaged or of another version.
    """
    return _read(path, _REPORT, "Run `rag-pipeline evaluate` again, or delete it")


def load_history(folder: Path) -> tuple[EvaluationReport, ...]:
    """Read the reports that `write_report` kept in a folder, oldest first, without questions.

    Unreadable reports are logged and left out.
    """
    reports = []
    for path in sorted((folder / _HISTORY_DIR).glob("*.json")):
        try:
            reports.append(load_report(path))
        except EvaluationFileError as error:
            _LOG.warning("left out of the plots over runs: %s", error)
    return tuple(reports)


def accept(report: EvaluationReport, path: Path) -> Baseline:
    """Make a report the baseline of later ones, in place of the one before.

    Raises:
        BaselineRefusedError: A question or case failed. Compared with such misses, no later result
            could be a loss.
    """
    errors = [one.error for one in report.questions if one.error is not None]
    errors += [one.error for one in report.selected_text_runs if one.error is not None]
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
    return baseline


def load_baseline(path: Path) -> Baseline | None:
    """Read the accepted baseline; None if none was accepted yet.

    Raises:
        EvaluationFileError: The file is damaged or of another version.
    """
    return _read(path, _BASELINE, "Accept an evaluation anew") if path.exists() else None


def _read(path: Path, adapter: TypeAdapter[_Versioned], fix: str) -> _Versioned:
    try:
        record = adapter.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise EvaluationFileError(path, str(error).splitlines()[0], fix) from error
    if record.report_version != REPORT_VERSION:
        problem = f"it is of version {record.report_version}, not {REPORT_VERSION}"
        raise EvaluationFileError(path, problem, fix)
    return record
