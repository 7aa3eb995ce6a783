"""Data classes for answers, their sources, and the decision whether a question is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.ids import to_json
from rag_pipeline.core.models import ContentType, Figure, TextBlock
from rag_pipeline.retrieval.models import Citation  # noqa: TC001  # the service documents the types

if TYPE_CHECKING:
    from rag_pipeline.retrieval.queries import Mode


class Reason(StrEnum):
    """The reason why passages suffice for an answer, or why there is no answer from the book.

    `UNCERTAIN`: the passages are close to the question, but may not answer it. `MODEL_DECLINED`: a
    model read the passages and found no answer in them. `SMALL_TALK`: a greeting or the like.
    `ABOUT_BOOK`: the table of contents answers the question. `NO_WORDS`: the question has no word
    of the book. Nothing is written by a model for the last three.
    """

    SUFFICIENT = "sufficient"
    UNCERTAIN = "uncertain"
    NO_PASSAGES = "no_passages"
    NOT_COVERED = "not_covered"
    UNRELATED_TO_SELECTION = "unrelated_to_selection"
    MODEL_DECLINED = "model_declined"
    SMALL_TALK = "small_talk"
    ABOUT_BOOK = "about_book"
    NO_WORDS = "no_words"


REPLIES: Final = frozenset({Reason.SMALL_TALK, Reason.ABOUT_BOOK})
"""Reasons of a fixed reply, for which nothing is searched."""


class Level(StrEnum):
    """The degree to which the passages that were found answer a question.

    `ANSWERED`: they contain the answer. `CLOSEST_PASSAGES`: they may contain it, or are only about
    the same subject. `NOT_COVERED`: they do not contain it. `NO_QUESTION`: nothing was asked, as in
    a greeting.
    """

    ANSWERED = "answered"
    CLOSEST_PASSAGES = "closest_passages"
    NOT_COVERED = "not_covered"
    NO_QUESTION = "no_question"

    @property
    def words(self) -> str:
        """The words that people read for the level, such as `closest passages`."""
        return self.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint for the reader.

    Attributes:
        code: Stable name of the hint, such as `cut_off`.
        text: The hint as a sentence.
        data: The values in the hint, such as the names that the book does not mention.
    """

    code: str
    text: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and its answer.

    Attributes:
        question: The question as asked.
        answer: The text of the answer; empty if it is not known.
        selected_text: The selection that the question was about; None if the whole book was asked.
    """

    question: str
    answer: str = ""
    selected_text: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The text that was found of one section, which an answer may cite.

    Attributes:
        number: Number by which an answer cites the source, from 1.
        chunk_id: Id of the best-ranked chunk that the text comes from.
        text: Text of one chunk, or of several chunks joined in the order of the page.
        citation: Place of the text in the book: title, section and URL.
        blocks: Blocks of `text`, such as paragraphs, in order.
        doc_path: Path of the document below the docs folder; may be empty for a selection.
        headings: Title of the document, then the headings down to the section.
        content_type: Kind of the best chunk's content, such as prose, code or quiz.
        score: Score of the best chunk, 0 to 1.
        figures: The images of the section.
    """

    number: int
    chunk_id: str
    text: str
    citation: Citation
    blocks: tuple[TextBlock, ...] = ()
    doc_path: str = ""
    headings: tuple[str, ...] = ()
    content_type: str = ContentType.PROSE.value
    score: float = 1.0
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class GroundedResponse:
    """The sources for an answer, and the decision whether they contain the answer.

    Attributes:
        context: Numbered sources for a model's prompt; in selected-text mode the unchanged selected
            text. Present even if it does not suffice; empty if there are no passages.
        system_instruction: Instruction for the model. It names the marks around the sources.
        citations: Citation of each source, in the order of the sources.
        mode: Whether the whole book was searched or only a selected text is used.
        level: How well the sources answer the question.
        reason: Reason for the decision.
        sources: Passages that the answer may cite.
        confidence: Estimated probability that the sources contain the answer, 0 to 1; None in
            selected-text mode.
        message: Text of a refusal or of a fixed reply, or the sentence before the closest passages;
            empty if the sources suffice.
        related: Up to three sections that are about the question, best first, each once. A refusal
            names them. Empty in selected-text mode.
        notices: Hints for the reader, such as names that the book does not mention.
    """

    context: str
    system_instruction: str
    citations: tuple[Citation, ...]
    mode: Mode
    level: Level
    reason: Reason
    sources: tuple[Source, ...] = ()
    confidence: float | None = None
    message: str = ""
    related: tuple[Citation, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def sufficient_context(self) -> bool:
        """True if the sources contain the answer."""
        return self.level is Level.ANSWERED


class AnswerKind(StrEnum):
    """The origin of an answer.

    `GENERATED`: a model wrote it. `EXTRACTED`: it was extracted from the book. `REFUSED`: it is a
    refusal. `REPLY`: it is a fixed reply to a greeting or to a question about the tutor.
    """

    GENERATED = "generated"
    EXTRACTED = "extracted"
    REFUSED = "refused"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an answer, and the numbers of the sources that it cites.

    Attributes:
        text: The sentence as written. One that a model wrote contains its citations.
        cited: The numbers of the cited sources; may be empty.
    """

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a section that an answer quotes: whole blocks, such as paragraphs.

    Attributes:
        number: Number of the source that contains the passage, from 1.
        text: Markdown text of the passage, exactly as in the source.
        doc_path: Path of the document below the docs folder; may be empty for a selection.
        start_line: First line of the passage in the document's file, 1-based.
        end_line: Last line of the passage, inclusive.
        citation: Title, section and URL of the passage's section.
        highlights: Start and end (exclusive) in `text` of the sentences that answer the question,
            in order, without overlaps. May be empty.
        figures: The images and diagrams beside the passage. Images of other hosts are left out.
    """

    number: int
    text: str
    doc_path: str
    start_line: int
    end_line: int
    citation: Citation
    highlights: tuple[tuple[int, int], ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer to a question, with its citations and sources.

    Attributes:
        question: The question that was asked.
        text: Text of the answer, with citations such as `[1]`. Citations without a source are
            already removed. In an extracted answer, a number inside a sentence belongs to the book.
        kind: The origin of the answer.
        sentences: Sentences of the text, each with its citations. A code block is one sentence. Of
            an extracted answer, the marked sentences of each passage, or else the whole passage.
        citations: Citations of the cited sources, by source number. For a refusal, the related
            sections.
        grounding: The sources, and the decision whether they suffice.
        passages: Passages that an extracted answer consists of, the main passage first. Empty for
            other kinds of answers.
        dropped_numbers: Numbers without a source that the model cited, in ascending order.
        complete: False if the token limit or a content filter cut off the answer.
        model: Name of the model that wrote the answer; None if no model was used.
        notices: Hints for the reader. Those of `grounding` come first.
        explanation: For each passage, the reasons why it was chosen, as a text for a reader.
        model_error: Code and message of the failure for which passages are quoted instead of the
            model's answer, or after a part of it; None if the model did not fail.
    """

    question: str
    text: str
    kind: AnswerKind
    sentences: tuple[AnswerSentence, ...]
    citations: tuple[Citation, ...]
    grounding: GroundedResponse
    passages: tuple[Passage, ...] = ()
    dropped_numbers: tuple[int, ...] = ()
    complete: bool = True
    model: str | None = None
    notices: tuple[Notice, ...] = ()
    explanation: tuple[str, ...] = ()
    model_error: str | None = None

    @property
    def cited_numbers(self) -> tuple[int, ...]:
        """The numbers of all sources that the answer cites, in ascending order."""
        return tuple(sorted({number for entry in self.sentences for number in entry.cited}))

    @property
    def numbered_citations(self) -> dict[int, Citation]:
        """The citations by the number of their source; those of a refusal are counted from 1."""
        numbers = self.cited_numbers or range(1, len(self.citations) + 1)
        return dict(zip(numbers, self.citations, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as a dictionary for `json.dumps`, with the fields of `AnswerRecord`."""
        fields: dict[str, Any] = to_json(self.to_record())
        return fields

    def to_record(self) -> AnswerRecord:
        """Return the fields of the answer's JSON form."""
        grounding = self.grounding
        return AnswerRecord(
            question=self.question,
            mode=grounding.mode.value,
            kind=self.kind.value,
            answer=self.text,
            level=grounding.level.value,
            sufficient_context=grounding.sufficient_context,
            reason=grounding.reason.value,
            confidence=grounding.confidence,
            model=self.model,
            complete=self.complete,
            sentences=self.sentences,
            passages=self.passages,
            citations=self.citations,
            sources=grounding.sources,
            notices=self.notices,
        )


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer in the form that `Answer.to_dict()` returns as JSON.

    Attributes:
        question: The question as it was asked.
        mode: `normal` (the whole book) or `selected_text_only`.
        kind: `generated` (by a model), `extracted` (quoted passages), `refused` or `reply`.
        answer: The text of the answer. `[n]` cites `sources[n-1]`.
        level: `answered`, `closest_passages` (perhaps no answer), `not_covered` or `no_question`.
        sufficient_context: True if `level` is `answered`.
        reason: Why the passages suffice or not: a value of `Reason`.
        confidence: Estimated probability that the passages contain the answer, 0 to 1, or null.
        model: Name of the model that wrote the answer; null if none did.
        complete: False if the token limit or a content filter cut off the answer.
        sentences: The sentences of the answer with their citations; empty for a refusal.
        passages: The passages of an extracted answer, the main passage first.
        citations: The cited places by number, or the sections that a refusal suggests.
        sources: The texts that the answer could cite, by number, one for each section.
        notices: Hints for the reader.
    """

    question: str
    mode: str
    kind: str
    answer: str
    level: str
    sufficient_context: bool
    reason: str
    confidence: float | None
    model: str | None
    complete: bool
    sentences: tuple[AnswerSentence, ...]
    passages: tuple[Passage, ...]
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    notices: tuple[Notice, ...]
