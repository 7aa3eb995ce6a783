"""Prepare an answer: read the question, find its passages, and judge if they suffice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from rag_pipeline.answering.conversations.follow_ups import complete_question, needs_earlier
from rag_pipeline.answering.conversations.history import choose_turns
from rag_pipeline.answering.grounding import apply_grounding_policy
from rag_pipeline.answering.reading.languages import find_foreign_terms
from rag_pipeline.answering.reading.questions import QuestionKind, read_question
from rag_pipeline.answering.reading.small_talk import (
    find_reply,
    ground_reply,
    make_empty_result,
    remove_small_talk,
)
from rag_pipeline.core.errors import QueryError
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.queries import Mode, Query, check_query
from rag_pipeline.retrieval.relatedness import SelectionVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.answering.models import GroundedResponse, Turn
    from rag_pipeline.answering.voice import Voice
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.protection.limits import Protection

CONTEXT_DEPTH: Final = 30
"""Number of passages that are read if a model writes the answer. They usually fill its context."""


FORM_DEPTH: Final = 10
"""Number of passages that are read for a definition or a comparison, if no model writes the answer.

The passage that defines a term, or the table that compares two things, can rank below passages that
name them more often.
"""


class Searcher(Protocol):
    """A search with limits and a log, such as a `Retriever`."""

    @property
    def protection(self) -> Protection:
        """The time limits, circuit breakers and log."""

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the passages for a query."""


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
    """What to do about a question, before anything is searched.

    Attributes:
        query: The query as asked.
        question: The question without small talk.
        completed: The question with what it needs from earlier turns.
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

    Raises:
        QueryError: The query is not valid.
    """
    check_query(query)
    turns = choose_turns(history, query)
    reply = find_reply(query, has_turns=bool(turns))
    if reply:
        return Plan(query, query.question, query.question, reply, ())
    question = remove_small_talk(query.question)
    return Plan(query, question, complete_question(question, turns), "", turns)


def search_plan(
    plan: Plan,
    searcher: Searcher,
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
    if plan.reply:
        grounded = ground_reply(plan.query, plan.reply, voice)
        return PreparedAnswer(plan.query, make_empty_result(plan.query), grounded)
    top_k = max(plan.query.result_count, _choose_depth(plan.question, writes=writes))
    wanted = _ask(replace(plan.query, question=plan.question, top_k=top_k), searched)
    result = _search(wanted, searcher)
    if wanted.question != plan.question:
        result = replace(result, search_question=result.search_question or wanted.question)
    if even_if_unrelated and result.verdict is SelectionVerdict.UNRELATED:
        result = replace(result, verdict=SelectionVerdict.MAY_NOT_ANSWER)
    grounded = apply_grounding_policy(result, result.search_question or plan.question, voice=voice)
    index_id: str = result.index_id
    return PreparedAnswer(
        plan.query, result, grounded, result.search_question, index_id, plan.turns
    )


def _choose_depth(question: str, *, writes: bool) -> int:
    """Return the number of passages to read for a question."""
    if writes:
        return CONTEXT_DEPTH
    kind = read_question(question).kind
    asks_form = kind in {QuestionKind.DEFINITION, QuestionKind.COMPARISON}
    return FORM_DEPTH if asks_form else EVIDENCE_DEPTH


def _ask(query: Query, searched: str) -> Query:
    """Return the query with another question, unless it would not be valid with it."""
    other = replace(query, question=searched)
    try:
        other.check()
    except QueryError:
        return query
    return other


def _search(query: Query, searcher: Searcher) -> RetrievalResult:
    """Return the passages for a query; search only the terms of a question in another language."""
    result = searcher.retrieve(query)
    terms = find_foreign_terms(query.question, result.chunks)
    if query.mode == Mode.SELECTED_TEXT_ONLY or not terms:
        return result
    found = searcher.retrieve(replace(query, question=terms))
    return replace(found, query=query, search_question=terms)
