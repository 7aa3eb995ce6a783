"""The first stage of retrieval: split and embed questions."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.text.abbreviations import Abbreviation, find_unshortened, find_unspelled
from rag_pipeline.core.text.form_words import FORM_SHARE, find_form_terms, find_form_words
from rag_pipeline.core.text.terms import extract_terms, extract_words, find_content_words
from rag_pipeline.core.vectors import QuestionVectors, SparseVector
from rag_pipeline.retrieval.queries import Query, build_point_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.protocols import Embedder, SparseEncoder, WindowEmbedder
    from rag_pipeline.core.vectors import FloatMatrix, FloatVector

MAX_TERMS: Final = 48
"""Maximum number of distinct terms of a question that are weighed; later terms are ignored."""

MAX_PARTS: Final = 3  # sub-questions of a compound question

_PARALLEL: Final = 8  # texts embedded at once: the number of requests that a service adapter allows

SENTENCE: Final = re.compile(r"(?<=[.?!;])\s+")
_ASKING: Final = (
    r"(?:how|what|which|why|when|where|who|whose"
    r"|does|do|did|is|are|can|could|should|must|will|would)"
)
ASKS: Final = re.compile(rf"(?:(?:in|at|to|by|from|for|on)\s+)?{_ASKING}\b", re.IGNORECASE)
CLAUSE: Final = re.compile(rf",?\s+(?:and|but|or)\s+(?={ASKS.pattern})", re.IGNORECASE)
PAIRS: Final = (
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
    re.compile(  # VS Code is a program
        r"^(?P<one>.+?)\s+(?:vs\.?(?!\s+code\b)|versus)\s+(?P<other>.+)", re.IGNORECASE
    ),
)
CLAUSE_TERMS: Final = 2  # a clause with fewer terms is too vague to search for
PAIR_TERMS: Final = 1
MAX_CHARS: Final = 1_000  # the time grows with the square; longer texts are not compound questions


@dataclass(frozen=True, slots=True)
class Search:
    """A question, ready to be searched for.

    Attributes:
        offered: Number of hits to choose: the number of results, or more if a reranker follows.
        text: The question without white space at its ends, or one of its sub-questions.
        where: The filter that points must match, with that of the corpus.
        vectors: The vector of `text` with the long forms of its abbreviations after it, and the
            vectors of its tokens except stop words.
        terms: The BM25 terms of `text`, and those of the other forms of its abbreviations; may be
            empty.
        words: The words of `text` that its first `MAX_TERMS` distinct terms come from, by term.
        form_terms: The terms of `text` that say in which form to answer, such as `code`.
        abbreviations: The abbreviations of which `text` has one form and lacks the other.
        windowed: True if the collection has windows (vectors of four words each).
        parts: A search for each sub-question of a compound question; empty for other questions.
        corpus: The filter by version and language that limits the search; it matches all points of
            a site without them.
        notice: A hint for the reader if the page of the question decided the version or language.
    """

    query: Query
    offered: int
    text: str
    where: PointFilter
    vectors: QuestionVectors
    terms: SparseVector
    windowed: bool
    words: Mapping[str, str]
    form_terms: frozenset[str] = frozenset()
    abbreviations: tuple[Abbreviation, ...] = ()
    parts: tuple[Search, ...] = ()
    corpus: PointFilter = ALL_POINTS
    notice: str | None = None

    @property
    def channels(self) -> list[Channel]:
        """The channels (ways of scoring) that can score this question.

        These are dense, windows if the collection has them, and BM25 if the question has terms.
        """
        channels = [Channel.DENSE]
        if self.windowed:
            channels.append(Channel.WINDOWS)
        if self.terms.indices:
            channels.append(Channel.BM25)
        return channels

    def ask(
        self, channel: Channel, limit: int, where: PointFilter, rows: Sequence[int] | None = None
    ) -> ChannelQuery:
        """Return the store query for the `limit` best points in a channel that match `where`.

        `rows` are the tokens that windows are compared with; None for all.
        """
        tokens = self.vectors.tokens
        vectors: dict[Channel, FloatVector | FloatMatrix | SparseVector] = {
            Channel.DENSE: self.vectors.dense,
            Channel.WINDOWS: tokens if rows is None else tokens[list(rows)],
            Channel.BM25: self.terms,
        }
        corpus = self.corpus if channel is Channel.BM25 else PointFilter()
        return ChannelQuery(channel, vectors[channel], limit, where, corpus)


def prepare_searches(
    embedder: Embedder,
    encoder: SparseEncoder,
    queries: Sequence[Query],
    choices_per_result: int = 1,
    abbreviations: Sequence[tuple[Abbreviation, ...]] | None = None,
) -> list[Search]:
    """Split compound questions, embed all questions, and return a search for each query.

    Up to eight texts are embedded at the same time, and equal texts only once.

    Args:
        embedder: The model that the collection was built with.
        encoder: The BM25 encoder that the collection was built with.
        queries: Checked queries in normal mode.
        choices_per_result: Hits to choose for each result; more than 1 if a reranker follows.
        abbreviations: For each query, abbreviations that its question may contain.

    Returns:
        One search for each query, in order.

    Raises:
        EmbeddingServiceError: The embedding service failed after all retries.
        EmbeddingDimensionError: The dimension of a vector differs from the model's.
    """
    known = abbreviations or [()] * len(queries)
    texts = [query.question.strip() for query in queries]
    asked = [(text, *split_question(text)) for text in texts]
    spelled = {
        spell_out(text, own): find_form_words(text)
        for group, own in zip(asked, known, strict=True)
        for text in group
    }
    vectors = _embed(embedder, spelled)

    def begin(
        query: Query, text: str, own: tuple[Abbreviation, ...], parts: tuple[Search, ...] = ()
    ) -> Search:
        form_terms = find_form_terms(text)
        return Search(
            query=query,
            offered=query.result_count * choices_per_result,
            text=text,
            where=build_point_filter(query.filters),
            vectors=vectors[spell_out(text, own)],
            terms=_weigh_terms(encoder, text, form_terms, own),
            windowed=embedder.model.window_words is not None,
            words=_read_terms(text),
            form_terms=form_terms,
            abbreviations=own,
            parts=parts,
        )

    searches = []
    for query, own, (text, *parts) in zip(queries, known, asked, strict=True):
        own_parts = tuple(begin(query, part, own) for part in parts)
        searches.append(begin(query, text, own, own_parts))
    return searches


def _read_terms(question: str) -> dict[str, str]:
    """Map each of the first `MAX_TERMS` distinct terms of a question to the word it comes from."""
    found: dict[str, str] = {}
    for word in extract_words(question):
        for term in extract_terms(word):
            if len(found) < MAX_TERMS:
                found.setdefault(term, word)
    return found


def spell_out(text: str, abbreviations: Sequence[Abbreviation]) -> str:
    """Return a question followed by the long forms of its abbreviations.

    A short form is not added to a long one, because it says nothing to an embedding model.
    """
    others = [one.long for one in find_unspelled(text, abbreviations)]
    return f"{text} ({', '.join(others)})" if others else text


def _weigh_terms(
    encoder: SparseEncoder,
    text: str,
    form_terms: frozenset[str],
    abbreviations: Sequence[Abbreviation],
) -> SparseVector:
    """Return the BM25 terms of a question, and those of the other forms of its abbreviations.

    The terms of another form share the weight of one term, because a text needs only one form.
    """
    asked = encoder.encode_query(text)
    others = [one.long_terms for one in find_unspelled(text, abbreviations)]
    others += [(one.short_term,) for one in find_unshortened(text, abbreviations)]
    if not form_terms and not others:
        return asked
    weights = dict(zip(asked.indices, asked.values, strict=True))
    for vector in encoder.encode_terms(sorted(form_terms)):
        weights |= dict.fromkeys(vector.indices, FORM_SHARE)
    for terms in others:
        for vector in encoder.encode_terms(terms):
            for index in vector.indices:
                weights.setdefault(index, 1 / len(terms))
    pairs = sorted(weights.items())
    return SparseVector(tuple(at for at, _ in pairs), tuple(weight for _, weight in pairs))


def find_words(text: str, vectors: QuestionVectors) -> list[tuple[str, list[int]]]:
    """Return the content words of a question, each with the row numbers of its token vectors."""
    return [
        (text[start:end], find_rows(vectors, start, end)) for start, end in find_content_words(text)
    ]


def find_rows(vectors: QuestionVectors, start: int, end: int) -> list[int]:
    """Return the row numbers of the token vectors of a part of a question."""
    spans = enumerate(vectors.spans)
    return [row for row, (first, last) in spans if first < end and last > start]


def group_tokens(text: str, vectors: QuestionVectors) -> list[list[int]]:
    """Divide the token vectors of a question into groups, so that each word is a union of groups.

    Most groups are the tokens of one word. A token of two words makes another group.

    Returns:
        The row numbers of each group. Each row is in one group.
    """
    owners: list[tuple[int, ...]] = [() for _ in vectors.tokens]
    for at, (_, rows) in enumerate(find_words(text, vectors)):
        for row in rows:
            owners[row] += (at,)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, words in enumerate(owners):
        groups.setdefault(words, []).append(row)
    return [*groups.values()]


def split_question(question: str) -> tuple[str, ...]:
    """Return the 2 or 3 sub-questions of a compound question; empty for a simple question.

    The vector of a question such as "How does X relate to Y?" lies between those of X and Y, and
    the best results may all be about only one of them. Searching for each sub-question in addition
    to the whole question avoids this.
    """
    question = " ".join(question.split())  # a run of blanks takes cubic time
    if len(question) > MAX_CHARS:
        return ()
    clauses = [
        clause.strip(" ,.;?!")
        for sentence in SENTENCE.split(question)
        for clause in CLAUSE.split(sentence)
    ]
    asked = [
        clause
        for clause in clauses
        if ASKS.match(clause) and len(set(extract_terms(clause))) >= CLAUSE_TERMS
    ]
    if len(asked) >= 2:
        return tuple(asked[:MAX_PARTS])
    for pattern in PAIRS:
        match = pattern.search(question.strip(" .?!"))
        if match is not None:
            pair = (match["one"].strip(" ,"), match["other"].strip(" ,"))
            if all(len(set(extract_terms(part))) >= PAIR_TERMS for part in pair):
                return pair
    return ()


def keep_content_tokens(
    text: str, vectors: QuestionVectors, form_words: Sequence[tuple[int, int]] = ()
) -> QuestionVectors:
    """Return a question's vectors without the tokens of stop words, punctuation and form words.

    Windows contain no stop words, so these tokens match nothing in particular (ADR 20). If
    no other tokens exist, all are kept.
    """
    words = [
        (start, end)
        for start, end in find_content_words(text)
        if not any(first <= start < last for first, last in form_words)
    ]
    rows = [
        row
        for row, (start, end) in enumerate(vectors.spans)
        if any(start < last and end > first for first, last in words)
    ]
    if not rows:
        return vectors
    spans = tuple(vectors.spans[row] for row in rows)
    return QuestionVectors(vectors.dense, vectors.tokens[rows], spans)


def _embed(
    embedder: Embedder, texts: Mapping[str, Sequence[tuple[int, int]]]
) -> dict[str, QuestionVectors]:
    """Return the vectors of each text. The texts are mapped to the places of their form words."""
    model = embedder.model

    def embed(text: str) -> QuestionVectors:
        if model.window_words is not None:
            vectors = cast("WindowEmbedder", embedder).embed_question(text)
            return keep_content_tokens(text, vectors, texts[text])
        dense = embedder.embed_query(text)
        return QuestionVectors(dense, dense[np.newaxis])

    if len(texts) <= 1:
        found = {text: embed(text) for text in texts}
    else:
        with ThreadPoolExecutor(min(_PARALLEL, len(texts))) as pool:
            found = dict(zip(texts, pool.map(embed, texts), strict=True))
    for vectors in found.values():
        if vectors.dense.shape != (model.dim,):
            raise EmbeddingDimensionError(
                model.model, f"{model.dim} dimensions", f"shape {vectors.dense.shape}"
            )
    return found
