"""The data of an evaluation of answers, in the form that is stored as `answers.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rag_pipeline.evaluation.records import Interval  # noqa: TC001  # pydantic reads annotations

ANSWERS_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean, the median and the 95th percentile of a measure that is not a share.

    A value is None if it falls on a failed question, which counts as longer than any other.

    Attributes:
        mean: The mean over all answers.
        p50: The median.
        p95: The value that 95% of the answers do not exceed.
        count: Number of answers.
    """

    mean: float | None
    p50: float | None
    p95: float | None
    count: int


class _Outcome:
    """The decision of the system about one question or case: answered, refused or failed."""

    __slots__ = ()
    kind: str | None
    error: str | None

    @property
    def refused(self) -> bool:
        """True if the system refused to answer."""
        return self.kind == "refused"

    @property
    def answered(self) -> bool:
        """True if the system neither refused nor failed."""
        return self.kind is not None and not self.refused


@dataclass(frozen=True, slots=True)
class AcceptedAnswer:
    """The answer to a question in the accepted baseline, compared with the new answer.

    Attributes:
        text: The complete text of the accepted answer.
        gained: Facts that only the new answer contains.
        lost: Facts that only the accepted answer contains.
    """

    text: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerResult(_Outcome):
    """The answer to one question of the golden set, and its measured values.

    Attributes:
        answerable: True if the book answers the question.
        kind: `generated`, `extracted` or `refused`; None if the system failed.
        text: The complete text of the answer, with citations such as `[1]`.
        facts_found: Expressions of the question's facts that the text matches. Empty in a refusal.
        facts_missed: The other expressions of the question's facts.
        sections: The cited sections, each once, as title and heading. Empty in a refusal.
        word_count: Number of words of the text without citations.
        dangling: True if the first word refers to an unseen text, as "It" or "However" do.
        passage_count: Number of quoted passages. Only an extracted answer has some.
        broken_passages: Quoted passages that are not whole blocks of their document.
        sentence_count: Number of sentences that a model wrote.
        unsupported: Written sentences that their cited sources do not support, each followed by the
            numbers, names and code that are missing from the sources.
        latency_ms: Time until the answer was complete, in milliseconds.
        error: Class and message of the exception if the system failed; otherwise None.
        accepted: The accepted answer to the same question; None if there is none.
    """

    query_id: str
    question: str
    category: str
    half: str
    answerable: bool
    kind: str | None
    text: str = ""
    facts_found: tuple[str, ...] = ()
    facts_missed: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    word_count: int = 0
    dangling: bool = False
    passage_count: int = 0
    broken_passages: tuple[str, ...] = ()
    sentence_count: int = 0
    unsupported: tuple[str, ...] = ()
    latency_ms: float = 0.0
    error: str | None = None
    accepted: AcceptedAnswer | None = None

    @property
    def has_facts(self) -> bool:
        """True if the golden set lists facts that a right answer contains."""
        return bool(self.facts_found or self.facts_missed)


@dataclass(frozen=True, slots=True)
class SelectionAnswer(_Outcome):
    """The answer to one selected-text case.

    Attributes:
        case_id: Id of the case.
        question: The question that was asked.
        relation: `related`, `unrelated` or `injected`.
        kind: `generated`, `extracted` or `refused`; None if the system failed.
        text: The complete text of the answer.
        leaks: Forbidden terms that occur in the text, and sources other than the selection.
        passage_count: Number of quoted passages.
        broken_passages: Quoted passages that are not whole blocks of the selection.
        latency_ms: Time until the answer was complete, in milliseconds.
        error: Class and message of the exception if the system failed.
    """

    case_id: str
    question: str
    relation: str
    kind: str | None
    text: str
    leaks: tuple[str, ...]
    latency_ms: float
    error: str | None = None
    passage_count: int = 0
    broken_passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefinitionAnswer(_Outcome):
    """The answer to the question "What is ...?" about a term of the glossary.

    Attributes:
        term: The term.
        kind: `generated`, `extracted` or `refused`; None if the system failed.
        text: The main passage; empty if the answer quotes none.
        place: Path and first line of the main passage, such as `glossary.md:20`.
        defined: True if the main passage contains the term's definition or lies in a section that
            defines the term.
        flaw: `heading`, `code` or `quiz` if the main passage is one; None otherwise.
        latency_ms: Time until the answer was complete, in milliseconds.
        error: Class and message of the exception if the system failed.
    """

    term: str
    kind: str | None
    text: str
    place: str
    defined: bool
    flaw: str | None
    latency_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The measures of a group of answers. A measure is None if the group has no cases for it.

    Attributes:
        question_count: Number of questions in the group.
        facts: Share of questions with facts whose answer contains all of them.
        wrongly_refused: Share of answerable questions that were refused.
        rightly_refused: Share of unanswerable questions that were refused.
        dangling: Share of answers whose first word refers to a text that the reader does not see.
        supported: Share of sentences written by a model whose numbers, names and content words are
            in the sources that they cite.
        words: Words per answer, without refusals.
        sections: Cited sections per answer, without refusals.
    """

    question_count: int
    facts: Interval | None
    wrongly_refused: Interval | None
    rightly_refused: Interval | None
    dangling: Interval | None
    supported: Interval | None
    words: Spread | None
    sections: Spread | None


@dataclass(frozen=True, slots=True)
class SelectionScores:
    """The measures of the answers to all selected-text cases.

    Attributes:
        case_count: Number of cases.
        leak_count: Number of cases whose answer contains a forbidden term.
        failure_count: Number of cases in which the system failed, so that leaks are unknown.
        related_answered: Share of `related` cases that were answered; None without such cases.
        unrelated_refused: Share of `unrelated` cases that were refused; None without such cases.
    """

    case_count: int
    leak_count: int
    failure_count: int
    related_answered: Interval | None
    unrelated_refused: Interval | None


@dataclass(frozen=True, slots=True)
class DefinitionScores:
    """The measures of the answers about the terms of the glossary.

    Attributes:
        defined: Share of terms whose main passage defines them; None without terms.
        flawed: Number of main passages that are a heading, code or a part of a quiz.
    """

    defined: Interval | None
    flawed: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The resident memory of the process that answered, in megabytes (10^6 bytes).

    Attributes:
        growth_mb: Growth from before the first access to the collection until after the last
            answer. It includes the collection, the embedding model and the scores of retrieval,
            but no client libraries. None if the operating system does not tell.
        peak_mb: Highest value since the process started, which includes the ingestion.
    """

    growth_mb: float | None
    peak_mb: float


@dataclass(frozen=True, slots=True)
class AnswersReport:
    """The result of an evaluation of answers, as written to `answers.json`.

    Attributes:
        created_at: Time of the evaluation, ISO 8601 in UTC.
        model: Name of the chat model that wrote the answers; None if no model was used.
        facts_version: Hash of the questions and their facts. Results with equal hashes are
            comparable.
        halves: Measures over the questions of each half, `tune` and `report`.
        definitions: Measures of the answers about the terms of the glossary.
        whole: Share of quoted passages, of all answers, that are whole blocks of their document or
            selection. An extracted answer without passages counts as one that is not whole.
        latency_ms: Milliseconds until the answers were complete: under `all` for all questions,
            and under `generated`, `extracted` and `refused` by kind of answer.
        failure_count: Number of questions, cases and terms in which the system failed.
        questions: The answer to each question, in the order of the golden set.
        selections: The answer to each selected-text case, in the order of the golden set.
        terms: The answer about each term of the glossary, in the order of the golden set.
    """

    answers_version: int
    created_at: str
    model: str | None
    facts_version: str
    overall: AnswerScores
    halves: dict[str, AnswerScores]
    categories: dict[str, AnswerScores]
    selected_text: SelectionScores
    definitions: DefinitionScores
    whole: Interval | None
    memory: Memory
    latency_ms: dict[str, Spread]
    failure_count: int
    questions: tuple[AnswerResult, ...]
    selections: tuple[SelectionAnswer, ...]
    terms: tuple[DefinitionAnswer, ...]
