"""What the book and the passages found know of a question's words.

The grounding rule of `answering` decides from it if the book answers the question.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import ChunkId, to_point_id
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter
from rag_pipeline.core.terms import extract_terms, extract_words, find_content_words
from rag_pipeline.retrieval.models import Evidence, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols.embedding import SparseEncoder
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.search import Search

MAX_TERMS: Final = 48
"""Distinct terms that are weighed: the first 48 of a long question say what it is about."""

EVIDENCE_DEPTH: Final = 5
"""First hits that a question's words are compared with, however many were asked for."""


class BookTerms:
    """The weights of a collection's terms, remembered while nobody else can change it.

    Args:
        encoder: The encoder that the collection was built with.
        lasting: True when the collection cannot change while it is open, like the embedded store;
            then its size and each term that it contains are read once. Otherwise every query reads
            again.
    """

    def __init__(self, encoder: SparseEncoder, *, lasting: bool) -> None:
        self._encoder = encoder
        self._lasting = lasting
        # One reference, replaced as a whole: no thread sees one collection with another's terms.
        self._read: tuple[VectorIndex | None, int, dict[str, float]] = (None, 0, {})

    def look_up(self, index: VectorIndex, terms: Sequence[str]) -> tuple[int, dict[str, float]]:
        """Return the number of chunks, and the weights of the terms that occur in the collection.

        A term's weight is the highest BM25 score that a chunk has for that term: its inverse
        document frequency times a number up to 2.2 for how much that chunk is about it. One search
        of limit 1 for each term is enough, all in one round trip.
        """
        of_index, count, known = self._read
        if not self._lasting or index is not of_index:
            count, known = index.count(), {}
        missing = [term for term in terms if term not in known]
        if missing or index is not of_index:
            vectors = self._encoder.encode_terms(missing)
            hits = index.search_many([ChannelQuery(Channel.BM25, vector, 1) for vector in vectors])
            found = {term: best[0][1] for term, best in zip(missing, hits, strict=True) if best}
            known = {**known, **found}
            self._read = (index, count, known)
        return count, known


def weigh_terms(
    index: VectorIndex, book: BookTerms, searches: Sequence[Search], model: str
) -> None:
    """Weigh the terms of questions over the whole book, and count the chunks that were searched.

    Sets `evidence` of each search, in one round trip and one for each different filter. A term that
    occurs nowhere weighs its inverse document frequency.

    Args:
        index: The collection.
        book: Of the same collection.
        searches: Questions with their filters.
        model: Fingerprint of the embedding model, kept in the evidence.
    """
    asked = [(search, _read_terms(search.text)) for search in searches]
    count, known = book.look_up(index, sorted({term for _, words in asked for term in words}))
    counts = {PointFilter(): count}
    unknown_weight = math.log(2 * count + 2)
    for search, words in asked:
        if search.where not in counts:
            counts[search.where] = index.count(search.where)
        terms = tuple(
            TermWeight(term, word, known.get(term, unknown_weight), term in known)
            for term, word in words.items()
        )
        search.evidence = Evidence(model, counts[search.where], terms)


def compare_words(index: VectorIndex, searches: Sequence[Search]) -> None:
    """Set `words` of each search: how near its first hits come to each word; one round trip."""
    asked = [
        (search, word, weight, search.vectors.tokens[rows])
        for search in searches
        if search.hits
        for word, weight, rows in _weigh_words(search)
    ]
    found = index.search_many(
        [
            ChannelQuery(Channel.WINDOWS, rows, 1, _first_hits(search))
            for search, _, _, rows in asked
        ]
    )
    for (search, word, weight, _), nearest in zip(asked, found, strict=True):
        search.words.append(WordNearness(word, weight, nearest[0][1] if nearest else 0.0))


def _first_hits(search: Search) -> PointFilter:
    hits = search.hits[:EVIDENCE_DEPTH]
    return PointFilter(point_ids=tuple(to_point_id(ChunkId(hit.chunk_id)) for hit in hits))


def _weigh_words(search: Search) -> list[tuple[str, float, list[int]]]:
    """Return the words that have a term of their own, as written.

    Each comes with the weight of its heaviest term and the rows of its tokens.
    """
    weights = {term.term: term.weight for term in search.evidence.terms} if search.evidence else {}
    weighed = []
    for start, end in find_content_words(search.text):
        word = search.text[start:end]
        own = [weights.pop(term) for term in extract_terms(word) if term in weights]
        spans = enumerate(search.vectors.spans)
        rows = [row for row, (first, behind) in spans if first < end and behind > start]
        if own and rows:
            weighed.append((word, max(own), rows))
    return weighed


def _read_terms(question: str) -> dict[str, str]:
    """Return the distinct terms of a question in order, each with the word it comes from."""
    found: dict[str, str] = {}
    for word in extract_words(question):
        for term in extract_terms(word):
            if len(found) < MAX_TERMS:
                found.setdefault(term, word)
    return found
