"""Evidence about a question's words: their weights in the book and their closeness to the hits.

The grounding rule of `answering` uses the evidence to decide if the book answers the question.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import ChunkId, to_point_id
from rag_pipeline.core.text.abbreviations import find_unspelled
from rag_pipeline.core.text.form_words import FORM_SHARE
from rag_pipeline.core.text.terms import extract_terms, find_distinct_terms
from rag_pipeline.retrieval.models import Evidence, ScoredChunk, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.protocols import PointFilter
    from rag_pipeline.retrieval.choosing import Chosen
    from rag_pipeline.retrieval.open_index import OpenIndex
    from rag_pipeline.retrieval.search import Search

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
    weighed: Mapping[PointFilter, Mapping[str, float]],
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
        weighed: The weights of their terms, by the part of the collection.
        model: The fingerprint of the embedding model, which is stored in the evidence.
        unrelated: The result of `OpenIndex.measure_unrelated`, which is stored in the evidence.
    """
    found = []
    for search in searches:
        own, corpus = search.words, search.corpus
        known, unknown_weight = weighed[corpus], math.log(2 * opened.count(corpus) + 2)
        weights = {
            term: known[term] * (FORM_SHARE if term in search.form_terms else 1)
            if term in known
            else unknown_weight
            for term in own
        }
        of_words: dict[str, list[float]] = {}
        for term, word in own.items():
            of_words.setdefault(word, []).append(weights[term])
        # An identifier such as ROS2 has several terms, but weighs no more than its heaviest one.
        shares = {word: max(each) / sum(each) for word, each in of_words.items()}
        terms = tuple(
            TermWeight(term, word, weights[term] * shares[word], term in known)
            for term, word in own.items()
        )
        found.append(
            Evidence(
                model,
                opened.count(search.where),
                terms,
                unrelated=unrelated,
                corpus=corpus,
                abbreviations=search.abbreviations,
            )
        )
    return found


def compare_words(
    searches: Sequence[Search],
    evidence: Sequence[Evidence],
    chosen: Sequence[Chosen],
    hits: Sequence[Sequence[ScoredChunk]],
) -> list[Evidence]:
    """Return the evidence of each search with the similarity of its words to its first hits.

    The similarity of a word to a hit is the mean cosine of the word's tokens with the hit's nearest
    windows (vectors of four words). Of the first `EVIDENCE_DEPTH` hits, the best one counts, and of
    the two forms of an abbreviation the nearer one. A search without hits has no words.

    Args:
        searches: The searches.
        evidence: The evidence of each search, with the weights of its terms.
        chosen: The chosen candidates of each search.
        hits: The hits of each search, which were made of its chosen candidates.
    """
    found = []
    for search, known, own, best in zip(searches, evidence, chosen, hits, strict=True):
        candidates = {ranked.candidate.place.point_id: ranked.candidate for ranked in own.hits}
        first = [candidates[to_point_id(ChunkId(hit.chunk_id))] for hit in best[:EVIDENCE_DEPTH]]
        words = []
        for word, weight, forms in _weigh_words(search, known) if first else ():
            nearness = max(
                # A hit without windows has no tokens.
                math.fsum(one.tokens[row] for row in rows) / len(rows) if one.tokens else 0.0
                for one in first
                for rows in forms
            )
            words.append(WordNearness(word, weight, nearness))
        found.append(replace(known, words=tuple(words)))
    return found


@lru_cache(maxsize=1024)  # 1,024 chunks take about 10 MB
def find_chunk_terms(headings: tuple[str, ...], text: str) -> frozenset[str]:
    """Return the distinct search terms of a chunk's text and of the headings above it."""
    return find_distinct_terms(" ".join((*headings, text)))


def _weigh_words(search: Search, evidence: Evidence) -> list[tuple[str, float, list[list[int]]]]:
    """Return the words of a question that are compared with the hits, as written.

    Each word comes with the weight of its heaviest term and the row numbers of its token vectors.
    If it is an abbreviation, those of the long form follow. Stop words, form words and words whose
    terms all occur in earlier words are left out.
    """
    from rag_pipeline.retrieval.search import find_rows, find_words  # noqa: PLC0415  # loads numpy

    weights = {term.term: term.weight for term in evidence.terms}
    long_rows: dict[str, list[int]] = {}
    start = len(search.text)
    for one in find_unspelled(search.text, search.abbreviations):
        start += len(" (")  # or a comma and a blank, see `spell_out`
        long_rows[one.short_term] = find_rows(search.vectors, start, start + len(one.long))
        start += len(one.long)
    weighed = []
    for word, rows in find_words(search.text, search.vectors):
        terms = [term for term in extract_terms(word) if term in weights]
        own = [weights.pop(term) for term in terms if term in weights]
        if own and rows:
            forms = [rows, *filter(None, [long_rows.get(terms[0])])]
            weighed.append((word, max(own), forms))
    return weighed
