"""Errors of evaluations and of the files that they read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors.base import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class EvaluationFileError(RagPipelineError):
    """The file of a stored evaluation report or baseline cannot be read.

    Attributes:
        path: Path of the file.
    """

    code = "EVALUATION_FILE_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}. {remedy}")


class BaselineRefusedError(RagPipelineError):
    """An evaluation was not stored as the new baseline, because some of its questions failed.

    The baseline is the evaluation that later ones are compared with. A question fails if the system
    raises an error instead of answering it.

    Attributes:
        failure_count: Number of failed questions, including those about a selected text.
    """

    code = "BASELINE_REFUSED"

    def __init__(self, path: Path, failure_count: int, first_error: str) -> None:
        self.failure_count = failure_count
        super().__init__(
            f"the baseline {path} was not written, because {failure_count} questions or cases "
            f"failed (first error: {first_error:.200}). Fix the cause and evaluate again"
        )


class SweepCellError(RagPipelineError):
    """Documents failed while `rag-pipeline sweep` indexed the book for one combination of settings.

    A sweep compares such combinations, called cells, with a collection for each. A collection that
    lacks documents cannot be compared with the others, so the sweep stops.

    Attributes:
        cell: Name of the combination, made of its settings.
        doc_paths: Paths of the failed documents below the docs folder.
    """

    code = "SWEEP_CELL_INCOMPLETE"

    def __init__(self, cell: str, failures: Sequence[tuple[str, str]]) -> None:
        self.cell = cell
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        named = ", ".join(self.doc_paths[:5]) + (", ..." if len(failures) > 5 else "")
        super().__init__(
            f"sweep cell {cell}: {len(failures)} document(s) failed ({named}), so its results "
            f"cannot be compared with the others (first error: {failures[0][1]:.200}). Fix the "
            "cause and run the sweep again; texts that are already embedded are reused"
        )


class GoldenSetError(RagPipelineError):
    """A file of evaluation questions is invalid or names pages or headings that do not exist.

    Attributes:
        path: Path of the file with the questions.
        problems: One sentence per problem. The message shows the first ten.
    """

    code = "TEST_SET_INVALID"
    exit_code = 2

    def __init__(
        self, path: Path, problems: Sequence[str], remedy: str = "Correct the file"
    ) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = f"; and {len(self.problems) - 10} more" if len(self.problems) > 10 else ""
        super().__init__(f"{path}: {shown}{more}. {remedy}")
