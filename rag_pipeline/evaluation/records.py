"""The data of an evaluation report and of a baseline, in the form that is stored as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

REPORT_VERSION: Final = 1

Scores: TypeAlias = dict[str, dict[str, float]]
"""The values of one question, 0 to 1, by level (document, section, token) and measure."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `count` questions with the ends `low` and `high` of its 95% interval."""

    mean: float
    low: float
    high: float
    count: int


Summary: TypeAlias = dict[str, dict[str, Interval]]
"""The means of a group of questions, by level and measure."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that the result of an evaluation depends on.

    Two results can be compared if their fingerprints differ only in what is under test.

    Attributes:
        corpus_version: Hash of the documents' ids and sources.
        golden_version: Hash of the golden set's questions and selected-text cases.
        format_version: Version number of parsing, chunking and embedding.
        model: Fingerprint of the embedding model.
        settings: The settings that may change a result, by name, as text.
        commit: Git commit of the code, ending with `-dirty` if tracked files were changed; None
            outside a git repository.
    """

    corpus_version: str
    golden_version: str
    format_version: int
    model: str
    settings: dict[str, str]
    commit: str | None


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A retrieved chunk, reduced to the fields that the measures and the report need.

    Attributes:
        start_byte: Start of the chunk in the document's normalized source, in bytes.
        end_byte: End of the chunk in the normalized source, in bytes.
        token_count: Number of tokens of the returned text (cl100k_base).
        excerpt: The first characters of the text, shown in the report.
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
    """The system's response to one golden-set question, before it is measured.

    Attributes:
        retrieved: The retrieved chunks, best first; empty if the system failed.
        refused: True if the grounding policy found the passages insufficient for an answer; None
            if no policy was asked.
        error: Class and message of the exception if the system failed. A failure counts as a miss.
    """

    query_id: str
    retrieved: tuple[RetrievedChunk, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """The system's responses to a whole golden set, before they are measured.

    Attributes:
        questions: One response per question, in the order of the golden set.
        cold_ms: Milliseconds of an extra first retrieval, which loads the model. It is not among
            the latencies of the questions.
    """

    questions: tuple[QuestionRun, ...]
    cold_ms: float


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """An expected section, and the ranks at which it was found.

    Attributes:
        group: The part that the section answers, if the question consists of several parts.
        section_rank: Rank, from 1, of the first chunk of the section; None if none was retrieved.
        document_rank: Rank, from 1, of the first chunk of the section's document, or None.
    """

    doc_path: str
    section_heading: str
    group: str | None
    section_rank: int | None
    document_rank: int | None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A golden-set question with its expected sections, retrieved chunks and measured values.

    Attributes:
        question_hash: Hash of the wording and the expected sections. Results are compared with a
            baseline only if this hash is equal.
        modules: Modules of the expected sections, each once.
        half: Half of the golden set, `tune` or `report`.
        expected: The expected sections; empty if the book does not answer the question.
        retrieved: The first ten retrieved chunks, best first.
        scores: Measured values; empty if `expected` is empty.
        flagged: True if recall@5 at document level is below 0.5, so that reports point it out.
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
    """The quality of the grounding policy's refusals. A value is None if it was not measurable.

    Attributes:
        precision: Share of refused questions that the book really does not answer.
        recall: Share of unanswerable questions that were refused.
        answered: Share of answerable questions that were not refused and did not fail.
    """

    precision: float | None
    recall: Interval | None
    answered: Interval | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Retrieval times over all questions, in milliseconds.

    A failed question counts as slower than any other. A percentile that falls on it is None.

    Attributes:
        cold_ms: Time of the first retrieval, which loads the model. It is not in the percentiles.
    """

    p50_ms: float | None
    p95_ms: float | None
    cold_ms: float


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The complete result of an evaluation, as written to `report.json`.

    Attributes:
        created_at: Time of the evaluation, ISO 8601 in UTC.
        overall: Means over all answerable questions.
        halves: Means over the questions of each half, `tune` and `report`.
        categories: Means by category of question; `modules` by module of the book.
        refusal: Quality of refusals by half, and under `all` for all questions.
        failure_count: Number of questions in which the system failed.
    """

    report_version: int
    created_at: str
    fingerprint: Fingerprint
    overall: Summary
    halves: dict[str, Summary]
    categories: dict[str, Summary]
    modules: dict[str, Summary]
    refusal: dict[str, RefusalScores]
    latency: Latency
    failure_count: int
    questions: tuple[QuestionResult, ...]


@dataclass(frozen=True, slots=True)
class BaselineQuestion:
    """The accepted values of one question, and the hash of its wording and expected sections."""

    question_hash: str
    scores: Scores


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last accepted evaluation, with which later evaluations are compared.

    Attributes:
        accepted_at: Time when the accepted evaluation was made, ISO 8601 in UTC.
        fingerprint: Everything that the accepted values depend on.
        questions: Accepted values of each answerable question, by question id.
    """

    report_version: int
    accepted_at: str
    fingerprint: Fingerprint
    questions: dict[str, BaselineQuestion]

    def pair_with(
        self, report: EvaluationReport, level: str, measure: str
    ) -> list[tuple[float, float]]:
        """Return the accepted and the new value of each question, in the order of the report.

        Questions whose wording or expected sections changed are left out, as are new questions.

        Args:
            report: The new evaluation.
            level: `document`, `section` or `token`.
            measure: Name of the measure, such as `Success@5`.
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
