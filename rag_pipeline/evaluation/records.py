"""The records of an evaluation and of a baseline, which describe themselves as trees for people."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import SecretStr, TypeAdapter, ValidationError

from rag_pipeline.core.errors import EvaluationFileError
from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingModel
from rag_pipeline.evaluation.measures import Interval, count, share, show, tabulate
from rag_pipeline.evaluation.pages import Block, Form, Items, Line, Mark, Section, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenSet


class Answering(StrEnum):
    """How an evaluation answers the questions of a golden set.

    `NONE` only searches. `QUOTED` answers without a model. `CONFIGURED` lets the chat model of the
    settings write the answers, and answers without a model if none is configured.
    """

    NONE = "none"
    QUOTED = "quoted"
    CONFIGURED = "configured"


_Record = TypeVar("_Record")


@cache  # takes some milliseconds for a large record
def _adapt(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_record(path: Path, kind: type[_Record], fix: str) -> _Record:
    """Read a record from its JSON file.

    Args:
        path: The file.
        kind: The dataclass of the record. It states the format version that the file must have.
        fix: Advice of the error message.

    Raises:
        EvaluationFileError: The file is missing, damaged or has another format version.
    """
    try:
        record: _Record = _adapt(kind).validate_json(path.read_bytes())  # type: ignore[arg-type]  # a class is hashable
    except OSError as error:
        raise EvaluationFileError(path, f"cannot be read ({error.strerror})", fix) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise EvaluationFileError(path, f"{place}: {first['msg']}", fix) from error
    return record


def dump_record(record: object) -> bytes:
    """Return a record as UTF-8 encoded JSON that `read_record` can read."""
    return _adapt(type(record)).dump_json(record, indent=1) + b"\n"  # type: ignore[arg-type]  # a class is hashable


Scores: TypeAlias = dict[str, dict[str, float]]
"""The values of one question, 0 to 1, by level (document, section) and measure."""


_SHOWN_CHUNKS: Final = 5
_SHOWN_FAILURES: Final = 3  # failures usually share one cause, so a few examples are enough


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
    """

    corpus_version: str
    golden_version: str
    format_version: int
    model: str
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """A retrieved chunk, reduced to the fields that the measures and the report need.

    Attributes:
        token_count: Number of tokens of the returned text (cl100k_base).
        excerpt: The first characters of the text, shown in the report.
    """

    chunk_id: str
    doc_path: str
    section_heading: str
    heading_breadcrumb: tuple[str, ...]
    score: float
    token_count: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """An expected section, and the ranks at which it was found.

    Attributes:
        group: The part that the section answers, if the question consists of several parts.
        section_rank: Rank, from 1, of the first chunk of the section; None if none was retrieved.
    """

    doc_path: str
    section_heading: str
    group: str | None
    section_rank: int | None


Place: TypeAlias = "RetrievedChunk | SourcePlace | ChunkMetadata"
"""The location of a chunk in the book: its document, and the title and headings above it."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The place of a source of an answer: its document, and the title and headings above it."""

    doc_path: str
    heading_breadcrumb: tuple[str, ...]

    @property
    def section_heading(self) -> str:
        """The nearest heading above the source."""
        return self.heading_breadcrumb[-1]


def hits_section(place: Place, expected: ExpectedSection | ExpectedPlace) -> bool:
    """Return True if a chunk belongs to an expected section or to one of its subsections.

    If the expected heading is the document's title, only chunks before the first other heading
    match, although the title begins the breadcrumb of every chunk.
    """
    if place.doc_path != expected.doc_path:
        return False
    heading = expected.section_heading
    return heading in (place.section_heading, *place.heading_breadcrumb[1:])


def _describe_expected(place: ExpectedPlace) -> Line:
    part = f" (part {place.group})" if place.group else ""
    text = f" {place.section_heading}{part}: "
    rank = place.section_rank
    if rank is None:
        return Mark(place.doc_path, "code"), text, Mark("not found", "bad")
    form: Form = "good" if rank <= _SHOWN_CHUNKS else "near"
    return Mark(place.doc_path, "code"), text, Mark(f"rank {rank}", form)


def _describe_retrieved(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> Line:
    path = " > ".join(chunk.heading_breadcrumb)
    shown: str | Mark = path
    if any(hits_section(chunk, place) for place in expected):
        shown = Mark(path, "good")
    elif any(place.doc_path == chunk.doc_path for place in expected):
        shown = Mark(path, "near")
    return Mark(chunk.doc_path, "code"), " ", shown, f" ({chunk.score:.3f}): {chunk.excerpt}"


def describe_case(
    title: str, name: str, badges: Iterable[str], error: str | None, *blocks: Block
) -> Section:
    """Return a question, selected-text case or term with its result as a box."""
    marks = [part for badge in badges for part in (Mark(badge, "badge"), " ")]
    failed = (Mark(error, "bad"),) if error else ()
    return Section(title, ((*marks, Mark(name, "code")), *failed, *blocks), "article")


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

    @property
    def is_right(self) -> bool:
        """True if the section was found and the question rightly answered or refused."""
        if not self.answerable:
            return self.refused is True
        return self.refused is False and self.scores["section"]["Success@5"] == 1

    def describe(self) -> Section:
        """Return the question with its expected and retrieved sections as a box."""
        badges = [self.category, f"{self.half} half", *self.modules]
        badges += ["recall@5 below 0.5"] if self.flagged else []
        badges += ["all parts needed"] if self.all_of else []
        if self.refused is not None:
            badges.append("refused" if self.refused else "passages sufficient")
        expected = [_describe_expected(place) for place in self.expected]
        found = [
            _describe_retrieved(chunk, self.expected) for chunk in self.retrieved[:_SHOWN_CHUNKS]
        ]
        lists = (
            Section("Expected", (Items(tuple(expected)),)),
            Section("Found", (Items(tuple(found)),)),
        )
        return describe_case(self.question, self.query_id, badges, self.error, *lists)


REPORT_HALF: Final = "report"
FOLLOW_UP_DEPTH: Final = 5
"""Passages among which the second question of a conversation must find a right page."""


@dataclass(frozen=True, slots=True)
class RefusalScores:
    """The quality of the grounding policy's refusals. A value is None if it was not measurable.

    A failed question counts as wrong, because it was neither answered nor refused.

    Attributes:
        precision: Share of refused questions that the book really does not answer.
        recall: Share of unanswerable questions that were refused.
        answered: Share of answerable questions that were not refused and did not fail.
    """

    precision: Interval | None = share(
        "refused questions without an answer in the book",
        lambda one: [not one.answerable] if one.refused else [],
    )
    recall: Interval | None = share(
        "unanswerable questions that were refused",
        lambda one: [] if one.answerable else [one.refused is True],
        gate=("refusal_recall", 0.60),
    )
    answered: Interval | None = share(
        "answerable questions not refused",
        lambda one: [one.refused is False] if one.answerable else [],
        gate=("answered", 0.90),
    )


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

    report_version: Literal[1]
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

    def describe_measures(self) -> tuple[Block, ...]:
        """Return tables of the measures of the search, for all questions and each half.

        Below them are lines about latency and failures.
        """
        columns: dict[str, Summary] = {"all": self.overall, **self.halves}
        rows = tuple(
            (level, measure, *(show(one.get(level, {}).get(measure)) for one in columns.values()))
            for level, values in self.overall.items()
            for measure in values
        )
        refusals = tuple(
            (name, label, figure)
            for name, scores in self.refusal.items()
            for label, figure, _ in tabulate(scores)
        )
        latency = self.latency
        p50, p95 = (
            "has no value (too many questions failed)" if value is None else f"{value:.1f} ms"
            for value in (latency.p50_ms, latency.p95_ms)
        )
        flagged = sum(question.flagged for question in self.questions)
        lines = (
            f"latency: p50 {p50}, p95 {p95} (at most 500 ms), first query {latency.cold_ms:.0f} ms",
            f"flagged (recall@5 below 0.5): {flagged}; failures: {self.failure_count}",
        )
        return (
            Table(("level", "measure", *columns), rows),
            Table(("group", "measure", "share"), refusals),
            Items(lines),
        )


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

    report_version: Literal[1]
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
            level: `document` or `section`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of the system to a question, case or term: an answer, a refusal or a failure.

    Attributes:
        question: The question that was asked.
        kind: `generated`, `extracted` or `refused`; None if the system failed.
        text: The complete text of the answer, with citations such as `[1]`.
        passage_count: Number of quoted passages. Only an extracted answer has some.
        broken_passages: Quoted passages that are not whole blocks of their document or selection.
        error: Class and message of the exception if the system failed; otherwise None.
    """

    question: str
    kind: str | None
    text: str = ""
    passage_count: int = 0
    broken_passages: tuple[str, ...] = ()
    error: str | None = None

    @property
    def refused(self) -> bool:
        """True if the system refused to answer."""
        return self.kind == "refused"

    @property
    def answered(self) -> bool:
        """True if the system neither refused nor failed."""
        return self.kind is not None and not self.refused


def _list_texts(*found: tuple[str, Iterable[str], Form]) -> Items:
    """Return a list with a line for each text of each group, after the name of the group."""
    return Items(
        tuple((f"{name}: ", Mark(text, form)) for name, texts, form in found for text in texts)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult(Reply):
    """The answer to one question of the golden set, and its measured values.

    Attributes:
        answerable: True if the book answers the question.
        level: `answered`, `closest_passages` or `not_covered`; None if the system failed.
        first_is_right: True if the first passage is from an expected section; None without one.
        facts_found: Expressions of the question's facts that the text matches; none in a refusal.
        facts_missed: The other expressions of the question's facts.
        sections: The cited sections, each once, as title and heading. Empty in a refusal.
        sentence_count: Number of sentences that a model wrote.
        unsupported: Written sentences that are in no source. They were left out or marked.
        notices: Codes of the notices of the answer.
        cited_count: Number of sentences that the model cited itself.
    """

    query_id: str
    category: str
    half: str
    answerable: bool
    level: str | None = None
    first_is_right: bool | None = None
    facts_found: tuple[str, ...] = ()
    facts_missed: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    sentence_count: int = 0
    unsupported: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    cited_count: int = 0

    @property
    def is_for_model(self) -> bool:
        """True if a model wrote the answer or should have written it."""
        declined = {"model_declined", "not_grounded"}.intersection(self.notices)
        return self.kind in {"generated", None} or bool(declined)

    @property
    def has_facts(self) -> bool:
        """True if the golden set lists facts that a right answer contains."""
        return bool(self.facts_found or self.facts_missed)

    @property
    def is_right(self) -> bool:
        """True if the answer contains all facts, or if the question was rightly refused."""
        return self.answered is self.answerable and self.error is None and not self.facts_missed

    @property
    def supported(self) -> list[bool]:
        """For each sentence of a model, in no particular order: True if it is in a source."""
        return [number >= len(self.unsupported) for number in range(self.sentence_count)]

    def describe(self) -> Section:
        """Return the answer with its facts and sections as a box."""
        badges = (self.category, f"{self.half} half", self.kind or "failed")
        found = _list_texts(
            ("found", self.facts_found, "good"),
            ("missed", self.facts_missed, "bad"),
            ("not whole", self.broken_passages, "bad"),
            ("not in its sources", self.unsupported, "bad"),
            ("cited", self.sections, "badge"),
        )
        quote = Mark(self.text, "quote")
        return describe_case(self.question, self.query_id, badges, self.error, found, quote)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionAnswer(Reply):
    """The answer to one selected-text case.

    Attributes:
        case_id: Id of the case.
        relation: `related`, `unrelated` or `injected`.
        leaks: Forbidden terms that occur in the text, and sources other than the selection.
    """

    case_id: str
    relation: str
    leaks: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """True if the answer leaks nothing, quotes whole blocks, and had to be given or refused."""
        if self.error is not None or self.leaks or self.broken_passages:
            return False
        return {"related": self.answered, "unrelated": self.refused}.get(self.relation, True)

    def describe(self) -> Section:
        """Return the answer with its leaks as a box."""
        badges = (self.relation, self.kind or "failed")
        found = _list_texts(
            ("leaked", self.leaks, "bad"), ("not whole", self.broken_passages, "bad")
        )
        quote = Mark(self.text, "quote")
        return describe_case(self.question, self.case_id, badges, self.error, found, quote)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionAnswer(Reply):
    """The answer to the question "What is ...?" about a term of the glossary.

    Attributes:
        term: The term.
        passage: The main passage; empty if the answer quotes none.
        place: Path and first line of the main passage, such as `glossary.md:20`.
        defined: True if the main passage contains the term's definition or lies in a section that
            defines the term.
        flaw: `heading`, `code` or `quiz` if the main passage is one; None otherwise.
    """

    term: str
    passage: str
    place: str
    defined: bool
    flaw: str | None

    @property
    def is_right(self) -> bool:
        """True if the main passage defines the term and is a text."""
        return self.defined and self.flaw is None

    def describe(self) -> Section:
        """Return the main passage about the term as a box."""
        badges = [self.kind or "failed", "defined" if self.defined else "not defined"]
        badges += [self.flaw] if self.flaw else []
        quote = Mark(self.passage, "quote")
        return describe_case(self.question, self.place, badges, self.error, quote)


_ANSWERED: Final = "answered"  # the level; an ingestion must not load what answers


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The measures of a group of answers. A measure is None if the group has no cases for it.

    A failed question counts as one whose facts are missing, and as not refused.

    Attributes:
        question_count: Number of questions in the group.
        facts: Share of questions with facts whose answer contains all of them.
        first_passage: Share of answerable questions whose first quoted passage comes from an
            expected section.
        answered: Share of answerable questions at the level `answered`.
        wrongly_answered: Share of unanswerable questions at the level `answered`.
        wrongly_refused: Share of answerable questions that were refused.
        rightly_refused: Share of unanswerable questions that were refused.
        supported: Share of sentences written by a model whose numbers, names and content words are
            in the sources that they cite.
    """

    question_count: int = count("questions", lambda _: True)
    facts: Interval | None = share(
        "facts contained", lambda one: [not one.facts_missed] if one.has_facts else []
    )
    first_passage: Interval | None = share(
        "first passage from a right section",
        lambda one: [] if one.first_is_right is None else [one.first_is_right],
    )
    answered: Interval | None = share(
        "answered", lambda one: [one.level == _ANSWERED] if one.answerable else []
    )
    wrongly_answered: Interval | None = share(
        "answered, no answer in the book",
        lambda one: [] if one.answerable else [one.level == _ANSWERED],
    )
    wrongly_refused: Interval | None = share(
        "refused although answerable",
        lambda one: [one.refused] if one.answerable else [],
        "at most 0.05",
    )
    rightly_refused: Interval | None = share(
        "refused, no answer in the book", lambda one: [] if one.answerable else [one.refused]
    )
    supported: Interval | None = share(
        "sentences with support", lambda one: one.supported if one.answered else []
    )


@dataclass(frozen=True, slots=True)
class SelectionScores:
    """The measures of the answers to all selected-text cases.

    A failed case counts as neither answered nor refused.

    Attributes:
        case_count: Number of cases.
        leak_count: Number of cases whose answer contains a forbidden term.
        failure_count: Number of cases in which the system failed, so that leaks are unknown.
        related_answered: Share of `related` cases that were answered; None without such cases.
        unrelated_refused: Share of `unrelated` cases that were refused; None without such cases.
    """

    case_count: int = count("cases", lambda _: True)
    leak_count: int = count("cases with a leak", lambda one: bool(one.leaks))
    failure_count: int = count("failed cases", lambda one: one.error is not None)
    related_answered: Interval | None = share(
        "selections answered among those that contain the answer",
        lambda one: [one.answered] if one.relation == "related" else [],
        gate=("selections_answered", 0.93),
    )
    unrelated_refused: Interval | None = share(
        "selections refused among those that do not contain the answer",
        lambda one: [one.refused] if one.relation == "unrelated" else [],
        gate=("selections_refused", 0.90),
    )


@dataclass(frozen=True, slots=True)
class DefinitionScores:
    """The measures of the answers about the terms of the glossary. A failed term is not defined.

    Attributes:
        defined: Share of terms whose main passage defines them; None without terms.
        flawed: Number of main passages that are a heading, code or a part of a quiz.
    """

    defined: Interval | None = share(
        "glossary terms that the main passage defines",
        lambda one: [one.defined],
        gate=("terms_defined", 0.95),
    )
    flawed: int = count("flawed main passages", lambda one: one.flaw is not None)


@dataclass(frozen=True, slots=True)
class ModelScores:
    """The measures of the answers that a model wrote or should have written.

    Attributes:
        completed: Share of questions for which the model did not fail.
        accepted: Share of answerable questions that the model did not decline.
        grounded: Share of its sentences that are in the sources.
        cited: Share of its sentences that it cited itself.
    """

    completed: Interval | None = share(
        "questions for which the model did not fail",
        lambda one: [one.error is None],
        gate=("model_answers", 0.98),
    )
    accepted: Interval | None = share(
        "answerable questions that the model did not decline",
        lambda one: (
            ["model_declined" not in one.notices] if one.answerable and one.error is None else []
        ),
        gate=("model_accepts", 0.9),
    )
    grounded: Interval | None = share(
        "sentences of the model that stand in the sources",
        lambda one: one.supported,
        gate=("sentences_grounded", 0.8),
    )
    cited: Interval | None = share(
        "sentences that the model cited itself",
        lambda one: [number < one.cited_count for number in range(one.sentence_count)],
        gate=("sentences_cited", 0.8),
    )


@dataclass(frozen=True, slots=True)
class PassageScores:
    """The measures of the quoted passages of all answers.

    Attributes:
        whole: Share of quoted passages that are whole blocks of their document or selection. An
            extracted answer without passages counts as one that is not whole.
    """

    whole: Interval | None = share(
        "quoted passages that are whole blocks of their document",
        lambda one: (
            [
                number >= len(one.broken_passages) and one.passage_count > 0
                for number in range(max(one.passage_count, 1))
            ]
            if one.kind == "extracted"
            else []
        ),
        gate=("passages_whole", 1.0),
    )


@dataclass(frozen=True, slots=True)
class AnswersReport:
    """The result of an evaluation of answers, as written to `answers.json`.

    Attributes:
        model: Name of the chat model that wrote the answers; None if no model was used.
        halves: Measures over the questions of each half, `tune` and `report`.
        definitions: Measures of the answers about the terms of the glossary.
        written: Measures of the answers by a model; without values if no model was used.
        passages: Measures of the quoted passages of all answers.
        failure_count: Number of questions, cases and terms in which the system failed.
        questions: The answer to each question, in the order of the golden set.
        selections: The answer to each selected-text case, in the order of the golden set.
        terms: The answer about each term of the glossary, in the order of the golden set.
    """

    model: str | None
    overall: AnswerScores
    halves: dict[str, AnswerScores]
    categories: dict[str, AnswerScores]
    selected_text: SelectionScores
    definitions: DefinitionScores
    written: ModelScores
    passages: PassageScores
    failure_count: int
    questions: tuple[AnswerResult, ...]
    selections: tuple[SelectionAnswer, ...]
    terms: tuple[DefinitionAnswer, ...]

    def describe(self, *, with_texts: bool = False) -> Section:
        """Return an evaluation of answers as a tree.

        It has the measures over all questions, each half and each category with their goals, and
        the first failures. A missed goal is no failure.

        Args:
            with_texts: Also show each answer, in folded sections.
        """
        groups = {
            "all": self.overall,
            **self.halves,
            **self.categories,
            "selected text": self.selected_text,
            "glossary": self.definitions,
            "passages": self.passages,
            "model": self.written,
        }
        rows = [(name, *row) for name, scores in groups.items() for row in tabulate(scores)]
        errors = [(one.query_id, one.error) for one in self.questions]
        errors += [(one.case_id, one.error) for one in self.selections]
        errors += [(one.term, one.error) for one in self.terms]
        lines = (f"failed answers: {self.failure_count}", *list_failures(errors))
        title = f"Answers by {self.model}" if self.model else "Answers without a model"
        blocks: list[Block] = [
            Table(("group", "measure", "value", "goal"), tuple(rows)),
            Items(lines),
        ]
        if with_texts:
            blocks += [
                *fold("Answers", self.questions),
                *fold("Answers from selected text", self.selections),
                *fold("Main passages about terms", self.terms),
            ]
        return Section(title, tuple(blocks))


def list_failures(errors: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return the names and the first lines of the first errors."""
    failed = [f"{name}: {error.splitlines()[0]}" for name, error in errors if error]
    return failed[:_SHOWN_FAILURES]


def fold(
    title: str,
    results: Sequence[QuestionResult | AnswerResult | SelectionAnswer | DefinitionAnswer],
) -> tuple[Section, Section]:
    """Return the results in two folded sections: those with a fault, and those that are right."""
    wrong = tuple(one.describe() for one in results if not one.is_right)
    right = tuple(one.describe() for one in results if one.is_right)
    return (
        Section(f"{title}: with a fault ({len(wrong)})", wrong, "details"),
        Section(f"{title}: right ({len(right)})", right, "details"),
    )


# Endings and beginnings of the names of settings that change no result:
_UNRELATED_ENDINGS: Final = ("_dir", "_url", "_timeout_s", "_idle_s")
_UNRELATED: Final = (
    "answer_",
    "dagster_",
    "embedding_prices",
    "evaluation_",
    "ingest_",
    "log_",
    "qdrant_",
)


def build_fingerprint(
    documents: Iterable[ParsedDoc], golden: GoldenSet, settings: Settings, model: EmbeddingModel
) -> Fingerprint:
    """Build the fingerprint of an evaluation from everything that its result depends on.

    The fingerprint contains no secrets and no local paths. The order of the documents and the
    path of the golden set do not change it.

    Args:
        documents: All documents of the corpus.
        golden: The questions and selected-text cases.
        settings: The settings of the collection and the retriever.
        model: The embedding model.
    """
    sources = sorted(f"{parsed.document.doc_path}\0{parsed.source}" for parsed in documents)
    return Fingerprint(
        corpus_version=hash_parts(sources),
        golden_version=hash_parts(map(repr, (*golden.queries, *golden.selected_text))),
        format_version=FORMAT_VERSION,
        model=model.fingerprint,
        settings=select_settings(settings),
    )


def hash_parts(parts: Iterable[str]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 hash of a sequence of texts.

    The lengths of the texts are hashed too, so that ("ab", "c") and ("a", "bc") differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def select_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that may change the result of an evaluation, as text by name.

    Secrets, folders, addresses, timeouts and settings of other parts (such as logging) are left
    out.
    """
    return {
        name: str(value)
        for name, value in sorted(settings)
        if not isinstance(value, SecretStr)
        and not name.endswith(_UNRELATED_ENDINGS)
        and not name.startswith(_UNRELATED)
    }
