"""From a query to an answer: retrieve, ground, then a model's words or the book's own."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.citing import CitationFilter, split_answer
from rag_pipeline.answering.extractive import choose_quotes, format_quotes
from rag_pipeline.answering.grounding import (
    RELATED_SECTIONS,
    apply_grounding_policy,
    weigh_question,
)
from rag_pipeline.answering.models import (
    Answer,
    AnswerKind,
    AnswerSentence,
    AnswerStream,
    Reason,
)
from rag_pipeline.answering.prompts import DECLINED, build_messages
from rag_pipeline.core.errors import AnswerError
from rag_pipeline.core.terms import extract_words
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.models import Mode, Query
from rag_pipeline.retrieval.protection.limits import Protection

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rag_pipeline.answering.models import GroundedResponse
    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.core.protocols.embedding import Embedder
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import Citation, RetrievalResult
    from rag_pipeline.retrieval.protection.breaker import CircuitBreaker
    from rag_pipeline.retrieval.protection.logs import Operation
    from rag_pipeline.retrieval.retriever import Retriever

NO_MODEL_NOTICE: Final = (
    "No answer model is set: these are the book's own sentences. Set OPENAI_API_KEY, or "
    "OPENAI_BASE_URL and ANSWER_MODEL, for a written answer."
)
CUT_NOTICE: Final = "The answer was cut, at ANSWER_MAX_TOKENS or by the service's content filter."
UNCITED_NOTICE: Final = "Sentences without a number name no source; check them in the book."


def answer(
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    even_if_unrelated: bool = False,
) -> Answer:
    """Answer a question with citations; see `stream_answer`."""
    with stream_answer(
        query,
        retriever=retriever,
        chat_model=chat_model,
        settings=settings,
        embedder=embedder,
        even_if_unrelated=even_if_unrelated,
    ) as stream:
        return stream.answer


def stream_answer(  # one argument a service, all but the query by name
    query: Query | str,
    *,
    retriever: Retriever | None = None,
    chat_model: ChatModel | None = None,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    even_if_unrelated: bool = False,
) -> AnswerStream:
    """Retrieve and ground at once, then write the answer piece by piece.

    Where the passages do not hold the answer it is refused and no model is asked. Without a model
    the answer is made of the book's own sentences.

    Args:
        query: A text asks the whole book. At least five passages are read, whatever its top_k.
        retriever: None opens one for this query; selected-text mode needs none.
        chat_model: None takes that of the settings; there may be none.
        settings: None reads the environment and `.env`, where something is to be taken from it.
        embedder: Helps to choose sentences where there is no model; None compares words.
        even_if_unrelated: Answer from a selection that the question does not seem to be about.

    Raises:
        QueryError: The query is not usable.
        EmbeddingError: The question could not be embedded.
        StoreError: The collection is missing, of another model, or not reached.
        ConfigurationError: A setting is missing or refused.
        AnswerError: While iterating: the model was not reached, not in time, or wrote nothing.
    """
    asked = Query(query) if isinstance(query, str) else query
    if retriever is None:
        settings = settings or _load_settings()
        protection = Protection(log_questions=settings.log_questions)
    else:
        protection = retriever.protection
    with ExitStack() as watching:
        operation = watching.enter_context(protection.watch("answer", [asked.question]))
        asked.check()
        if asked.result_count < EVIDENCE_DEPTH:
            asked = replace(asked, top_k=EVIDENCE_DEPTH)
        with operation.measure("retrieve"):
            result = _retrieve(asked, retriever, settings)
        if even_if_unrelated and not result.related:
            result = replace(result, related=True)
        grounded = apply_grounding_policy(result, asked.question)
        model = chat_model
        if model is None and grounded.sufficient_context:
            from rag_pipeline.adapters.connect import connect_chat_model  # noqa: PLC0415  # see __init__

            model = connect_chat_model(settings or _load_settings())
        hang_up: Callable[[], None] = lambda: None  # noqa: E731  # there is nothing to hang up
        if not grounded.sufficient_context:
            pieces = _refuse(grounded, asked.question)
        elif model is not None:
            written = model.stream(build_messages(grounded, asked.question))
            hang_up = written.close
            breaker = protection.chat_model
            pieces = _generate(grounded, asked.question, model.name, written, breaker)
        else:
            weights = weigh_question(result.evidence, asked.question)
            pieces = _extract(grounded, asked.question, weights, embedder)
        pieces = _log_at_end(pieces, operation, watching.pop_all())
        return AnswerStream(result, grounded, pieces, hang_up)


def _log_at_end(
    pieces: Generator[str, None, Answer], operation: Operation, watching: ExitStack
) -> Generator[str, None, Answer]:
    """Keep an operation under way until the answer is complete, failed or closed."""
    with watching:
        given = yield from pieces
        operation.result_count = len(given.grounding.sources)
        operation.details |= {"kind": given.kind.value, "model": given.model}
        return given


def _retrieve(
    query: Query, retriever: Retriever | None, settings: Settings | None
) -> RetrievalResult:
    if retriever is not None:
        return retriever.retrieve(query)
    chosen = settings or _load_settings()
    if query.mode == Mode.SELECTED_TEXT_ONLY:
        from rag_pipeline.retrieval.selected_text import retrieve_selected  # noqa: PLC0415  # see __init__

        return retrieve_selected(query, chosen.selected_text_threshold, chosen.site)
    from rag_pipeline.retrieval.opening import open_retriever  # noqa: PLC0415  # see __init__

    with open_retriever(chosen) as opened:
        return opened.retrieve(query)


def _load_settings() -> Settings:
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see __init__

    return load_settings()


def _refuse(grounded: GroundedResponse, question: str) -> Generator[str, None, Answer]:
    yield grounded.message + _list_related(grounded)
    return _make_refusal(grounded, question)


def _extract(
    grounded: GroundedResponse,
    question: str,
    weights: dict[str, float],
    embedder: Embedder | None,
) -> Generator[str, None, Answer]:
    quotes = choose_quotes(question, grounded.sources, weights=weights, embedder=embedder)
    text = format_quotes(quotes)
    yield text
    extracted = Answer(
        question=question,
        text=text,
        kind=AnswerKind.EXTRACTED,
        sentences=tuple(AnswerSentence(quote.text, (quote.source.number,)) for quote in quotes),
        citations=(),
        grounding=grounded,
        notices=(*grounded.notices, NO_MODEL_NOTICE),
    )
    return _cite(extracted)


def _generate(
    grounded: GroundedResponse,
    question: str,
    model: str,
    written: Generator[str, None, bool],
    breaker: CircuitBreaker,
) -> Generator[str, None, Answer]:
    checked = CitationFilter(frozenset(source.number for source in grounded.sources))
    complete = True
    with closing(written), breaker.passing():
        while True:
            try:
                piece = checked.feed(next(written))
            except StopIteration as end:
                complete = end.value is not False
                break
            if piece:
                yield piece
    rest = checked.finish()
    if rest:
        yield rest
    text = checked.text
    if not text:
        problem = f"{model} wrote nothing, or a content filter withheld it"
        mend = "Raise ANSWER_MAX_TOKENS, ask in other words or choose another model"
        raise AnswerError(f"{problem}. {mend}")
    if _has_declined(text):
        declined = _decline(grounded, text)
        places = _list_related(declined)
        if places:
            yield places
        return replace(_make_refusal(declined, question), model=model)
    generated = Answer(
        question=question,
        text=text,
        kind=AnswerKind.GENERATED,
        sentences=split_answer(text),
        citations=(),
        grounding=grounded,
        dropped_numbers=tuple(sorted(checked.dropped)),
        complete=complete,
        model=model,
    )
    return _cite(replace(generated, notices=_collect_notices(generated)))


def _cite(entry: Answer) -> Answer:
    cited = set(entry.cited_numbers)
    sources = entry.grounding.sources
    return replace(
        entry,
        citations=tuple(source.citation for source in sources if source.number in cited),
    )


def _collect_notices(entry: Answer) -> tuple[str, ...]:
    notices = list(entry.grounding.notices)
    if entry.uncited_sentences:
        notices.append(UNCITED_NOTICE)
    if not entry.complete:
        notices.append(CUT_NOTICE)
    return tuple(notices)


def _has_declined(text: str) -> bool:
    said = [word.lower() for word in extract_words(text) if not word.isdigit()]  # nor [1]
    return said == [word.lower() for word in extract_words(DECLINED)]


def _decline(grounded: GroundedResponse, text: str) -> GroundedResponse:
    """Turn a grounded response into a refusal after the model declined."""
    selected = grounded.mode == Mode.SELECTED_TEXT_ONLY
    related = () if selected else tuple(dict.fromkeys(grounded.citations))[:RELATED_SECTIONS]
    return replace(
        grounded,
        sufficient_context=False,
        reason=Reason.MODEL_DECLINED,
        message=text,
        related=related,
    )


def _make_refusal(grounded: GroundedResponse, question: str) -> Answer:
    return Answer(
        question=question,
        text=grounded.message + _list_related(grounded),
        kind=AnswerKind.REFUSED,
        sentences=(),
        citations=grounded.related or grounded.citations,
        grounding=grounded,
        notices=grounded.notices,
    )


def _list_related(grounded: GroundedResponse) -> str:
    """Return the text below a refusal: sections to try instead, if there are any."""
    if not grounded.related:
        return ""
    places = "\n".join(_format_place(entry) for entry in grounded.related)
    return f"\n\nRelated sections to try:\n{places}"


def _format_place(citation: Citation) -> str:
    place = " > ".join(dict.fromkeys(part for part in (citation.title, citation.section) if part))
    return f"- {place} ({citation.url})" if citation.url else f"- {place}"
