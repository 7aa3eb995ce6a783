"""What grounding and answering return to a backend, the command line and tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rag_pipeline.core.closing import Closing, InterruptibleGenerator
from rag_pipeline.core.errors import AnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from rag_pipeline.core.models import TextBlock
    from rag_pipeline.retrieval.models import Citation, Mode, RetrievalResult


class Reason(StrEnum):
    """The reason why the context suffices or not."""

    SUFFICIENT = "sufficient"
    NO_PASSAGES = "no_passages"
    NOT_COVERED = "not_covered"
    UNRELATED_TO_SELECTION = "unrelated_to_selection"
    MODEL_DECLINED = "model_declined"


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that an answer may rest on.

    Attributes:
        number: It is cited by this number, from 1.
        blocks: The blocks of `text`; empty for a reader's selection, which is parsed on use.
    """

    number: int
    chunk_id: str
    text: str
    citation: Citation
    blocks: tuple[TextBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class GroundedResponse:
    """Passages prepared for an answer, and the decision if they contain one.

    Attributes:
        context: Numbered sources for a model's prompt; in selected-text mode the selection as it
            is. Given even if it does not suffice; empty without passages.
        system_instruction: The model's instruction; names the marks that enclose sources.
        citations: One for each source, in their order.
        sufficient_context: False if the question must be refused.
        confidence: How likely the sources contain the answer, 0 to 1; None in selected-text mode.
        message: The refusal in words; empty if the context suffices.
        related: At most three sections to try instead, best first; only with a refusal.
        notices: Hints for the reader, such as names that the book does not mention.
    """

    context: str
    system_instruction: str
    citations: tuple[Citation, ...]
    mode: Mode
    sufficient_context: bool
    reason: Reason
    sources: tuple[Source, ...] = ()
    confidence: float | None = None
    message: str = ""
    related: tuple[Citation, ...] = ()
    notices: tuple[str, ...] = ()


class AnswerKind(StrEnum):
    """The way an answer was made."""

    GENERATED = "generated"
    EXTRACTED = "extracted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an answer and the numbers of the sources it cites, if any."""

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its evidence.

    Attributes:
        text: Sentences followed by `[n]`; numbers without a source are already dropped. In an
            extracted answer, a number within a sentence belongs to the source's own text.
        sentences: The text in sentences, code blocks whole.
        citations: Of the cited sources in the order of their numbers; of the related sections in a
            refusal.
        dropped_numbers: Cited numbers that no source has, ascending.
        complete: False if the token limit or a content filter cut the answer.
        model: The model that wrote it; None without a model.
        notices: Hints for the reader, those of grounding first.
    """

    question: str
    text: str
    kind: AnswerKind
    sentences: tuple[AnswerSentence, ...]
    citations: tuple[Citation, ...]
    grounding: GroundedResponse
    dropped_numbers: tuple[int, ...] = ()
    complete: bool = True
    model: str | None = None
    notices: tuple[str, ...] = ()

    @property
    def cited_numbers(self) -> tuple[int, ...]:
        """Numbers of the sources that some sentence cites, ascending."""
        return tuple(sorted({number for entry in self.sentences for number in entry.cited}))

    @property
    def uncited_sentences(self) -> tuple[str, ...]:
        """Sentences of a generated answer that name no source."""
        if self.kind is not AnswerKind.GENERATED:
            return ()
        return tuple(entry.text for entry in self.sentences if not entry.cited)


class AnswerStream(Closing):
    """An answer on its way: iterate for pieces of its text, then read `answer`.

    Closing it, from any thread, or leaving its `with` block, ends the model's request; a thread
    that waits for the next piece then finds the stream ended.

    Attributes:
        result: What retrieval found.
        grounding: Sources and decision, known before the first piece.
    """

    def __init__(
        self,
        result: RetrievalResult,
        grounding: GroundedResponse,
        pieces: Generator[str, None, Answer],
        hang_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.result = result
        self.grounding = grounding
        self._pieces = InterruptibleGenerator(pieces, hang_up)
        self._answer: Answer | None = None

    def __iter__(self) -> Iterator[str]:
        """Return itself."""
        return self

    def __next__(self) -> str:
        """Return the next piece, which is never empty."""
        try:
            return next(self._pieces)
        except StopIteration as end:
            if end.value is not None:
                self._answer = end.value
            raise

    @property
    def answer(self) -> Answer:
        """The whole answer with its checked citations; the rest of the stream is read first.

        Raises:
            AnswerError: The stream was closed, or failed, before its end.
        """
        for _ in self:
            pass
        if self._answer is None:
            message = "the answer was ended before it was complete. Ask again"
            raise AnswerError(message)
        return self._answer

    def close(self) -> None:
        """End the model's request, from any thread; closing twice is fine."""
        self._pieces.close()
