"""What the whole book knows of a question's terms: whether to answer is decided from it.

Belongs here: which terms occur and how telling each is. Does not belong here: the decision
(answering.grounding).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ports import Channel, ChannelQuery, PointFilter
from rag_pipeline.core.terms import extract_terms, extract_words
from rag_pipeline.retrieval.models import Evidence, TermWeight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ports import SparseEncoder, VectorIndex

MAX_TERMS: Final = 48
"""Distinct terms weighed; a longer question says what it is about within so many."""


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


def _read_terms(question: str) -> dict[str, str]:
    """Distinct terms of a question in order, each with the word it comes from."""
    found: dict[str, str] = {}
    for word in extract_words(question):
        for term in extract_terms(word):
            if len(found) < MAX_TERMS:
                found.setdefault(term, word)
    return found
