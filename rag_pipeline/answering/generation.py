"""Answer a query: retrieve passages, judge them, and write, extract or refuse the answer."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import weigh_question
from rag_pipeline.answering.grounding import apply_grounding_policy
from rag_pipeline.answering.models import Answer, AnswerStream, Level
from rag_pipeline.answering.prompts import build_messages
from rag_pipeline.answering.quoting.extracted import quote_answer
from rag_pipeline.answering.reading.languages import find_foreign_terms
from rag_pipeline.answering.reading.small_talk import (
    find_reply,
    give_reply,
    ground_reply,
    make_empty_result,
    remove_small_talk,
)
from rag_pipeline.answering.refusals import refuse
from rag_pipeline.answering.writing.generated import write_answer
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.protection.limits import Protection
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline.retrieval.relatedness import SelectionVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.core.protocols.embedding import Embedder
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.protection.logs import Operation
    from rag_pipeline.retrieval.retriever import Retriever

CONTEXT_DEPTH: Final = 30
"""Number of passages that are read if a model writes the answer. They usually fill its context."""


def answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    even_if_unrelated: bool = False,
) -> Answer:
    """Answer a question from the book with citations; return the answer when it is complete.

    Takes the arguments of `stream_answer` and raises its errors, including AnswerError.
    """
    with stream_answer(
        query,
        retriever=retriever,
        chat_model=chat_model,
        settings=settings,
        embedder=embedder,
        even_if_unrelated=even_if_unrelated,
    ) as stream:
        return stream.answer


def stream_answer(  # one argument for each service
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    even_if_unrelated: bool = False,
) -> AnswerStream:
    """Retrieve passages for a question now, and return a stream that then writes the answer.

    If the book may cover the question, a chat model writes the answer or declines. Without a
    model, the answer is passages from the book. A greeting gets a fixed reply without a search.

    Args:
        query: A query, or a question as text, which is asked of the whole book. Even if `top_k` is
            lower, at least 5 passages are read, and 30 if a chat model writes.
        retriever: None opens one for this query. Selected-text mode does not need one.
        chat_model: None uses the model of the settings, if they name one.
        settings: None reads the environment and `.env` when a setting is needed.
        embedder: Compares passages with the question if there is no model. None compares words.
        even_if_unrelated: Answer from a selected text even if the question seems unrelated to it.

    Raises:
        QueryError: The query is not valid.
        EmbeddingError: The question could not be embedded.
        StoreError: The collection is missing, was built by another model, or cannot be reached.
        ConfigurationError: A setting is missing or invalid.
        AnswerError: While iterating: the model cannot be reached, is too slow or writes nothing.
    """
    full_query = Query(query) if isinstance(query, str) else query
    if retriever is None:
        settings = settings or _load_settings()
        protection = Protection(log_questions=settings.log_questions)
    else:
        protection = retriever.protection
    with ExitStack() as watching:
        operation = watching.enter_context(protection.watch("answer", [full_query.question]))
        full_query.check()
        asked = full_query.question
        reply = find_reply(full_query)
        if reply:
            grounded = ground_reply(full_query, reply)
            pieces = _finish(give_reply(grounded, asked), asked, operation, watching.pop_all())
            return AnswerStream(make_empty_result(full_query), grounded, pieces)
        model = chat_model
        if model is None:
            from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__

            model = connect_chat_model(settings or _load_settings())
        depth = EVIDENCE_DEPTH if model is None else CONTEXT_DEPTH
        full_query = replace(
            full_query,
            question=remove_small_talk(asked),
            top_k=max(full_query.result_count, depth),
        )
        with operation.measure("retrieve"):
            result = _retrieve(full_query, retriever, settings)
        if even_if_unrelated and result.verdict is SelectionVerdict.UNRELATED:
            result = replace(result, verdict=SelectionVerdict.MAY_NOT_ANSWER)
        question = result.search_question or full_query.question
        grounded = apply_grounding_policy(result, question)
        abort: Callable[[], None] = lambda: None  # noqa: E731  # no request to abort
        if grounded.level is Level.NOT_COVERED:
            pieces = refuse(grounded, asked)
        elif model is not None:
            written = model.stream(build_messages(grounded, full_query.question))
            abort = written.close
            breaker = protection.chat_model
            pieces = write_answer(grounded, asked, model.name, written, breaker)
        else:
            weights = weigh_question(result.evidence, question)
            pieces = quote_answer(grounded, question, weights, embedder)
            pieces = _precede(grounded.message, pieces)
        pieces = _finish(pieces, asked, operation, watching.pop_all())
        return AnswerStream(result, grounded, pieces, abort)


def _precede(message: str, pieces: Generator[str, None, Answer]) -> Generator[str, None, Answer]:
    """Yield a message as the first paragraph of an answer, and return the answer with it.

    If the message is empty, the answer does not change.
    """
    start = f"{message}\n\n" if message else ""
    if start:
        yield start
    complete = yield from pieces
    return replace(complete, text=start + complete.text)


def _finish(
    pieces: Generator[str, None, Answer], asked: str, operation: Operation, watching: ExitStack
) -> Generator[str, None, Answer]:
    """Yield the pieces of an answer, return it with the question as asked, and log the operation.

    The log line is written when the answer is complete, when it fails, or when the generator is
    closed.
    """
    with watching:
        complete = replace((yield from pieces), question=asked)
        operation.result_count = len(complete.grounding.sources)
        operation.details |= {"kind": complete.kind.value, "model": complete.model}
        return complete


def _retrieve(
    query: Query, retriever: Retriever | None, settings: Settings | None
) -> RetrievalResult:
    if retriever is not None:
        return _search(query, retriever)
    chosen = settings or _load_settings()
    if query.mode == Mode.SELECTED_TEXT_ONLY:
        from rag_pipeline.adapters.connect import connect_selection_embedder  # noqa: PLC0415  # see __init__
        from rag_pipeline.retrieval.selected_text import retrieve_selected  # noqa: PLC0415  # see __init__

        threshold, local = chosen.selected_text_threshold, connect_selection_embedder()
        return retrieve_selected(query, threshold, chosen.site, local)
    from rag_pipeline.retrieval.opening import open_retriever  # noqa: PLC0415  # see __init__

    with open_retriever(chosen) as opened:
        return _search(query, opened)


def _search(query: Query, retriever: Retriever) -> RetrievalResult:
    """Return the passages for a query; search only the terms of a question in another language."""
    result = retriever.retrieve(query)
    terms = find_foreign_terms(query.question, result.chunks)
    if query.mode == Mode.SELECTED_TEXT_ONLY or not terms:
        return result
    found = retriever.retrieve(replace(query, question=terms))
    return replace(found, query=query, search_question=terms)


def _load_settings() -> Settings:
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__

    return load_settings()
