"""Records of one evaluation: plain data that is written to JSON and read back unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

REPORT_VERSION: Final = 1

Scores: TypeAlias = dict[str, dict[str, float]]
"""Values of one question by level (document, section, token) and measure, each 0 to 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `count` questions with its 95% interval."""

    mean: float
    low: float
    high: float
    count: int


Summary: TypeAlias = dict[str, dict[str, Interval]]
"""Means of a group of questions by level and measure."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a result depends on. Two results are comparable if only the intended parts differ.

    Attributes:
        corpus_version: Hash over the documents' ids and sources.
        golden_version: Hash over the golden set's questions.
        format_version: Of parsing, chunking and embedding text.
        model: Fingerprint of the embedding model.
        settings: Every setting except secrets, folders, addresses and timeouts, as text.
        commit: Commit of the code, with `-dirty` if files differ from it; None outside git.
    """

    corpus_version: str
    golden_version: str
    format_version: int
    model: str
    settings: dict[str, str]
    commit: str | None


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """The part of a returned passage that measuring needs.

    Attributes:
        start_byte: With `end_byte` its span in the normalized source.
        token_count: Tokens of the returned text (cl100k_base).
        excerpt: Beginning of the text, for readers of the report.
    """

    chunk_id: str
    doc_path: str
    section_heading: str
    heading_breadcrumb: tuple[str, ...]
    score: float
    start_byte: int
    end_byte: int
    token_count: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class QuestionRun:
    """Outcome of one question.

    Attributes:
        retrieved: Best first; empty if the system failed.
        refused: The grounding policy found the context insufficient; None if it was not asked.
        error: Class and message of the failure, which counts as a miss.
    """

    query_id: str
    retrieved: tuple[RetrievedChunk, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SelectedTextRun:
    """Outcome of one selected-text case.

    Attributes:
        leaks: Beginnings of returned texts that are not in the selection, and terms of other
            sections in the context.
        refused: None if the grounding policy was not asked.
    """

    case_id: str
    leaks: tuple[str, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """Outcomes of a whole golden set, before they are measured.

    Attributes:
        questions: One outcome per question, in the golden set's order.
        cold_ms: Time of the first retrieval, which loads the model; not among the latencies.
    """

    questions: tuple[QuestionRun, ...]
    selected_text: tuple[SelectedTextRun, ...]
    cold_ms: float


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """An expected section and the ranks, from 1, at which it was found; None if not found."""

    doc_path: str
    section_heading: str
    group: str | None
    section_rank: int | None
    document_rank: int | None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question with its expected sections, retrieved chunks and values.

    Attributes:
        question_hash: Hash of question and expected sections. A baseline compares only equal ones.
        half: `tune` or `report`.
        expected: Empty if the book does not answer the question.
        scores: Empty if `expected` is.
        flagged: Recall@5 at document level below 0.5 (User Story 4).
    """

    query_id: str
    question: str
    question_hash: str
    category: str
    modules: tuple[str, ...]
    half: str
    all_of: bool
    expected: tuple[ExpectedPlace, ...]
    retrieved: tuple[RetrievedChunk, ...]
    scores: Scores
    refused: bool | None
    latency_ms: float
    error: str | None
    flagged: bool

    @property
    def answerable(self) -> bool:
        """True if the book answers the question."""
        return bool(self.expected)


@dataclass(frozen=True, slots=True)
class RefusalScores:
    """Quality of the grounding policy's refusals; None if there was nothing to measure.

    Attributes:
        precision: Share of refusals that were right.
        recall: Share of unanswerable questions that were refused.
        answered: Share of answerable questions that were not refused and did not fail.
    """

    precision: float | None
    recall: Interval | None
    answered: Interval | None


@dataclass(frozen=True, slots=True)
class SelectedTextScores:
    """Outcome of the selected-text cases.

    Attributes:
        leak_count: Cases with text from outside the selection.
        failure_count: Cases in which the system failed, so that leaks are unknown.
        judged_right: Share of related and unrelated questions that were judged as such; None if
            nothing was judged.
    """

    case_count: int
    leak_count: int
    failure_count: int
    judged_right: Interval | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of retrieval in milliseconds over all questions.

    A failure counts as slower than any answer. A percentile is None if it falls on a failure.
    """

    p50_ms: float | None
    p95_ms: float | None
    cold_ms: float


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Everything an evaluation found.

    Attributes:
        created_at: ISO 8601 in UTC.
        overall: Over all answerable questions.
        halves: By half, `tune` and `report`.
        refusal: By half and under `all`.
        failure_count: Questions and cases in which the system failed.
    """

    report_version: int
    created_at: str
    fingerprint: Fingerprint
    overall: Summary
    halves: dict[str, Summary]
    categories: dict[str, Summary]
    modules: dict[str, Summary]
    refusal: dict[str, RefusalScores]
    selected_text: SelectedTextScores
    latency: Latency
    failure_count: int
    questions: tuple[QuestionResult, ...]
    selected_text_runs: tuple[SelectedTextRun, ...]


@dataclass(frozen=True, slots=True)
class BaselineQuestion:
    """Accepted values of one question; the hash is of its wording and what it expects."""

    question_hash: str
    scores: Scores


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last accepted evaluation: values of every answerable question, and their fingerprint."""

    report_version: int
    accepted_at: str
    fingerprint: Fingerprint
    questions: dict[str, BaselineQuestion]

    def pair_with(
        self, report: EvaluationReport, level: str, measure: str
    ) -> list[tuple[float, float]]:
        """Pair the accepted with the new value of each question, in report order.

        A question that was reworded, or that now expects something else, has no pair.
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
