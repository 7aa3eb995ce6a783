"""Let a chat model write an answer from the sources, and check what it cites."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Answer, AnswerKind
from rag_pipeline.answering.prompts import DECLINED
from rag_pipeline.answering.refusals import decline, refuse
from rag_pipeline.answering.sources import cite_sources
from rag_pipeline.answering.writing.citing import CitationFilter, split_answer
from rag_pipeline.answering.writing.support import measure_support, report_support
from rag_pipeline.core.errors import AnswerError
from rag_pipeline.core.terms import extract_words

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.answering.models import GroundedResponse
    from rag_pipeline.retrieval.protection.breaker import CircuitBreaker

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
    checked = CitationFilter(frozenset(source.number for source in grounded.sources))
    complete, shown = True, 0
    with closing(written), breaker.passing():
        while True:
            try:
                checked.feed(next(written))
            except StopIteration as end:
                complete = end.value is not False
                break
            # A text that may become the reply "no answer" is not shown before that is certain.
            if len(checked.text) > shown and (shown or not _may_decline(checked.text)):
                yield checked.text[shown:]
                shown = len(checked.text)
    checked.finish()
    text = checked.text
    if not text:
        problem = f"the model {model} wrote nothing, or a content filter blocked its answer"
        remedy = "Raise ANSWER_MAX_TOKENS, rephrase the question or choose another model"
        raise AnswerError(f"{problem}. {remedy}")
    if _fold(text) == _fold(DECLINED):
        refusal = yield from refuse(decline(grounded), question)
        return replace(refusal, model=model)
    if len(text) > shown:
        yield text[shown:]
    generated = Answer(
        question=question,
        text=text,
        kind=AnswerKind.GENERATED,
        sentences=split_answer(text, checked.known),
        citations=(),
        grounding=grounded,
        dropped_numbers=tuple(sorted(checked.dropped)),
        complete=complete,
        model=model,
    )
    return cite_sources(replace(generated, notices=_collect_notices(generated)))


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
