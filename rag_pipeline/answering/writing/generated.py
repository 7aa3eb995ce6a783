"""Let a chat model write an answer from the sources, and check what it cites."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Answer, AnswerKind
from rag_pipeline.answering.prompts import DECLINED
from rag_pipeline.answering.refusals import decline, make_refusal
from rag_pipeline.answering.sources import cite_sources
from rag_pipeline.answering.writing.citing import CitationFilter, split_answer
from rag_pipeline.answering.writing.support import measure_support, report_support
from rag_pipeline.core.errors import AnswerError
from rag_pipeline.core.text.terms import extract_words

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.answering.models import GroundedResponse
    from rag_pipeline.retrieval.protection.breaker import CircuitBreaker

_THOUGHTS: Final = ("<think>", "</think>")

CUT_NOTICE: Final = "ANSWER_MAX_TOKENS or the content filter of the service cut the answer off."
UNCITED_NOTICE: Final = "Sentences without a number do not name a source. Check them in the book."


def write_answer(
    grounded: GroundedResponse,
    question: str,
    model: str,
    written: Generator[str, None, bool],
    breaker: CircuitBreaker,
) -> Generator[str, None, Answer]:
    """Yield the pieces of an answer as a model writes them, with checked citations.

    The notices of the answer name what its cited sources do not contain.

    Args:
        grounded: The sources that the model was given.
        question: The question of the user.
        model: Name of the model, for the answer and for errors.
        written: The pieces of the model's text. It returns False if the text was cut off.
        breaker: Circuit breaker of the model; it counts failures.

    Returns:
        The complete answer, or a refusal if the model declined to answer.

    Raises:
        AnswerError: The model cannot be reached, is too slow or wrote nothing.
    """
    writer = AnswerWriter(grounded, question, model)
    complete = True
    with closing(written), breaker.passing():
        while True:
            try:
                shown = writer.feed(next(written))
            except StopIteration as end:
                complete = end.value is not False
                break
            if shown:
                yield shown
    rest, entry = writer.finish(complete=complete)
    if rest:
        yield rest
    return entry


class AnswerWriter:
    """Turns the pieces that a model writes into the text to show and the complete answer.

    It does no input or output, so that synchronous and asynchronous streams share it.

    Args:
        grounded: The sources that the model was given.
        question: The question of the user.
        model: Name of the model, for the answer and for errors.
    """

    def __init__(self, grounded: GroundedResponse, question: str, model: str) -> None:
        self._grounded = grounded
        self._question = question
        self._model = model
        self._checked = CitationFilter(frozenset(source.number for source in grounded.sources))
        self._shown = 0
        self._beginning: str | None = ""  # None after the answer itself has begun

    def feed(self, piece: str) -> str:
        """Take the next piece of the model's text, and return the text to show, often empty.

        A block `<think>...</think>` before the answer, as some models write it, is left out.
        """
        self._checked.feed(self._drop_thoughts(piece))
        text = self._checked.text
        # A text that may become the reply "no answer" is not shown before that is certain.
        if len(text) <= self._shown or (not self._shown and _may_decline(text)):
            return ""
        return self._show(text)

    def finish(self, *, complete: bool) -> tuple[str, Answer]:
        """Return the rest of the text to show, and the answer or refusal.

        Args:
            complete: False if the model's text was cut off.

        Raises:
            AnswerError: The model wrote nothing.
        """
        checked = self._checked
        if self._beginning and not self._beginning.startswith(_THOUGHTS[0]):
            checked.feed(self._beginning)
        checked.finish()
        text = checked.text
        if not text:
            problem = (
                f"the model {self._model} wrote nothing, or a content filter blocked its answer"
            )
            remedy = "Raise ANSWER_MAX_TOKENS, rephrase the question or choose another model"
            raise AnswerError(f"{problem}. {remedy}")
        if _fold(text) == _fold(DECLINED):
            refusal = make_refusal(decline(self._grounded), self._question)
            return refusal.text, replace(refusal, model=self._model)
        generated = Answer(
            question=self._question,
            text=text,
            kind=AnswerKind.GENERATED,
            sentences=split_answer(text, checked.known),
            citations=(),
            grounding=self._grounded,
            dropped_numbers=tuple(sorted(checked.dropped)),
            complete=complete,
            model=self._model,
        )
        noted = replace(generated, notices=_collect_notices(generated))
        return self._show(text), cite_sources(noted)

    def _drop_thoughts(self, piece: str) -> str:
        if self._beginning is None:
            return piece
        opening, closing = _THOUGHTS
        self._beginning = beginning = (self._beginning + piece).lstrip()
        if opening.startswith(beginning[: len(opening)]):
            _, is_closed, rest = beginning.partition(closing)
            if not is_closed:
                return ""
            beginning = rest.lstrip()
        self._beginning = None
        return beginning

    def _show(self, text: str) -> str:
        start, self._shown = self._shown, len(text)
        return text[start:]


def _collect_notices(entry: Answer) -> tuple[str, ...]:
    notices = [*entry.grounding.notices, *report_support(measure_support(entry))]
    if entry.uncited_sentences:
        notices.append(UNCITED_NOTICE)
    if not entry.complete:
        notices.append(CUT_NOTICE)
    return tuple(notices)


def _may_decline(text: str) -> bool:
    return _fold(DECLINED).startswith(_fold(text))


def _fold(text: str) -> str:
    """Return the letters of a text, without citations, case and punctuation."""
    return "".join(word.lower() for word in extract_words(text) if not word.isdigit())
