"""Prepare an answer: read the question, find its passages, and judge if they suffice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.answering.confidence import NO_EVIDENCE, measure_signals, weigh_question
from rag_pipeline.answering.conversation import (
    choose_turns,
    complete_question,
    join_answers,
    names_selection,
    needs_earlier,
    orders_only,
    recall_question,
)
from rag_pipeline.answering.grounding import apply_grounding_policy, make_refusal
from rag_pipeline.answering.models import (
    REPLIES,
    Answer,
    GroundedResponse,
    Level,
    Notice,
    Turn,
)
from rag_pipeline.answering.prompts import cite_sources
from rag_pipeline.answering.quoting.extracted import quote_answer
from rag_pipeline.answering.reading.book_questions import (
    BOOK_QUESTIONS,
    drop_book,
    find_numbered_part,
    find_part_pages,
    ground_book_question,
    ground_neighbor,
    list_pages,
    list_sections,
    names_book,
)
from rag_pipeline.answering.reading.languages import find_foreign_terms, find_languages
from rag_pipeline.answering.reading.questions import (
    QuestionKind,
    drop_order,
    find_asking_clauses,
    read_question,
)
from rag_pipeline.answering.reading.small_talk import find_reply, ground_reply, remove_small_talk
from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.models import Closing
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.limits import Observer, Protection
from rag_pipeline.retrieval.models import RetrievalResult
from rag_pipeline.retrieval.queries import MAX_FILTER_VALUES, Mode, Query, QueryFilters, check_query
from rag_pipeline.retrieval.relatedness import SelectionVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.answering.voice import Voice
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.open_index import OpenIndex
    from rag_pipeline.retrieval.retriever import Retriever

RELEVANT_FROM: Final = 0.55
"""Share of the best score below which an answer does not use a passage.

On the tuning halves of the golden set and the plain questions, no fact of an answer is lost, and a
prompt has 29% and 51% fewer words (ADR 72).
"""


_Read = TypeVar("_Read")


class LateRetriever(Closing):
    """A retriever that answers from selected texts without opening the collection.

    Greetings and questions about a selected text thus need no collection and no embedding service.

    Args:
        settings: Settings with the collection.
        observe: Called for each operation that ended, with the error or None.

    Attributes:
        protection: The time limits, circuit breakers and log. The circuit breakers stay the same
            when the retriever is opened.
    """

    def __init__(self, settings: Settings, observe: Observer | None = None) -> None:
        self.protection = Protection(observe=observe)
        self._settings = settings
        self._opened: Retriever | None = None
        self._opening = Lock()

    def open(self) -> Retriever:
        """Return the retriever; the first call opens it, which may ask the store for its model.

        Raises:
            RagPipelineError: As described for `open_retriever`. The next call tries again.
        """
        from rag_pipeline.retrieval.opening import open_retriever  # noqa: PLC0415  # see __init__

        with self._opening:
            if self._opened is None:
                opened = open_retriever(self._settings)
                self.protection = self.protection.limited_by(opened.protection.limits)
                self._opened = opened.protected_by(self.protection)
            return self._opened

    def read_index(self, action: Callable[[OpenIndex], _Read]) -> _Read:
        """Run an action on the collection; raises the errors of `Retriever.read` and `open`."""
        return self.open().read_index(action)

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the passages for a query; raises the errors of `Retriever.retrieve` and `open`."""
        if query.mode != Mode.SELECTED_TEXT_ONLY or self._opened is not None:
            return self.open().retrieve(query)
        from rag_pipeline.adapters.connect import connect_selection_embedder  # noqa: PLC0415  # see __init__
        from rag_pipeline.retrieval.selected_text import retrieve_selected  # noqa: PLC0415  # see __init__

        chosen, local = self._settings, connect_selection_embedder()
        with self.protection.watch("retrieve", [query.question]) as operation:
            operation.result_count = 1
            return self.protection.compare(
                operation,
                lambda: retrieve_selected(
                    query, chosen.selected_text_threshold, chosen.site, local, chosen.sources or ()
                ),
            )

    def close(self) -> None:
        """Close the collection; a later question opens it again."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()


CONTEXT_DEPTH: Final = 30
"""Number of passages that are read if a model writes the answer. They usually fill its context."""


FORM_DEPTH: Final = 10
"""Number of passages that are read for a question of `_FORMS`, if no model writes the answer.

The passage that defines a term, the table that compares two things, the list of all things, or the
first aid can rank below passages that name them more often.
"""

_FORMS: Final = frozenset({
    QuestionKind.DEFINITION, QuestionKind.COMPARISON, QuestionKind.LIST, QuestionKind.PROBLEM,
    QuestionKind.FORMULA,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """A question whose passages were found and judged, but whose answer is not written yet.

    Attributes:
        query: The query as asked.
        result: The passages that were found.
        grounding: The sources, and the decision whether they suffice.
        search_question: What was searched instead of the question; None if the question itself was.
        index_id: Id of the collection that was searched; empty in selected-text mode.
        turns: The earlier turns of the conversation that count, oldest first.
        timings_ms: Milliseconds of each step so far, by its name.
    """

    query: Query
    result: RetrievalResult
    grounding: GroundedResponse
    search_question: str | None = None
    index_id: str = ""
    turns: tuple[Turn, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The question without a greeting or thanks around it."""
        return remove_small_talk(self.query.question)

    @property
    def is_follow_up(self) -> bool:
        """True if the question does not make sense without the turn before it."""
        return bool(self.turns) and needs_earlier(self.question)


@dataclass(frozen=True, slots=True)
class Plan:
    """A question that is ready to be searched, or that a fixed reply answers.

    Attributes:
        query: The query as asked.
        question: The question without small talk.
        completed: The question with what it needs from earlier turns, or the earlier question that
            it asks for.
        reply: The kind of a fixed reply that needs no search; empty for a question to search.
        turns: The earlier turns that count, oldest first.
    """

    query: Query
    question: str
    completed: str
    reply: str
    turns: tuple[Turn, ...]

    @property
    def is_follow_up(self) -> bool:
        """True if the question needs earlier turns to be searched."""
        return self.completed != self.question


def plan_question(query: Query, history: Sequence[Turn]) -> Plan:
    """Check a query and decide what to search for it.

    An order that names no subject, such as "list the", is no question if nothing was asked before.

    Raises:
        QueryError: The query is not valid.
    """
    check_query(query)
    turns = choose_turns(history, query)
    if recalled := recall_question(query.question, turns):
        return Plan(query, query.question, recalled, "recalled", ())
    reply = find_reply(query, has_turns=_has_subject(turns))
    if query.mode == Mode.NORMAL and not turns and orders_only(query.question):
        reply = "about"
    if reply:
        return Plan(query, query.question, query.question, reply, ())
    question = remove_small_talk(query.question)
    is_selected = query.mode == Mode.SELECTED_TEXT_ONLY
    if is_selected and names_selection(question, query.selected_text or ""):
        return Plan(query, question, question, "", turns)
    return Plan(query, question, complete_question(question, turns), "", turns)


def _has_subject(turns: Sequence[Turn]) -> bool:
    """Return True if the latest question before is not about the book itself.

    After "Who wrote this book?", "What is it about?" is about the book too.
    """
    is_about_book = True
    for turn in turns:
        kind = find_reply(Query(turn.question), has_turns=not is_about_book)
        is_about_book = kind in BOOK_QUESTIONS or (is_about_book and bool(kind))
    return not is_about_book


def search_plan(
    plan: Plan,
    searcher: Retriever | LateRetriever,
    searched: str,
    *,
    writes: bool,
    voice: Voice,
    even_if_unrelated: bool = False,
) -> PreparedAnswer:
    """Find and judge the passages for a planned question.

    Args:
        plan: The question.
        searcher: Finds the passages.
        searched: The question to search: the completed question, or a model's wording of it.
        writes: True if a model will write the answer. It reads more passages.
        voice: The language of refusals and notices.
        even_if_unrelated: Answer from a selected text even if the question seems unrelated to it.

    Raises:
        RagPipelineError: As described for `stream_answer`.
    """
    reply = _give_fixed(plan, searcher, voice)
    if reply is not None:
        result = RetrievalResult((), plan.query, Mode(plan.query.mode), 0)
        return PreparedAnswer(plan.query, result, reply)
    asked = read_question(plan.question)
    depth = FORM_DEPTH if asked.kind in _FORMS or names_book(plan.question) else EVIDENCE_DEPTH
    top_k = max(plan.query.result_count, CONTEXT_DEPTH if writes else depth)
    cutoff = max(plan.query.min_relative_score, RELEVANT_FROM)
    query = replace(plan.query, question=plan.question, top_k=top_k, min_relative_score=cutoff)
    wanted = replace(query, question=drop_book(searched))
    try:
        wanted.check()
    except QueryError:
        wanted = query
    result = _search(wanted, searcher)
    if wanted.question != plan.question:
        result = replace(result, search_question=result.search_question or wanted.question)
    if result.verdict is SelectionVerdict.UNRELATED and (
        even_if_unrelated or find_languages(plan.question, result.chunks)  # it was not understood
    ):
        result = replace(result, verdict=SelectionVerdict.MAY_NOT_ANSWER)
    grounded = apply_grounding_policy(
        result, drop_order(result.search_question or plan.question), voice=voice
    )
    if asked.kind is QuestionKind.LIST and result.mode == Mode.NORMAL:
        found = {chunk.metadata.doc_path for chunk in result.chunks}
        place, names = searcher.read_index(
            lambda opened: list_sections(asked.subject, list_pages(opened), found)
        )
        if names:
            listed = voice.note("sections", place=place, names=", ".join(names))
            message = grounded.message or listed.text
            grounded = replace(grounded, message=message, notices=(*grounded.notices, listed))
    if query.filters and not result.chunks:
        from rag_pipeline.retrieval.contents import explain_filters  # noqa: PLC0415  # loads numpy

        if told := explain_filters(searcher.read_index, query.filters):
            unknown = Notice("filter_unknown", " ".join(told))
            grounded = replace(grounded, notices=(*grounded.notices, unknown))
    index_id: str = result.index_id
    return PreparedAnswer(
        plan.query, result, grounded, result.search_question, index_id, plan.turns
    )


def _give_fixed(
    plan: Plan, searcher: Retriever | LateRetriever, voice: Voice
) -> GroundedResponse | None:
    """Return the answer to a question that needs no search, or None."""
    if plan.reply in BOOK_QUESTIONS:
        return searcher.read_index(
            lambda opened: ground_book_question(plan.query, plan.reply, voice, opened)
        )
    if plan.reply:
        return ground_reply(plan.query, plan.reply, voice, plan.completed)
    return ground_neighbor(plan.query, plan.question, voice, searcher.read_index)


def _search(query: Query, searcher: Retriever | LateRetriever) -> RetrievalResult:
    """Return the passages for a query; of a numbered part that it names, those of its pages.

    Of a long text, the clause counts that comes nearest to a passage, if it comes nearer than the
    whole text. Of a question in another language, only the terms are searched.
    """
    if query.mode == Mode.SELECTED_TEXT_ONLY:
        return searcher.retrieve(query)
    part = "" if query.filters else find_numbered_part(query.question)
    read = searcher.read_index
    if part and (pages := read(lambda opened: find_part_pages(part, list_pages(opened)))):
        paths = [page.doc_path for page in pages[:MAX_FILTER_VALUES]]
        titled = replace(query, question=pages[0].title, filters=QueryFilters(doc_paths=paths))
        return replace(searcher.retrieve(titled), query=query, search_question=None)
    result = searcher.retrieve(replace(query, question=drop_order(query.question)))
    for clause in find_asking_clauses(query.question):
        found = searcher.retrieve(replace(query, question=clause))
        if _find_nearest(found) > _find_nearest(result):
            result = replace(found, search_question=found.search_question or clause)
    result = replace(result, query=query)
    terms = find_foreign_terms(query.question, result.chunks)
    if not terms:
        return result
    found = searcher.retrieve(replace(query, question=terms))
    return replace(found, query=query, search_question=terms)


def _find_nearest(result: RetrievalResult) -> float:
    """Return the similarity of the nearest passage to the question."""
    return measure_signals(result, result.query.question).semantic if result.chunks else 0.0


def give_ready(prepared: PreparedAnswer, notice: Notice | None, voice: Voice) -> Answer:
    """Return an answer that no model writes.

    Args:
        prepared: The question with its passages.
        notice: Says why passages are quoted. Unless no model is configured, its sentence precedes
            them.
        voice: The language of the fixed sentences.
    """
    grounded, asked = prepared.grounding, prepared.query.question
    if grounded.level is Level.NOT_COVERED or grounded.reason in REPLIES:
        return make_refusal(grounded, voice, asked)
    quoted = _quote(prepared, notice)
    is_told = notice is not None and notice.code != "no_model"
    message = grounded.message or (notice.text if notice is not None and is_told else "")
    return replace(quoted, text=f"{message}\n\n{quoted.text}") if message else quoted


def append_quotes(answer: Answer, prepared: PreparedAnswer, notice: Notice) -> tuple[str, Answer]:
    """Return the quotes that follow an answer which broke off, and the answer with them.

    Args:
        answer: The part of the answer that was shown.
        prepared: The question with its passages.
        notice: The sentence before the quotes.
    """
    quoted = _quote(prepared, notice)
    more = f"\n\n{notice.text}\n\n{quoted.text}"
    whole = replace(
        answer,
        text=answer.text + more,
        sentences=(*answer.sentences, *quoted.sentences),
        passages=quoted.passages,
        explanation=quoted.explanation,
    )
    return more, cite_sources(whole)


def _quote(prepared: PreparedAnswer, notice: Notice | None) -> Answer:
    question = prepared.search_question or prepared.question
    weights = weigh_question(prepared.result.evidence or NO_EVIDENCE, question)
    seen = join_answers(prepared.question, prepared.turns) if prepared.is_follow_up else ""
    notices = () if notice is None else (notice,)
    quoted = quote_answer(prepared.grounding, question, weights, notices, seen)
    return replace(quoted, question=prepared.query.question)
