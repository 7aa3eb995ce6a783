"""Evidence about a question's words: their weights in the book and their closeness to the hits.

The grounding rule of `answering` uses the evidence to decide if the book answers the question.
"""

from __future__ import annotations

import math
import statistics
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import ChunkId, to_point_id
from rag_pipeline.core.protocols.stores import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.text.terms import (
    extract_terms,
    extract_words,
    find_content_words,
    find_distinct_terms,
)
from rag_pipeline.retrieval.models import Evidence, TermWeight, WordNearness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.protocols.embedding import SparseEncoder
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.search import Search

MAX_TERMS: Final = 48
"""Maximum number of distinct terms of a question that are weighed; later terms are ignored."""

EVIDENCE_DEPTH: Final = 5
"""Number of first hits that a question's words are compared with, for every `top_k`."""


MAX_PARTS: Final = 8
"""Number of parts of a collection, such as versions, whose weights are cached beside a new one."""

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


class UnrelatedNearness:
    """A measurement of how near a book's passages seem to questions that they do not answer.

    The scale of cosines differs between embedding models. The cosines of unrelated questions show
    which values mean nothing for one model and one book.

    Args:
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            Each collection is then measured only once. If False, it is measured again when the
            number of its chunks has changed.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        self._searches: Sequence[Search] = ()
        self._read: tuple[VectorIndex | None, int, tuple[float, float]] = (None, 0, (0.0, 0.0))

    def prepare(self, embed: Callable[[Sequence[str]], Sequence[Search]]) -> None:
        """Embed the unrelated questions, on the first call only.

        Args:
            embed: Returns a search for each question.
        """
        if not self._searches:
            self._searches = embed(UNRELATED)

    def look_up(self, index: VectorIndex) -> tuple[float, float] | None:
        """Return the mean and the deviation of the questions' highest cosines.

        None if the questions were not embedded or the collection is empty.
        """
        if not self._searches:
            return None
        known_index, known_count, _ = self._read
        count = known_count if self._lasting and known_index is index else index.count()
        if known_index is not index or known_count != count:
            hits = index.search_many(
                [search.ask(Channel.DENSE, 1, PointFilter()) for search in self._searches]
            )
            best = [found[0][1] for found in hits if found]
            if not best:
                return None
            self._read = (index, count, (statistics.fmean(best), statistics.pstdev(best)))
        return self._read[2]


class BookTerms:
    """A cache of the BM25 weights of a collection's terms and of the number of its chunks.

    Each part of the collection that questions search, such as its latest version, has own weights.

    Args:
        encoder: The BM25 encoder that the collection was built with.
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            Its size and the weight of each term that it contains are then read only once. If
            False, each look-up reads the store again.
    """

    def __init__(self, encoder: SparseEncoder, *, lasting: bool) -> None:
        self._encoder = encoder
        self._lasting = lasting
        # A tuple that is replaced as a whole, so that no thread combines one collection with the
        # terms of another.
        self._read: tuple[VectorIndex | None, dict[PointFilter, tuple[int, dict[str, float]]]]
        self._read = (None, {})

    def look_up(
        self, index: VectorIndex, terms: Sequence[str], corpus: PointFilter = ALL_POINTS
    ) -> tuple[int, dict[str, float]]:
        """Return the number of chunks in a part of the collection, and the weight of each term.

        The weight of a term is the highest BM25 score that any chunk has for this term alone. That
        is the term's inverse document frequency times a factor of up to 2.2, which grows with the
        term's frequency in the chunk. Terms that occur in no chunk are left out. The weights are
        the whole cache, so they may include terms that were looked up before.
        """
        cached_index, parts = self._read
        if not self._lasting or index is not cached_index:
            parts = {}
        is_new = corpus not in parts
        count, known = parts.get(corpus) or (index.count(corpus), {})
        missing = [term for term in terms if term not in known]
        if missing or is_new:
            # The score of a term's best chunk is its weight, so one result for each term is enough.
            hits = index.search_many(
                [
                    ChannelQuery(Channel.BM25, vector, 1, corpus, corpus)
                    for vector in self._encoder.encode_terms(missing)
                ]
            )
            found = {term: best[0][1] for term, best in zip(missing, hits, strict=True) if best}
            known = {**known, **found}
            kept = {part: parts[part] for part in [*parts][-MAX_PARTS:] if part != corpus}
            self._read = (index, {**kept, corpus: (count, known)})
        return count, known


def weigh_terms(
    index: VectorIndex,
    book: BookTerms,
    searches: Sequence[Search],
    model: str,
    unrelated: tuple[float, float] | None = None,
) -> None:
    """Set `evidence` of each search: the weights of the question's terms and the chunk count.

    Term weights come from the versions and languages that the search allows, without the other
    filters of the query. A term that occurs nowhere gets the inverse document frequency of a term
    that no chunk has. The chunk count is the
    number of chunks that the filters allow.

    Args:
        index: The collection.
        book: The term weights of the same collection.
        searches: Searches with text and filters; their `evidence` is set.
        model: The fingerprint of the embedding model, which is stored in the evidence.
        unrelated: The result of `UnrelatedNearness.look_up`, which is stored in the evidence.
    """
    asked: dict[PointFilter, list[tuple[Search, dict[str, str]]]] = {}
    for search in searches:
        asked.setdefault(search.scope.where, []).append((search, _read_terms(search.text)))
    for corpus, own in asked.items():
        _weigh_in_corpus(index, book, corpus, own, (model, unrelated))


def _weigh_in_corpus(
    index: VectorIndex,
    book: BookTerms,
    corpus: PointFilter,
    asked: Sequence[tuple[Search, dict[str, str]]],
    described: tuple[str, tuple[float, float] | None],
) -> None:
    """Set `evidence` of searches that have the same scope.

    Args:
        index: The collection.
        book: The term weights of the same collection.
        corpus: The filter of the scope.
        asked: Each search with the words of its terms.
        described: The model and the nearness of unrelated questions, for the evidence.
    """
    terms = sorted({term for _, words in asked for term in words})
    count, known = book.look_up(index, terms, corpus)
    counts = {corpus: count}
    unknown_weight = math.log(2 * count + 2)
    model, unrelated = described
    for search, words in asked:
        if search.where not in counts:
            counts[search.where] = index.count(search.where)
        weighed = tuple(
            TermWeight(term, word, known.get(term, unknown_weight), term in known)
            for term, word in words.items()
        )
        search.evidence = Evidence(
            model, counts[search.where], weighed, unrelated=unrelated, corpus=corpus
        )


def compare_words(index: VectorIndex, searches: Sequence[Search]) -> None:
    """Append to `words` of each search the similarity of each question word to the first hits.

    The token vectors of a word are compared with the windows (vectors of four words) of the first
    `EVIDENCE_DEPTH` hits, and the best hit counts. If the store finds none of these hits any more,
    the word gets 0. All searches together take one round trip. A search without hits is skipped.
    """
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
    # Every stored point has a window, so `nearest` is empty only if an ingestion has deleted all
    # first hits since the search found them. A cosine of 0 also means that no passage supports the
    # word, so both cases lower the support alike. The worst result is a refusal, and a repeated
    # question is judged with the new points. The order of the hits does not depend on it.
    for (search, word, weight, _), nearest in zip(asked, found, strict=True):
        search.words.append(WordNearness(word, weight, nearest[0][1] if nearest else 0.0))


@lru_cache(maxsize=1024)  # 1,024 chunks take about 10 MB
def find_chunk_terms(headings: tuple[str, ...], text: str) -> frozenset[str]:
    """Return the distinct search terms of a chunk's text and of the headings above it."""
    return find_distinct_terms(" ".join((*headings, text)))


def _first_hits(search: Search) -> PointFilter:
    hits = search.hits[:EVIDENCE_DEPTH]
    return PointFilter(point_ids=tuple(to_point_id(ChunkId(hit.chunk_id)) for hit in hits))


def _weigh_words(search: Search) -> list[tuple[str, float, list[int]]]:
    """Return the words of a question that are compared with the hits, as written.

    Each word comes with the weight of its heaviest term and the row numbers of its token vectors.
    Stop words and words whose terms all occur in earlier words are left out.
    """
    weights = {term.term: term.weight for term in search.evidence.terms} if search.evidence else {}
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
