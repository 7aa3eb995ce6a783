"""What a caller asks and what it gets back; field names are those of the retrieval contract.

Belongs here: plain data and whether a query is usable. Does not belong here: how passages are found
(retriever) or whether they suffice for an answer (answering).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    InvalidKError,
    QueryEmptyError,
    QueryError,
    QueryTooLongError,
    SelectionMissingError,
)
from rag_pipeline.retrieval.filters import DEFAULT_TOP_K, check_filters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import TextBlock
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.retrieval.filters import QueryFilters

MAX_QUESTION_CHARS: Final = 5_000
MAX_TOP_K: Final = 100
_SELECTION_FIELDS: Final = ("selected_text", "source_doc_path", "source_section")


class Mode(StrEnum):
    """Where context comes from: the whole book, or nothing but the caller's selection."""

    NORMAL = "normal"
    SELECTED_TEXT_ONLY = "selected_text_only"


@dataclass(frozen=True, slots=True)
class Query:
    """A question and where its answer is to be sought.

    Attributes:
        question: 1 to 5,000 characters, white space at its ends left out; at least one of them
            can be seen.
        selected_text: Needed in selected-text mode, not read in normal mode.
        source_doc_path: Document the selection was made in, for its citation.
        source_section: Heading the selection stands under, for its citation.
        filters: Not read in selected-text mode.
        top_k: Number of results, 1 to 100; None for that of `filters`, or 5.
        expand_to_section_tokens: Widen each hit by its neighbours in the same section while they
            fit in this many cl100k_base tokens; None for no widening.
        source_url: Address of the page the selection was made on, for its citation; None forms it
            from `source_doc_path`, which a page with a `slug` of its own does not have.
    """

    question: str
    mode: Mode = Mode.NORMAL
    selected_text: str | None = None
    source_doc_path: str | None = None
    source_section: str | None = None
    filters: QueryFilters | None = None
    top_k: int | None = None
    expand_to_section_tokens: int | None = None
    source_url: str | None = None

    def __post_init__(self) -> None:
        """Replace halves of surrogate pairs, as JSON can bring them: they can be sent nowhere."""
        for name in ("question", *_SELECTION_FIELDS, "source_url"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, value.encode("utf-8", "replace").decode())

    @property
    def result_count(self) -> int:
        """How many results are asked for."""
        if self.top_k is not None:
            return self.top_k
        return self.filters.top_k if self.filters else DEFAULT_TOP_K

    def check(self) -> None:
        """Check that the query is usable; touches nothing but its own fields.

        Raises:
            QueryEmptyError: The question is empty or white space.
            QueryTooLongError: It has over 5,000 characters.
            InvalidKError: The number of results is not within 1 to 100.
            SelectionMissingError: Selected-text mode without a selection.
            QueryError: Another field is out of its bounds; the message names it.
        """
        if not isinstance(self.question, str) or _is_blank(self.question):
            raise QueryEmptyError
        length = len(self.question.strip())
        if length > MAX_QUESTION_CHARS:
            raise QueryTooLongError(length, MAX_QUESTION_CHARS)
        if self.mode not in tuple(Mode):
            raise QueryError(f"mode must be one of {', '.join(Mode)}, not {self.mode!r:.40}")
        for name in _SELECTION_FIELDS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise QueryError(f"{name} must be a text, not {value!r:.40}")
        if self.mode == Mode.SELECTED_TEXT_ONLY and _is_blank(self.selected_text or ""):
            raise SelectionMissingError
        self._check_search()

    def _check_search(self) -> None:
        if self.filters is not None:
            check_filters(self.filters)
        count = self.result_count
        if not _is_count(count, 1, MAX_TOP_K):
            raise InvalidKError(count, 1, MAX_TOP_K)
        budget = self.expand_to_section_tokens
        if budget is not None and not _is_count(budget, 1, None):
            raise QueryError(
                f"expand_to_section_tokens must be a whole number from 1, not {budget!r:.40}"
            )
        if self.source_url is not None and not _is_address(self.source_url):
            raise QueryError(
                f"source_url must begin with https://, http:// or /, not {self.source_url!r:.40}"
            )


def check_queries(queries: Sequence[Query]) -> None:
    """Check that all queries are usable.

    Raises:
        QueryError: One is not, as `Query.check`; of several its message says which.
    """
    for position, query in enumerate(queries, 1):
        try:
            _check_query(query)
        except QueryError as error:
            error.position = position if len(queries) > 1 else None
            raise


def _check_query(query: object) -> None:
    if not isinstance(query, Query):
        raise QueryError(f"{query!r:.40} is no query. Pass Query(question)")
    query.check()


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """How each way of searching scored a hit against the question.

    Attributes:
        dense: Cosine of question and whole chunk, -1 to 1.
        windows: Mean over the tokens of the question's words, stop words left out, of each one's
            cosine with the nearest of the chunk's windows of words, -1 to 1.
        bm25: BM25 score, 0 or more, without an upper bound.
        lexical: Share of the question's terms that the chunk or its headings hold, 0 to 1.
        fused: What hits are ranked by; about 0 to 1 within one question's candidates, no bound.
    """

    dense: float
    windows: float
    bm25: float
    lexical: float
    fused: float


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a passage stands: `url` is the page with the section's anchor, empty where unknown."""

    title: str
    section: str
    url: str
    module: str
    chapter: str


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A passage that was found.

    Attributes:
        chunk_id: 16 hexadecimal digits.
        text: The chunk as it stands in the book, cleaned.
        score: 0 to 1, never higher than that of the hit before: how near the book's nearest passage
            comes to the question, scaled down by rank score. 1 for a selection.
        channels: None for a selection, which was not searched for.
        expanded_text: The chunk with its neighbours, if the query asked for it.
        expanded_blocks: The blocks of `expanded_text`; those of `text` are in the metadata.
    """

    chunk_id: str
    text: str
    score: float
    metadata: ChunkMetadata
    citation: Citation
    channels: ChannelScores | None = None
    expanded_text: str | None = None
    expanded_blocks: tuple[TextBlock, ...] = ()

    @property
    def context_text(self) -> str:
        """The widened text if there is one, else the chunk's own."""
        return self.text if self.expanded_text is None else self.expanded_text

    @property
    def context_blocks(self) -> tuple[TextBlock, ...]:
        """The blocks of `context_text`."""
        return self.metadata.blocks if self.expanded_text is None else self.expanded_blocks


@dataclass(frozen=True, slots=True)
class TermWeight:
    """A term of the question, and how much it tells about a passage that holds it.

    Attributes:
        word: The word as asked that the term comes from.
        weight: Above 0; higher for rarer terms.
        known: Whether the book holds the term anywhere.
    """

    term: str
    word: str
    weight: float
    known: bool


@dataclass(frozen=True, slots=True)
class WordNearness:
    """A word of the question, and how near the best passages come to it.

    Attributes:
        weight: Of its heaviest term.
        nearness: Mean over the word's tokens of each one's cosine with the nearest window of words,
            of the passage where that is highest; -1 to 1.
    """

    word: str
    weight: float
    nearness: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the whole book says about a question's terms, filters left out of it.

    Attributes:
        model: Fingerprint of the embedding model that the channel scores come from.
        chunk_count: How many chunks were searched, filters applied.
        terms: Distinct, in the question's order; empty for a question without terms.
        words: Those with a term of their own, in the question's order, against the five best
            passages; empty for a model without windows.
    """

    model: str
    chunk_count: int
    terms: tuple[TermWeight, ...]
    words: tuple[WordNearness, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Passages for a question, best first.

    Attributes:
        chunks: At most as many as asked for; near-duplicates are left out.
        total_candidates: How many passages were ranked before the cut to top_k.
        related: False where the question does not seem to be about the selection; True in normal
            mode.
        relatedness: How strongly question and selection are related, 0 to 1; None in normal mode.
        notice: A hint for the reader, such as to ask the whole book.
        evidence: What grounding weighs; None in selected-text mode.
    """

    chunks: tuple[ScoredChunk, ...]
    query: Query
    mode: Mode
    total_candidates: int
    related: bool = True
    relatedness: float | None = None
    notice: str | None = None
    evidence: Evidence | None = None


def _is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, control and zero-width characters."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _is_count(value: object, lowest: int, highest: int | None) -> bool:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        return False
    return highest is None or value <= highest


def _is_address(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("https://", "http://", "/"))
