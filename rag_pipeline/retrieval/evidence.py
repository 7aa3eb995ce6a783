"""Evidence about a question's words: their weights in the book and their closeness to the hits.

The grounding rule of `answering` uses the evidence to decide if the book answers the question.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import ChunkId, to_point_id
from rag_pipeline.core.protocols import Channel, ChannelQuery, PointFilter
from rag_pipeline.core.text.terms import (
    extract_terms,
    extract_words,
    find_content_words,
    find_distinct_terms,
)
from rag_pipeline.retrieval.models import Evidence, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols import VectorIndex
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.open_index import OpenIndex
    from rag_pipeline.retrieval.search import Search

MAX_TERMS: Final = 48
"""Maximum number of distinct terms of a question that are weighed; later terms are ignored."""

EVIDENCE_DEPTH: Final = 5
"""Number of first hits that a question's words are compared with, for every `top_k`."""


UNRELATED: Final = (
    "Which spices go into a vegetable curry?",
    "How do I repot an orchid?",
    "Who was king of France before the revolution?",
    "What is the offside rule in football?",
    "How do I treat a cold at home?",
    "Where do penguins live in winter?",
    "Which novels did Jane Austen write?",
    "How do I get a mortgage for an old house?",
    "What is the tallest mountain in Africa?",
    "How do I train a dog not to bark?",
    "Which instruments play in a string quartet?",
    "How long does a flight across the Atlantic take?",
)
"""Questions from twelve subjects. A book answers at most a few of them."""


def weigh_terms(
    opened: OpenIndex,
    searches: Sequence[Search],
    model: str,
    unrelated: tuple[float, float] | None = None,
) -> list[Evidence]:
    """Return the evidence of each search: the weights of its terms and the chunk count.

    Term weights come from the versions and languages that the search allows, without the other
    filters of the query. A term that occurs nowhere gets the inverse document frequency of a term
    that no chunk has. The chunk count is the number of chunks that the filters allow.

    Args:
        opened: The collection.
        searches: Searches with text and filters.
        model: The fingerprint of the embedding model, which is stored in the evidence.
        unrelated: The result of `OpenIndex.measure_unrelated`, which is stored in the evidence.
    """
    words = [_read_terms(search.text) for search in searches]
    asked: dict[PointFilter, set[str]] = {}
    for search, own in zip(searches, words, strict=True):
        asked.setdefault(search.scope.where, set()).update(own)
    weighed = {where: opened.weigh(sorted(terms), where) for where, terms in asked.items()}
    counts = {where: count for where, (count, _) in weighed.items()}
    found = []
    for search, own in zip(searches, words, strict=True):
        corpus = search.scope.where
        count, known = weighed[corpus]
        unknown_weight = math.log(2 * count + 2)
        if search.where not in counts:
            counts[search.where] = opened.store.count(search.where)
        terms = tuple(
            TermWeight(term, word, known.get(term, unknown_weight), term in known)
            for term, word in own.items()
        )
        found.append(
            Evidence(model, counts[search.where], terms, unrelated=unrelated, corpus=corpus)
        )
    return found


def compare_words(
    index: VectorIndex,
    searches: Sequence[Search],
    evidence: Sequence[Evidence],
    hits: Sequence[Sequence[ScoredChunk]],
) -> list[Evidence]:
    """Return the evidence of each search with the similarity of its words to its first hits.

    The token vectors of a word are compared with the windows (vectors of four words) of the first
    `EVIDENCE_DEPTH` hits, and the best hit counts. If the store finds none of these hits any more,
    the word gets 0. All searches together take one round trip. A search without hits has no words.
    """
    asked = [
        (at, word, weight, search.vectors.tokens[rows])
        for at, search in enumerate(searches)
        if hits[at]
        for word, weight, rows in _weigh_words(search, evidence[at])
    ]
    found = index.search_many(
        [ChannelQuery(Channel.WINDOWS, rows, 1, _first_hits(hits[at])) for at, _, _, rows in asked]
    )
    # Every stored point has a window, so `nearest` is empty only if an ingestion has deleted all
    # first hits since the search found them. A cosine of 0 also means that no passage supports the
    # word, so both cases lower the support alike. The worst result is a refusal, and a repeated
    # question is judged with the new points. The order of the hits does not depend on it.
    words: list[list[WordNearness]] = [[] for _ in searches]
    for (at, word, weight, _), nearest in zip(asked, found, strict=True):
        words[at].append(WordNearness(word, weight, nearest[0][1] if nearest else 0.0))
    return [replace(own, words=tuple(near)) for own, near in zip(evidence, words, strict=True)]


@lru_cache(maxsize=1024)  # 1,024 chunks take about 10 MB
def find_chunk_terms(headings: tuple[str, ...], text: str) -> frozenset[str]:
    """Return the distinct search terms of a chunk's text and of the headings above it."""
    return find_distinct_terms(" ".join((*headings, text)))


def _first_hits(hits: Sequence[ScoredChunk]) -> PointFilter:
    first = hits[:EVIDENCE_DEPTH]
    return PointFilter(point_ids=tuple(to_point_id(ChunkId(hit.chunk_id)) for hit in first))


def _weigh_words(search: Search, evidence: Evidence) -> list[tuple[str, float, list[int]]]:
    """Return the words of a question that are compared with the hits, as written.

    Each word comes with the weight of its heaviest term and the row numbers of its token vectors.
    Stop words and words whose terms all occur in earlier words are left out.
    """
    weights = {term.term: term.weight for term in evidence.terms}
    weighed = []
    for start, end in find_content_words(search.text):
        word = search.text[start:end]
        own = [weights.pop(term) for term in extract_terms(word) if term in weights]
        spans = enumerate(search.vectors.spans)
        rows = [row for row, (first, last) in spans if first < end and last > start]
        if own and rows:
            weighed.append((word, max(own), rows))
    return weighed


def _read_terms(question: str) -> dict[str, str]:
    """Map each of the first `MAX_TERMS` distinct terms of a question to the word it comes from."""
    found: dict[str, str] = {}
    for word in extract_words(question):
        for term in extract_terms(word):
            if len(found) < MAX_TERMS:
                found.setdefault(term, word)
    return found
