"""The last accepted evaluation, question by question, for later ones to be compared with.

Belongs here: keeping and pairing accepted values. Does not belong here: the verdict (gates).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from rag_pipeline.adapters.state.files import write_bytes_atomically
from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.records import (
    REPORT_VERSION,
    EvaluationReport,
    Fingerprint,
    Scores,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class BaselineQuestion:
    """Accepted values of one question; the hash is of its wording and what it expects."""

    question_hash: str
    scores: Scores


@dataclass(frozen=True, slots=True)
class Baseline:
    """Accepted values of every answerable question by id, and what they depended on."""

    report_version: int
    accepted_at: str
    fingerprint: Fingerprint
    questions: dict[str, BaselineQuestion]

    def pair_with(
        self, report: EvaluationReport, level: str, measure: str
    ) -> list[tuple[float, float]]:
        """Accepted and new value of each question that is the same in both, in report order.

        A question that was reworded, or now expects something else, has no pair.
        """
        pairs = []
        for result in report.questions:
            accepted = self.questions.get(result.query_id)
            if accepted is None or accepted.question_hash != result.question_hash:
                continue
            old = accepted.scores.get(level, {}).get(measure)
            new = result.scores.get(level, {}).get(measure)
            if old is not None and new is not None:
                pairs.append((old, new))
        return pairs


_ADAPTER = TypeAdapter(Baseline)


def accept(report: EvaluationReport, path: Path) -> Baseline:
    """Make a report the baseline that later ones are compared with; writes over the one before.

    Raises:
        BaselineRefusedError: Something failed: against such misses nothing later could be a loss.
    """
    found = [one.error for one in report.questions]
    found += [one.error for one in report.selected_text_runs]
    errors = [error for error in found if error is not None]
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
    write_bytes_atomically(path, _ADAPTER.dump_json(baseline, indent=1) + b"\n")
    return baseline


def load_baseline(path: Path) -> Baseline | None:
    """Read the accepted baseline; None where none was accepted yet.

    Raises:
        EvaluationFileError: The file is damaged or of another version.
    """
    try:
        baseline = _ADAPTER.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        problem = str(error).splitlines()[0]
        raise EvaluationFileError(path, problem, "Accept an evaluation anew") from error
    if baseline.report_version != REPORT_VERSION:
        problem = f"it is of version {baseline.report_version}, not {REPORT_VERSION}"
        raise EvaluationFileError(path, problem, "Accept an evaluation anew")
    return baseline
