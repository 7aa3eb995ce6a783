"""One question on its way through retrieval, and its first stage: split into parts and embedded."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery
from rag_pipeline.core.terms import extract_terms, find_content_words
from rag_pipeline.core.vectors import QuestionVectors
from rag_pipeline.retrieval.filters import build_point_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols.embedding import Embedder, SparseEncoder, WindowEmbedder
    from rag_pipeline.core.protocols.stores import PointFilter
    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, SparseVector
    from rag_pipeline.retrieval.models import Evidence, Query, ScoredChunk, WordNearness
    from rag_pipeline.retrieval.ranking import Candidate, Ranked

MAX_PARTS: Final = 3

_PARALLEL: Final = 8  # as many requests as a service adapter has in flight

_SENTENCE: Final = re.compile(r"(?<=[.?!;])\s+")
_ASKING: Final = (
    r"(?:how|what|which|why|when|where|who|whose"
    r"|does|do|did|is|are|can|could|should|must|will|would)"
)
_ASKS: Final = re.compile(rf"(?:(?:in|at|to|by|from|for|on)\s+)?{_ASKING}\b", re.IGNORECASE)
_CLAUSE: Final = re.compile(rf",?\s+(?:and|but|or)\s+(?={_ASKS.pattern})", re.IGNORECASE)
_PAIR: Final = (
    re.compile(r"\bbetween\s+(?P<one>.+?)\s+and\s+(?P<other>.+)", re.IGNORECASE),
    re.compile(
        r"\bcompared?\s+(?P<one>.+?)\s+(?:with|to|and|against)\s+(?P<other>.+)", re.IGNORECASE
    ),
    re.compile(
        rf"^(?:{_ASKING}\s+)*(?P<one>.+?)\s+"
        r"(?:relates?|related|connects?|connected|differs?|different)\s+"
        r"(?:to|from|with)\s+(?P<other>.+)",
        re.IGNORECASE,
    ),
    re.compile(r"^(?P<one>.+?)\s+(?:vs\.?|versus)\s+(?P<other>.+)", re.IGNORECASE),
)
_CLAUSE_TERMS: Final = 2  # a clause with fewer says too little to be searched for
_PAIR_TERMS: Final = 1
_MAX_CHARS: Final = 1_000  # time grows with the square; a longer text is not a compound question


@dataclass(slots=True)
class Search:
    """A question on its way: each stage reads what the stages before it found and adds its own.

    Attributes:
        offered: Number of hits to choose: as many as were asked for, or more for a reranker.
        text: The question without white space at its ends; for a part of a question, that part.
        where: Which points count at all.
        vectors: Of the text; of its tokens only those that are compared with windows.
        terms: The text's BM25 terms; may be empty.
        windowed: True if the collection has windows of words beside whole chunks.
        parts: The sub-questions of a compound question, as searches; usually none.
        exhausted: True when the store has no further candidate.
        passages: Candidates in the order in which they are chosen.
        bare: Headings without text of their own, which are chosen last.
        nearest: Cosine of the question and the nearest candidate, -1 to 1.
        words: How near the first hits come to each word of the question.
    """

    query: Query
    offered: int
    text: str
    where: PointFilter
    vectors: QuestionVectors
    terms: SparseVector
    windowed: bool
    parts: tuple[Search, ...] = ()

    # Found by the search stage; candidates by ascending point id.
    scores: dict[Channel, dict[PointId, float]] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    exhausted: bool = False
    evidence: Evidence | None = None

    # Made by fusing, choosing and presenting; each list best first.
    passages: list[Ranked] = field(default_factory=list)
    bare: list[Ranked] = field(default_factory=list)
    nearest: float = 0.0
    chosen: list[Ranked] = field(default_factory=list)
    hits: list[ScoredChunk] = field(default_factory=list)
    words: list[WordNearness] = field(default_factory=list)

    @property
    def channels(self) -> list[Channel]:
        """The channels that can score this question."""
        channels = [Channel.DENSE]
        if self.windowed:
            channels.append(Channel.WINDOWS)
        if self.terms.indices:
            channels.append(Channel.BM25)
        return channels

    def ask(self, channel: Channel, limit: int, where: PointFilter) -> ChannelQuery:
        """Build the store's query of this question for a channel."""
        vectors: dict[Channel, FloatVector | FloatMatrix | SparseVector] = {
            Channel.DENSE: self.vectors.dense,
            Channel.WINDOWS: self.vectors.tokens,
            Channel.BM25: self.terms,
        }
        return ChannelQuery(channel, vectors[channel], limit, where)


def prepare_searches(
    embedder: Embedder,
    encoder: SparseEncoder,
    queries: Sequence[Query],
    choices_per_result: int = 1,
) -> list[Search]:
    """Embed the questions of checked queries and their parts, several at a time.

    Args:
        embedder: The model that the collection was built with.
        encoder: The encoder that the collection was built with.
        queries: In normal mode.
        choices_per_result: Hits to choose for each result asked for; more than 1 for a reranker.

    Returns:
        A search for each query, in order.

    Raises:
        EmbeddingServiceError: The service failed after all retries.
        EmbeddingDimensionError: A vector has another length than the model's.
    """
    parts = {text: split_question(text) for text in map(_read_text, queries)}
    texts = [*parts, *(part for own in parts.values() for part in own)]
    vectors = _embed(embedder, list(dict.fromkeys(texts)))

    def begin(query: Query, text: str, own_parts: tuple[Search, ...] = ()) -> Search:
        return Search(
            query=query,
            offered=query.result_count * choices_per_result,
            text=text,
            where=build_point_filter(query.filters),
            vectors=vectors[text],
            terms=encoder.encode_query(text),
            windowed=embedder.model.window_words is not None,
            parts=own_parts,
        )

    searches = []
    for query in queries:
        text = _read_text(query)
        own_parts = tuple(begin(query, part) for part in parts[text])
        searches.append(begin(query, text, own_parts))
    return searches


def split_question(question: str) -> tuple[str, ...]:
    """Split a compound question into 2 or 3 sub-questions; return none for a simple question.

    To a model, a question such as "How does X relate to Y?" is one point between X and Y, and
    passages on the stronger half fill the list. So each half is searched for as well.
    """
    question = " ".join(question.split())  # runs of blanks would take the cube of their length
    if len(question) > _MAX_CHARS:
        return ()
    clauses = [
        clause.strip(" ,.;?!")
        for sentence in _SENTENCE.split(question)
        for clause in _CLAUSE.split(sentence)
    ]
    asked = [
        clause
        for clause in clauses
        if _ASKS.match(clause) and _count_terms(clause) >= _CLAUSE_TERMS
    ]
    if len(asked) >= 2:
        return tuple(asked[:MAX_PARTS])
    for pattern in _PAIR:
        match = pattern.search(question.strip(" .?!"))
        if match is not None:
            pair = (match["one"].strip(" ,"), match["other"].strip(" ,"))
            if all(_count_terms(part) >= _PAIR_TERMS for part in pair):
                return pair
    return ()


def keep_content_tokens(text: str, vectors: QuestionVectors) -> QuestionVectors:
    """Leave out the tokens of punctuation and of stop words, which windows do not contain.

    A question of nothing else keeps all of them. See docs/adr/0020.
    """
    words = find_content_words(text)
    rows = [
        row
        for row, (start, end) in enumerate(vectors.spans)
        if any(start < behind and end > first for first, behind in words)
    ]
    if not rows:
        return vectors
    spans = tuple(vectors.spans[row] for row in rows)
    return QuestionVectors(vectors.dense, vectors.tokens[rows], spans)


def _read_text(query: Query) -> str:
    return query.question.strip()


def _embed(embedder: Embedder, texts: Sequence[str]) -> dict[str, QuestionVectors]:
    if len(texts) <= 1:
        found = {text: _embed_one(embedder, text) for text in texts}
    else:
        with ThreadPoolExecutor(min(_PARALLEL, len(texts))) as pool:
            rows = pool.map(lambda text: _embed_one(embedder, text), texts)
            found = dict(zip(texts, rows, strict=True))
    model = embedder.model
    for vectors in found.values():
        if vectors.dense.shape != (model.dim,):
            raise EmbeddingDimensionError(
                model.model, f"{model.dim} dimensions", f"shape {vectors.dense.shape}"
            )
    return found


def _embed_one(embedder: Embedder, text: str) -> QuestionVectors:
    if embedder.model.window_words is not None:
        return keep_content_tokens(text, cast("WindowEmbedder", embedder).embed_question(text))
    dense = embedder.embed_query(text)
    return QuestionVectors(dense, dense[np.newaxis])


def _count_terms(text: str) -> int:
    return len(set(extract_terms(text)))
