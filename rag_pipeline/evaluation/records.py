"""What an evaluation found, as plain data that is written to JSON and read back unchanged.

Belongs here: records of one evaluation. Does not belong here: how they are measured (metrics,
spans), judged (gates) or shown (report, report_html).
"""

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
    """What a result depends on; two results compare well where only what was meant to differ does.

    Attributes:
        corpus_version: Hash over the documents' ids and sources.
        golden_version: Hash over the golden set's questions.
        format_version: Of parsing, chunking and embedding text.
        model: Fingerprint of the embedding model.
        settings: Every setting but secrets, folders, addresses and time limits, as text.
        commit: Of the code, with `-dirty` where files differ from it; None outside git.
    """

    corpus_version: str
    golden_version: str
    format_version: int
    model: str
    settings: dict[str, str]
    commit: str | None


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A passage a retriever returned, as far as measuring needs it.

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
    """What the system did with a question.

    Attributes:
        retrieved: Best first; empty where the system failed.
        refused: The grounding policy found the context insufficient; None where it was not asked.
        error: Class and message of the failure, which counts as a miss.
    """

    query_id: str
    retrieved: tuple[RetrievedChunk, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SelectedTextRun:
    """What the system did with a selection.

    Attributes:
        leaks: Beginnings of returned texts that are not in the selection, and terms of other
            sections in the context.
        refused: None where the grounding policy was not asked.
    """

    case_id: str
    leaks: tuple[str, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """What a retriever brought back for a golden set, before it is measured.

    Attributes:
        questions: In the golden set's order, none left out.
        cold_ms: Time of the very first retrieval, which loads the model; not in the latencies.
    """

    questions: tuple[QuestionRun, ...]
    selected_text: tuple[SelectedTextRun, ...]
    cold_ms: float


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """An expected section and the rank, from 1, at which it was found; None for not found."""

    doc_path: str
    section_heading: str
    group: str | None
    section_rank: int | None
    document_rank: int | None


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question with what was expected, what came back, and its values.

    Attributes:
        question_hash: Of question and expected sections: a baseline compares equal ones only.
        half: `tune` or `report`.
        expected: Empty where the book does not answer the question.
        scores: Empty where `expected` is.
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
        """Whether the book answers the question."""
        return bool(self.expected)


@dataclass(frozen=True, slots=True)
class RefusalScores:
    """How well the grounding policy tells apart what the book answers; None: nothing to measure.

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
        failure_count: Cases in which the system failed, of which nothing is known.
        judged_right: Share of related and unrelated questions whose context was judged so; None
            where nothing was judged.
    """

    case_count: int
    leak_count: int
    failure_count: int
    judged_right: Interval | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of retrieval in milliseconds over all questions, a failure slower than any answer; None
    where so many failed that the percentile is one of them.
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
