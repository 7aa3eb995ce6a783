"""Where reports rest: the last one as JSON and page, and each of all for the plots over runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from rag_pipeline.adapters.state.files import write_bytes_atomically, write_text_atomically
from rag_pipeline.core.errors import EvaluationFileError
from rag_pipeline.evaluation.records import REPORT_VERSION, EvaluationReport
from rag_pipeline.evaluation.report_html import render_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.gates import GateResult

_HISTORY_DIR: Final = "history"
_ADAPTER: Final = TypeAdapter(EvaluationReport)
_LOG: Final = logging.getLogger(__name__)


def dump_report(report: EvaluationReport) -> bytes:
    """Write a report as JSON."""
    return _ADAPTER.dump_json(report, indent=1) + b"\n"


def load_report(path: Path) -> EvaluationReport:
    """Read a report.

    Raises:
        EvaluationFileError: The file is missing, damaged or of another version.
    """
    mend = "Run `rag-pipeline evaluate` again, or delete it"
    try:
        report = _ADAPTER.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise EvaluationFileError(path, str(error).splitlines()[0], mend) from error
    if report.report_version != REPORT_VERSION:
        problem = f"it is of version {report.report_version}, not {REPORT_VERSION}"
        raise EvaluationFileError(path, problem, mend)
    return report


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a report was written: JSON and page, and how many runs its history now has."""

    json_path: Path
    html_path: Path
    run_count: int


def write_report(
    report: EvaluationReport, folder: Path, gates: Sequence[GateResult] = ()
) -> ReportFiles:
    """Write `report.json` and `report.html`, and the JSON without its questions in `history/`.

    The page shows the runs of that history, of this golden set, over time.
    """
    summary = replace(report, questions=(), selected_text_runs=())
    stamp = "".join(char for char in report.created_at if char.isdigit())[:20]
    write_bytes_atomically(folder / _HISTORY_DIR / f"{stamp}.json", dump_report(summary))
    write_bytes_atomically(folder / "report.json", dump_report(report))
    history = load_history(folder)
    write_text_atomically(folder / "report.html", render_html(report, history, gates))
    return ReportFiles(folder / "report.json", folder / "report.html", len(history))


def load_history(folder: Path) -> tuple[EvaluationReport, ...]:
    """Reports that `write_report` kept in a folder, oldest first and without their questions.

    Unreadable ones are logged and left out.
    """
    reports = []
    for path in sorted((folder / _HISTORY_DIR).glob("*.json")):
        try:
            reports.append(load_report(path))
        except EvaluationFileError as error:
            _LOG.warning("left out of the plots over runs: %s", error)
    return tuple(reports)
