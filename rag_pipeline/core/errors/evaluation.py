"""Errors of the evaluation's files and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors.base import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class EvaluationFileError(RagPipelineError):
    """A kept report or baseline cannot be read."""

    code = "EVALUATION_FILE_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problem: str, mend: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}. {mend}")


class BaselineRefusedError(RagPipelineError):
    """An evaluation in which the system failed was to become the baseline."""

    code = "BASELINE_REFUSED"

    def __init__(self, path: Path, failure_count: int, first_error: str) -> None:
        self.failure_count = failure_count
        super().__init__(
            f"{path}: not written, since {failure_count} questions or cases failed and are no "
            f"measure ({first_error:.200}). Mend the cause and evaluate again"
        )


class SweepCellError(RagPipelineError):
    """Documents failed where the collection of a sweep's cell was built."""

    code = "SWEEP_CELL_INCOMPLETE"

    def __init__(self, cell: str, failures: Sequence[tuple[str, str]]) -> None:
        self.cell = cell
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        named = ", ".join(self.doc_paths[:5]) + (", ..." if len(failures) > 5 else "")
        super().__init__(
            f"sweep cell {cell}: {len(failures)} document(s) failed ({named}), so that it does not "
            f"compare: {failures[0][1]:.200}. Mend that and sweep again; what was embedded is kept"
        )


class GoldenSetError(RagPipelineError):
    """A file of evaluation questions is not usable, or names pages or headings not there."""

    code = "TEST_SET_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = f"; and {len(self.problems) - 10} more" if len(self.problems) > 10 else ""
        super().__init__(f"{path}: {shown}{more}. Mend the file, or the page that it names")
