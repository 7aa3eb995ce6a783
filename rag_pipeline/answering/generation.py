"""Answer a single question, with an assistant that lasts as long as the answer."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from rag_pipeline.answering.assistant import Assistant
from rag_pipeline.answering.preparing import LateRetriever
from rag_pipeline.answering.reading.small_talk import find_reply
from rag_pipeline.retrieval.queries import Query, check_query, name_questions

if TYPE_CHECKING:
    from rag_pipeline.answering.models import Answer
    from rag_pipeline.answering.streams import AnswerStream
    from rag_pipeline.core.protocols import ChatModel
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.retriever import Retriever


def answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    even_if_unrelated: bool = False,
) -> Answer:
    """Answer a question from the book with citations; return the answer when it is complete.

    Takes the arguments of `stream_answer` and raises its errors.
    """
    with stream_answer(
        query,
        retriever=retriever,
        chat_model=chat_model,
        settings=settings,
        even_if_unrelated=even_if_unrelated,
    ) as stream:
        return stream.answer


def stream_answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    even_if_unrelated: bool = False,
) -> AnswerStream:
    """Retrieve passages for a question now, and return a stream that then writes the answer.

    If the book may cover the question, a chat model writes the answer or declines. Without a
    model, or if the model fails, the answer is passages from the book. To ask several questions,
    use `open_assistant`.

    Args:
        query: A query, or a question as text, which is asked of the whole book. Even if `top_k` is
            lower, at least 5 passages are read, and 30 if a chat model writes.
        retriever: None opens one for this query. Selected-text mode does not need one.
        chat_model: None uses the model of the settings, if they name one.
        settings: None reads the environment and `.env` when a setting is needed.
        even_if_unrelated: Answer from a selected text even if the question seems unrelated to it.

    Raises:
        QueryError: The query is not valid.
        EmbeddingError: The question could not be embedded.
        StoreError: The collection is missing, was built by another model, or cannot be reached.
        ConfigurationError: A setting is missing or invalid.
    """
    full_query = Query(query) if isinstance(query, str) else query
    searcher = retriever or LateRetriever(settings or _load_settings())
    with searcher if isinstance(searcher, LateRetriever) else nullcontext():
        with searcher.protection.watch("answer", name_questions([full_query]), only_failures=True):
            check_query(full_query)
            if chat_model is None and not find_reply(full_query):
                from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__

                chat_model = connect_chat_model(settings or _load_settings())
        assistant = Assistant(searcher, chat_model)
        return assistant.stream(full_query, even_if_unrelated=even_if_unrelated)


def _load_settings() -> Settings:
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__

    return load_settings()
