"""The bodies of requests."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    create_model,
    field_validator,
)

from rag_pipeline.answering.models import Turn
from rag_pipeline.core.payload import FILTERS
from rag_pipeline.retrieval.queries import Mode, Query, QueryFilters
from rag_pipeline.serving import MAX_QUESTION_CHARS
from rag_pipeline.serving.limits import MAX_SELECTION_PARTS

_PART_END: Final = re.compile(r"\n\s*|[.!?]\s|[\u3002\uff01\uff1f]")  # of a line or sentence


def _replace_surrogates(value: object) -> object:
    """Replace unpaired surrogates, such as half of an emoji at the end of a selection, by `?`."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _check_parts(selection: str) -> str:
    """Check that a selection does not have too many lines and sentences.

    Raises:
        ValueError: It has more parts than an answer may take the time for.
    """
    count = 1 + sum(1 for _ in _PART_END.finditer(selection))
    if count > MAX_SELECTION_PARTS:
        raise ValueError(
            f"the text has about {count:,} lines and sentences, but the limit is "
            f"{MAX_SELECTION_PARTS:,}. Select less text"
        )
    return selection


_Text = Annotated[str, BeforeValidator(_replace_surrogates)]
_Values = Annotated[list[Annotated[_Text, StringConstraints(max_length=500)]], Field(max_length=50)]
_Question = Annotated[_Text, StringConstraints(max_length=MAX_QUESTION_CHARS)]
_Selection = Annotated[_Text, StringConstraints(max_length=20_000), AfterValidator(_check_parts)]
_Place = Annotated[_Text, StringConstraints(max_length=2_000)]
_TopK = Annotated[int, Field(ge=1, le=100, strict=True)]
_Stars = Annotated[int, Field(ge=1, le=5, strict=True)]
_Tag = Annotated[_Text, StringConstraints(max_length=50)]
ID_PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""Pattern of the ids of answers and conversations."""
_Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]


class Request(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


_FILTERS: Final[dict[str, Any]] = {
    declared.name: (_Values | None, None) for declared in FILTERS.values()
}
Filters = create_model(
    "Filters",
    __base__=Request,
    __doc__="Restrictions on the search; at most 50 values of each kind.",
    **_FILTERS,
)
"""A list of values for each filter that `core.payload` declares."""


def read_filters(filters: BaseModel | None) -> QueryFilters | None:
    """Return the filters of the library, without those that are not given."""
    return QueryFilters(**filters.model_dump(exclude_none=True)) if filters else None


class HistoryTurn(Request):
    """An earlier question and its answer."""

    question: _Question
    answer: Annotated[_Text, StringConstraints(max_length=50_000)] = ""
    selected_text: _Selection | None = None


class AnswerRequest(Request):
    """A question for `POST /v1/answers`."""

    question: _Question
    mode: Mode = Mode.NORMAL
    selected_text: _Selection | None = None
    source_url: _Place | None = None
    source_doc_path: _Place | None = None
    source_section: _Place | None = None
    filters: Filters | None = None
    top_k: _TopK | None = None
    conversation_id: _Id | None = None
    history: Annotated[list[HistoryTurn], Field(max_length=20)] | None = None
    even_if_unrelated: bool = False
    exact_words: bool = False

    def to_query(self) -> Query:
        """Return the query of the library."""
        return Query(
            self.question,
            mode=self.mode,
            selected_text=self.selected_text,
            source_doc_path=self.source_doc_path,
            source_section=self.source_section,
            source_url=self.source_url,
            filters=read_filters(self.filters),
            top_k=self.top_k,
            exact_words=self.exact_words,
        )

    def to_turns(self) -> tuple[Turn, ...]:
        """Return the earlier turns of the conversation, which travel in the request."""
        turns = self.history or ()
        return tuple(Turn(turn.question, turn.answer, turn.selected_text) for turn in turns)


class SearchRequest(Request):
    """A question for `POST /v1/search`."""

    question: _Question
    source_url: _Place | None = None
    filters: Filters | None = None
    top_k: _TopK | None = None
    exact_words: bool = False
    min_relative_score: Annotated[float, Field(ge=0, le=1)] = 0.0

    def to_query(self) -> Query:
        """Return the query of the library."""
        return Query(
            self.question,
            filters=read_filters(self.filters),
            top_k=self.top_k,
            source_url=self.source_url,
            exact_words=self.exact_words,
            min_relative_score=self.min_relative_score,
        )


class GlossaryRequest(Request):
    """A text for `POST /v1/glossary`, such as a selected passage."""

    text: _Selection


class FeedbackRequest(Request):
    """A rating for `POST /v1/feedback`: either 1 to 5 stars, or a thumb, which means 5 or 1."""

    answer_id: _Id
    rating: _Stars | None = None
    thumb: Literal["up", "down"] | None = Field(default=None, validate_default=True)
    tags: Annotated[list[_Tag], Field(max_length=10)] = []
    note: _Question = ""

    @field_validator("thumb", mode="after")
    @classmethod
    def check_thumb(cls, thumb: str | None, info: ValidationInfo) -> str | None:
        """Check that there is either a thumb or a rating; an invalid rating is reported itself.

        Raises:
            ValueError: There is neither, or there are both.
        """
        if "rating" in info.data and (thumb is None) == (info.data["rating"] is None):
            raise ValueError("give either a rating from 1 to 5, or a thumb")
        return thumb

    @property
    def stars(self) -> int:
        """The rating from 1 to 5; a thumb up is 5, and a thumb down is 1."""
        return self.rating or (5 if self.thumb == "up" else 1)
