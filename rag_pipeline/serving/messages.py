"""The bodies of requests and answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_pipeline.answering.conversations.history import Turn
from rag_pipeline.answering.models import AnswerKind, Level, Reason
from rag_pipeline.retrieval.filters import QueryFilters
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from rag_pipeline.answering.assistant import PreparedAnswer
    from rag_pipeline.answering.models import Answer, GroundedResponse

PROTOCOL: Final = 1
_Values = Annotated[list[Annotated[str, StringConstraints(max_length=500)]], Field(max_length=50)]
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
_Question = Annotated[str, StringConstraints(max_length=2_000)]
_Place = Annotated[str, StringConstraints(max_length=2_000)]


class Request(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Filters(Request):
    """Restrictions on the search; at most 50 values each."""

    modules: _Values | None = None
    chapters: _Values | None = None
    content_types: _Values | None = None
    tags: _Values | None = None
    doc_paths: _Values | None = None

    def to_filters(self) -> QueryFilters:
        """Return the filters of the library, without those that are not given."""
        return QueryFilters(**self.model_dump(exclude_none=True))


class HistoryTurn(Request):
    """An earlier question and its answer."""

    question: _Question
    answer: Annotated[str, StringConstraints(max_length=50_000)] = ""
    selected_text: Annotated[str, StringConstraints(max_length=20_000)] | None = None


class AnswerRequest(Request):
    """A question for `POST /v1/answers`."""

    question: _Question
    mode: Mode = Mode.NORMAL
    selected_text: Annotated[str, StringConstraints(max_length=20_000)] | None = None
    source_url: _Place | None = None
    source_doc_path: _Place | None = None
    source_section: _Place | None = None
    filters: Filters | None = None
    top_k: Annotated[int, Field(ge=1, le=100, strict=True)] | None = None
    conversation_id: _Id | None = None
    history: Annotated[list[HistoryTurn], Field(max_length=20)] | None = None
    even_if_unrelated: bool = False

    def to_query(self) -> Query:
        """Return the query of the library."""
        return Query(
            self.question,
            mode=self.mode,
            selected_text=self.selected_text,
            source_doc_path=self.source_doc_path,
            source_section=self.source_section,
            source_url=self.source_url,
            filters=self.filters.to_filters() if self.filters else None,
            top_k=self.top_k,
        )

    def to_turns(self) -> tuple[Turn, ...] | None:
        """Return the history of the body; None if it has none."""
        if self.history is None:
            return None
        return tuple(Turn(turn.question, turn.answer, turn.selected_text) for turn in self.history)


class SearchRequest(Request):
    """A question for `POST /v1/search`."""

    question: _Question
    filters: Filters | None = None
    top_k: Annotated[int, Field(ge=1, le=100, strict=True)] | None = None


class FeedbackRequest(Request):
    """A rating for `POST /v1/feedback`: either 1 to 5, or a thumb."""

    answer_id: _Id
    rating: Annotated[int, Field(ge=1, le=5, strict=True)] | None = None
    thumb: Annotated[str, StringConstraints(pattern="^(up|down)$")] | None = None
    tags: Annotated[
        list[Annotated[str, StringConstraints(max_length=50)]], Field(max_length=10)
    ] = []
    note: _Question = ""


def list_sources(grounding: GroundedResponse) -> list[dict[str, Any]]:
    """Return the sources that an answer may cite."""
    return [
        {
            "number": source.number,
            "chunk_id": source.chunk_id,
            **asdict(source.citation),
            "content_type": source.content_type,
            "text": source.text,
        }
        for source in grounding.sources
    ]


def describe_refusal(grounding: GroundedResponse, *, has_filters: bool) -> dict[str, Any]:
    """Return the content of a refusal: its reason, message, related sections and offers."""
    offers = []
    if grounding.mode is Mode.SELECTED_TEXT_ONLY:
        offers.append("whole_book")
        if grounding.reason is Reason.UNRELATED_TO_SELECTION:
            offers.append("answer_anyway")
    elif has_filters:
        offers.append("drop_filters")
    return {
        "reason": grounding.reason.value,
        "message": grounding.message,
        "related": [asdict(citation) for citation in grounding.related],
        "offers": offers,
    }


def is_refused(grounding: GroundedResponse) -> bool:
    """Return True if a question is refused before anything is written."""
    return grounding.level is Level.NOT_COVERED and grounding.reason is not Reason.SMALL_TALK


def describe_answer(answer: Answer, prepared: PreparedAnswer) -> dict[str, Any]:
    """Return the content of a complete answer, without ids and timings."""
    filters = prepared.query.filters
    refused = answer.kind is AnswerKind.REFUSED
    has_filters = filters is not None and any(
        getattr(filters, name, None) for name in Filters.model_fields
    )
    return {
        "kind": answer.kind.value,
        "level": answer.grounding.level.value,
        "text": answer.text,
        "sentences": [asdict(entry) for entry in answer.sentences],
        "passages": [asdict(entry) for entry in answer.passages],
        "sources": list_sources(answer.grounding),
        "confidence": answer.grounding.confidence,
        "refusal": describe_refusal(answer.grounding, has_filters=has_filters) if refused else None,
        "notices": [{"code": "notice", "text": text} for text in answer.notices],
        "search_question": prepared.search_question,
        "index_id": prepared.index_id,
        "model": answer.model,
        "complete": answer.complete,
    }
