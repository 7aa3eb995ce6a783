"""The bodies of requests, answers and streamed events, which OpenAPI documents."""

# ruff: noqa: TC001  # pydantic reads the annotations at run time

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationInfo,
    create_model,
    field_validator,
)
from typing_extensions import TypedDict  # pydantic cannot document typing.TypedDict in Python 3.11

from rag_pipeline.answering.models import (
    AnswerKind,
    AnswerSentence,
    Level,
    Notice,
    Passage,
    Reason,
    Turn,
)
from rag_pipeline.answering.quoting.passages import list_shown
from rag_pipeline.core.models import Figure
from rag_pipeline.core.payload import FILTERS, show_edition
from rag_pipeline.core.sources import DEFAULT_EDITION
from rag_pipeline.retrieval.contents import SectionText
from rag_pipeline.retrieval.models import Citation, RetrievalResult
from rag_pipeline.retrieval.open_index import ContentsPage, ContentsSection
from rag_pipeline.retrieval.queries import Mode, Query, QueryFilters
from rag_pipeline.serving import MAX_QUESTION_CHARS
from rag_pipeline.serving.limits import MAX_SELECTION_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.answering import Answer, GroundedResponse, PreparedAnswer


Offer = Literal["answer_anyway", "whole_book", "drop_filters"]


class CitationBody(TypedDict):
    """The fields of a `Citation`, among those of what it belongs to."""

    title: str
    section: str
    url: str
    module: str
    chapter: str
    version: str
    locale: str
    tabs: list[str]


class SourceBody(CitationBody):
    """The text of a section that an answer may cite by its number."""

    number: int
    chunk_id: str
    content_type: str
    text: str
    figures: list[Figure]


class RefusalBody(TypedDict):
    """Why a question is not answered, which sections are near it, and what the reader can do."""

    reason: Reason
    message: str
    related: list[Citation]
    offers: list[Offer]


class DoneBody(TypedDict):
    """A complete answer or a refusal, without what the events before `done` have told."""

    answer_id: str
    kind: AnswerKind
    level: Level
    text: str
    sentences: list[AnswerSentence]
    passages: list[Passage]
    notices: list[Notice]
    model: str | None
    complete: bool
    timings_ms: dict[str, float]


class AnswerBody(DoneBody):
    """A complete answer or a refusal. A refusal has no sources, but related sections.

    `search_question` is what was searched instead of the question; null if nothing else was.
    """

    conversation_id: str
    confidence: float | None
    sources: list[SourceBody]
    refusal: RefusalBody | None
    search_question: str | None
    index_id: str


class HitBody(CitationBody):
    """A passage that a search found. The score is 0 to 1; higher is better."""

    chunk_id: str
    content_type: str
    text: str
    score: float


class SearchBody(TypedDict):
    """The passages that a search found, best first, and a hint for the reader or null."""

    notice: str | None

    search_question: str | None
    index_id: str
    total_candidates: int
    results: list[HitBody]


class AboutBody(TypedDict):
    """The assistant as ASSISTANT_NAME, ASSISTANT_SOURCE and ASSISTANT_LANGUAGE name it."""

    name: str
    source: str
    language: str


class FiltersBody(TypedDict):
    """The number of passages for each value of each filter."""

    filters: dict[str, dict[str, int]]


class EditionBody(TypedDict):
    """The source, version and language of a page; null where the site has only one."""

    source: str | None
    version: str | None
    version_label: str | None
    is_latest: bool
    locale: str | None
    is_default_locale: bool


class PageBody(TypedDict):
    """A page of the book with its sections in reading order.

    `edition` is missing if the site has one docs folder, no versions and one language.
    """

    title: str
    url: str
    doc_path: str
    module: str
    chapter: str
    sections: list[ContentsSection]
    edition: NotRequired[EditionBody]


class ContentsBody(TypedDict):
    """The pages of the book in their order."""

    pages: list[PageBody]


class GlossaryBody(TypedDict):
    """The entries of the book's glossaries for a text."""

    entries: list[SectionText]


def describe_search(result: RetrievalResult) -> dict[str, Any]:
    """Return a `SearchBody`."""
    record = result.to_dict()
    same = ("search_question", "index_id", "total_candidates", "notice")
    return {
        **{name: record[name] for name in same},
        "results": [
            {
                **{name: chunk[name] for name in ("chunk_id", "text", "score")},
                **chunk["citation"],
                "content_type": chunk["metadata"]["content_type"],
            }
            for chunk in record["chunks"]
        ],
    }


def describe_page(page: ContentsPage) -> dict[str, Any]:
    """Return a `PageBody`."""
    body = asdict(page)
    del body["edition"]
    if page.edition == DEFAULT_EDITION:
        return body
    return {**body, "edition": show_edition(page.edition)}


def list_sources(grounding: GroundedResponse) -> list[dict[str, Any]]:
    """Return the sources that an answer may cite, each a `SourceBody`; none for a refusal."""
    if grounding.level is Level.NOT_COVERED:
        return []
    return [
        {
            "number": source.number,
            "chunk_id": source.chunk_id,
            **asdict(source.citation),
            "content_type": source.content_type,
            "text": source.text,
            "figures": [asdict(figure) for figure in list_shown(source)],
        }
        for source in grounding.sources
    ]


def describe_answer(answer: Answer, prepared: PreparedAnswer) -> dict[str, Any]:
    """Return the fields of an `AnswerBody`, without ids and timings."""
    record, grounding = answer.to_dict(), answer.grounding
    refusal = None
    if answer.kind is AnswerKind.REFUSED:
        refusal = {
            "reason": grounding.reason.value,
            "message": grounding.message,
            "related": [asdict(citation) for citation in grounding.related],
            "offers": _list_offers(grounding, prepared),
        }
    same = ("kind", "level", "sentences", "passages", "confidence", "model", "complete")
    return {
        **{name: record[name] for name in same},
        "text": answer.text,
        "sources": list_sources(grounding),
        "refusal": refusal,
        "notices": record["notices"],
        "search_question": prepared.search_question,
        "index_id": prepared.index_id,
    }


def _list_offers(grounding: GroundedResponse, prepared: PreparedAnswer) -> list[Offer]:
    """Return what the reader can do instead, the most helpful first."""
    if grounding.mode is Mode.SELECTED_TEXT_ONLY:
        unrelated = grounding.reason is Reason.UNRELATED_TO_SELECTION
        return ["whole_book", "answer_anyway"] if unrelated else ["whole_book"]
    filters = prepared.query.filters
    if filters is None:
        return []
    given = (getattr(filters, declared.name) for declared in FILTERS.values())
    return ["drop_filters"] if any(given) else []


PROTOCOL: Final = 1
KEEP_ALIVE: Final = b": waiting\n\n"


class Start(TypedDict):
    """The first event. `search_question` is what was searched instead of the question."""

    protocol: Literal[1]
    answer_id: str
    conversation_id: str
    mode: Mode
    search_question: str | None
    index_id: str
    model: str | None


class Sources(TypedDict):
    """The sources that the answer may cite."""

    confidence: float | None
    sources: list[SourceBody]


class Delta(TypedDict):
    """The next piece of the answer's text."""

    text: str


class Failure(TypedDict):
    """The last event if the answer failed. The text so far is not an answer."""

    code: str
    message: str
    transient: bool
    retry_after_s: float | None


def make_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON schema of a type, with its definitions in place of references to them."""
    schema = adapter.json_schema(mode="serialization")
    definitions = schema.pop("$defs", {})

    def replace(node: Any) -> Any:  # noqa: ANN401  # any part of a JSON document
        if isinstance(node, dict):
            if "$ref" in node:
                return replace(definitions[node["$ref"].rpartition("/")[2]])
            return {name: replace(value) for name, value in node.items()}
        return [replace(value) for value in node] if isinstance(node, list) else node

    replaced: dict[str, Any] = replace(schema)
    return replaced


EVENTS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "start": TypeAdapter(Start),
    "sources": TypeAdapter(Sources),
    "delta": TypeAdapter(Delta),
    "refusal": TypeAdapter(RefusalBody),
    "done": TypeAdapter(DoneBody),
    "error": TypeAdapter(Failure),
}
"""The type of each event's data. A stream ends with exactly one `done` or `error`."""


def encode_event(name: str, data: Mapping[str, Any]) -> bytes:
    """Return one event. The data is ASCII JSON in one line, so that any text survives."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")


def describe_events() -> dict[str, Any]:
    """Return the content of an event stream for the OpenAPI document."""
    described = [
        {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "event": {"const": name},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": make_schema(adapter),
                },
            },
        }
        for name, adapter in EVENTS.items()
    ]
    return {"schema": {"type": "string"}, "itemSchema": {"oneOf": described}}


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


_CLEAN: Final = BeforeValidator(_replace_surrogates)
_Value = Annotated[str, StringConstraints(max_length=500), _CLEAN]
_Values = Annotated[list[_Value], Field(max_length=50)]
_Question = Annotated[str, StringConstraints(max_length=MAX_QUESTION_CHARS), _CLEAN]
_Selection = Annotated[
    str, StringConstraints(max_length=20_000), AfterValidator(_check_parts), _CLEAN
]
_Place = Annotated[str, StringConstraints(max_length=2_000), _CLEAN]
_TopK = Annotated[int, Field(ge=1, le=100, strict=True)]
_Stars = Annotated[int, Field(ge=1, le=5, strict=True)]
_Tag = Annotated[str, StringConstraints(max_length=50), _CLEAN]
ID_PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
"""Pattern of the ids of answers and conversations."""
_Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]


class Request(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    def to_query(self) -> Query:
        """Return the query of the library, whose fields have the same names."""
        names = self.__class__.model_fields.keys() & {one.name for one in fields(Query)}
        given = {name: getattr(self, name) for name in names}
        if filters := given["filters"]:
            given["filters"] = QueryFilters(**filters.model_dump(exclude_none=True))
        return Query(**given)


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


class HistoryTurn(Request):
    """An earlier question and its answer."""

    question: _Question
    answer: Annotated[str, StringConstraints(max_length=50_000), _CLEAN] = ""
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
