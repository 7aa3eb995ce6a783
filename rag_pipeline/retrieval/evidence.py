"""What book and passages know of a question's words: whether to answer is decided from it.

Belongs here: which terms occur, how telling each is, and how near the passages found come to each
word. Does not belong here: the decision (answering.grounding).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter
from rag_pipeline.core.terms import extract_terms, extract_words, find_content_words
from rag_pipeline.retrieval.models import Evidence, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols.embedding import SparseEncoder
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.questions import EmbeddedQuestion

MAX_TERMS: Final = 48
"""Distinct terms weighed; a longer question says what it is about within so many."""

EVIDENCE_DEPTH: Final = 5
"""Best passages that a question's words are compared with, however many were asked for."""


class BookTerms:
    """What a collection says of single terms, remembered while nobody else can change it.

    Args:
        encoder: Encodes terms as the collection's.
        lasting: Whether the collection cannot change while it is open, as the embedded one; then
            its size and each term that it holds are read once. Else every query reads anew.
    """

    def __init__(self, encoder: SparseEncoder, *, lasting: bool) -> None:
        self._encoder = encoder
        self._lasting = lasting
        # One reference, replaced whole: threads see a collection with its own terms or another.
        self._read: tuple[VectorIndex | None, int, dict[str, float]] = (None, 0, {})

    def look_up(self, index: VectorIndex, terms: Sequence[str]) -> tuple[int, dict[str, float]]:
        """How many chunks there are, and the weights of those terms that some chunk holds.

        A term's weight is the BM25 score of the chunk that is best for it alone: its inverse
        document frequency times a number up to 2.2 for how much that chunk is about it. One search
        of limit 1 a term is enough, all in one round trip.
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


def gather_evidence(
    index: VectorIndex,
    book: BookTerms,
    questions: Sequence[str],
    filters: Sequence[PointFilter],
    model: str,
) -> list[Evidence]:
    """Weigh the terms of questions over the whole book, and count what was searched.

    A term that occurs nowhere weighs its inverse document frequency.

    Args:
        index: The collection.
        book: Of the same collection.
        questions: Checked.
        filters: What each question was searched in.
        model: Fingerprint of the embedding model, handed on.

    Returns:
        Evidence for each question, in order; one round trip, and one for each different filter.
    """
    words = [_read_terms(question) for question in questions]
    count, known = book.look_up(index, sorted({term for entry in words for term in entry}))
    everywhere = PointFilter()
    counts = {where: index.count(where) for where in set(filters) - {everywhere}}
    unknown_weight = math.log(2 * count + 2)
    return [
        Evidence(
            model,
            counts.get(where, count),
            tuple(
                TermWeight(term, word, known.get(term, unknown_weight), term in known)
                for term, word in entry.items()
            ),
        )
        for entry, where in zip(words, filters, strict=True)
    ]


def compare_words(
    index: VectorIndex,
    questions: Sequence[EmbeddedQuestion],
    evidence: Sequence[Evidence],
    found: Sequence[Sequence[PointId]],
) -> list[Evidence]:
    """Add how near the best passages come to each word of their question; one round trip.

    Args:
        index: The collection.
        questions: With the vectors of their tokens.
        evidence: Of each question.
        found: Passages of each question, best first.
    """
    queries: list[ChannelQuery] = []
    asked: list[list[tuple[str, float]]] = []
    for question, known, passages in zip(questions, evidence, found, strict=True):
        best = PointFilter(point_ids=tuple(passages[:EVIDENCE_DEPTH]))
        words = _weigh_words(question, known) if passages else []
        tokens = question.vectors.tokens
        queries.extend(ChannelQuery(Channel.WINDOWS, tokens[rows], 1, best) for _, _, rows in words)
        asked.append([(word, weight) for word, weight, _ in words])
    nearest = iter(index.search_many(queries))
    return [
        replace(
            known,
            words=tuple(
                WordNearness(word, weight, hits[0][1] if (hits := next(nearest)) else 0.0)
                for word, weight in words
            ),
        )
        for known, words in zip(evidence, asked, strict=True)
    ]


def _weigh_words(
    question: EmbeddedQuestion, evidence: Evidence
) -> list[tuple[str, float, list[int]]]:
    """Words with a term of their own: as written, heaviest term's weight, rows of their tokens."""
    weights = {term.term: term.weight for term in evidence.terms}
    weighed = []
    for start, end in find_content_words(question.text):
        word = question.text[start:end]
        own = [weights.pop(term) for term in extract_terms(word) if term in weights]
        spans = enumerate(question.vectors.spans)
        rows = [row for row, (first, behind) in spans if first < end and behind > start]
        if own and rows:
            weighed.append((word, max(own), rows))
    return weighed


def _read_terms(question: str) -> dict[str, str]:
    """Distinct terms of a question in order, each with the word it comes from."""
    found: dict[str, str] = {}
    for word in extract_words(question):
        for term in extract_terms(word):
            if len(found) < MAX_TERMS:
                found.setdefault(term, word)
    return found
