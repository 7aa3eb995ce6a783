"""What book and passages know of a question's words: whether to answer is decided from it.

Belongs here: which terms occur, how telling each is, and how near the passages found come to each
word. Does not belong here: the decision (answering.grounding).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ports import Channel, ChannelQuery, PointFilter
from rag_pipeline.core.terms import extract_terms, extract_words, find_content_words
from rag_pipeline.retrieval.models import Evidence, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.ports import SparseEncoder, VectorIndex
    from rag_pipeline.retrieval.questions import EmbeddedQuestion

MAX_TERMS: Final = 48
"""Distinct terms weighed; a longer question says what it is about within so many."""

EVIDENCE_DEPTH: Final = 5
"""Best passages that a question's words are compared with, however many were asked for."""


def gather_evidence(
    index: VectorIndex,
    encoder: SparseEncoder,
    questions: Sequence[str],
    filters: Sequence[PointFilter],
    model: str,
) -> list[Evidence]:
    """Weigh the terms of questions over the whole book, and count what was searched.

    A term's weight is the BM25 score of the chunk that is best for it alone: its inverse document
    frequency times a number up to 2.2 for how much that chunk is about it. One search of limit 1 a
    term is enough. A term without a hit occurs nowhere and weighs its inverse document frequency.

    Args:
        index: The collection.
        encoder: Encodes terms as the collection's.
        questions: Checked.
        filters: What each question was searched in.
        model: Fingerprint of the embedding model, handed on.

    Returns:
        Evidence for each question, in order; one round trip, and one for each different filter.
    """
    words = [_read_terms(question) for question in questions]
    terms = sorted({term for entry in words for term in entry})
    vectors = encoder.encode_terms(terms)
    queries = [ChannelQuery(Channel.BM25, vector, 1) for vector in vectors]
    hits = dict(zip(terms, index.search_many(queries), strict=True))
    counts = {where: index.count(where) for where in {PointFilter(), *filters}}
    unknown_weight = math.log(2 * counts[PointFilter()] + 2)
    return [
        Evidence(
            model,
            counts[where],
            tuple(
                TermWeight(
                    term, word, hits[term][0][1] if hits[term] else unknown_weight, bool(hits[term])
                )
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
