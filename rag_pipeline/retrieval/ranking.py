"""From scores to an order: fusion of retrievers, one hit a section, no near-duplicates. Pure.

Belongs here: arithmetic on candidates. Does not belong here: where scores come from (candidates).
How each rule was chosen: docs/adr/0005-retrieval-fusion.md.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.terms import extract_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.ids import PointId

STATISTICS_DEPTH: Final = 100
"""Best scores of a retriever that its distribution is taken from."""

FULL_COVER: Final = 0.45
"""Share of a question's terms, by weight, from which BM25 counts in full; median of our golden set.
"""

DOCUMENT_DEPTH: Final = 3
"""Best candidates of a document that say how much the question is about it."""

UNCROWDED: Final = 2
"""Sections of one document that are chosen by their score alone."""

CROWDING: Final = 0.1
"""Fused score that each further section of the document counts less than the one before."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a point stands in the book, and what its text is.

    Attributes:
        section: Equal for all chunks of one section of one document.
        bare_heading: Of a heading without text of its own, which answers nothing; else None.
    """

    point_id: PointId
    doc_path: str
    section: str
    chunk_index: int
    content_hash: str
    bare_heading: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point that some retriever found, with its exact score by every retriever.

    Attributes:
        dense: Cosine of question and whole chunk.
        windows: Mean over the tokens of the question's words, stop words left out, of each one's
            cosine with the nearest window of words; `dense` where there are no windows.
        bm25: 0 for a point without any of the question's terms.
    """

    place: Place
    dense: float
    windows: float
    bm25: float

    @property
    def semantic(self) -> float:
        """Mean of both cosines: the whole chunk's subject, and its words."""
        return (self.dense + self.windows) / 2


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and its fused score."""

    candidate: Candidate
    score: float


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """How much each retriever counts, and how much a document's best candidates lift a hit.

    Attributes:
        windows: Share of the windows in the semantic part; the rest is the whole chunk's.
    """

    semantic: float = 0.6
    bm25: float = 0.4
    document: float = 0.2
    windows: float = 0.7


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and standard deviation of a retriever's best scores."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: Iterable[float]) -> Distribution:
        """Describe the best scores of a retriever; (0, 0) for none."""
        top = sorted(scores, reverse=True)[:STATISTICS_DEPTH]
        if not top:
            return cls(0.0, 0.0)
        mean = math.fsum(top) / len(top)
        variance = math.fsum((score - mean) ** 2 for score in top) / len(top)
        return cls(mean, math.sqrt(variance))

    def place(self, score: float) -> float:
        """Where a score stands: 0 three deviations below the mean, 1 three above, not clamped.

        Equal scores tell nothing apart: without a deviation every score stands at 0.5.

        Source:
            Distribution-based score fusion: (s - (mean - 3 deviation)) / (6 deviation).
        """
        if self.deviation < 1e-9:
            return 0.5
        return (score - self.mean + 3 * self.deviation) / (6 * self.deviation)


def fuse(
    candidates: Sequence[Candidate], weights: FusionWeights, term_weight: float = 0.0
) -> list[Ranked]:
    """Order candidates by their fused score.

    Each retriever's scores are placed in the distribution of its 100 best, weighted and added;
    then the mean of each document's three best is added with its own weight. A text counts once
    in a distribution: a hundred copies would leave it no deviation, and all else no difference.
    Ties go by document path and position, so that the order is the same on every run and store.

    Args:
        candidates: Of one question.
        weights: Before the cover of the question's terms is looked at.
        term_weight: What BM25 would give a passage that is about each of the question's terms; 0
            where that is not known. Where the best passage gets little of it, the book says it in
            other words, and BM25 hands part of its weight to the vectors.
    """
    texts = [candidate.place.content_hash for candidate in candidates]
    dense = _describe(texts, [candidate.dense for candidate in candidates])
    windows = _describe(texts, [candidate.windows for candidate in candidates])
    bm25 = _describe(texts, [candidate.bm25 for candidate in candidates])
    of_bm25 = weights.bm25 * _trust_bm25(candidates, weights, term_weight)
    of_windows = (weights.semantic + weights.bm25 - of_bm25) * weights.windows
    of_dense = weights.semantic + weights.bm25 - of_bm25 - of_windows
    own = [
        of_dense * dense.place(candidate.dense)
        + of_windows * windows.place(candidate.windows)
        + of_bm25 * bm25.place(candidate.bm25)
        for candidate in candidates
    ]
    by_document: dict[str, list[float]] = defaultdict(list)
    for candidate, score in zip(candidates, own, strict=True):
        by_document[candidate.place.doc_path].append(score)
    means = {path: _mean_of_best(scores) for path, scores in by_document.items()}
    ranked = [
        Ranked(candidate, score + weights.document * means[candidate.place.doc_path])
        for candidate, score in zip(candidates, own, strict=True)
    ]
    return sorted(ranked, key=_rank_key)


def arrange(
    ranked: Sequence[Ranked], terms: frozenset[str] = frozenset()
) -> tuple[list[Ranked], list[Ranked]]:
    """Order hits for being chosen: one a section before a second of any, documents spread.

    From its third section on, a document's hits count `CROWDING` less each: five places full of
    one page leave no room for the page that has the answer.

    Args:
        ranked: Best first.
        terms: Of the question; a bare heading that has all of them is what was asked for.

    Returns:
        First hits of sections, then their others; and bare headings, which come behind all that
        the book has to say.
    """
    bare = [hit for hit in ranked if _is_bare(hit.candidate.place, terms)]
    telling = [hit for hit in ranked if not _is_bare(hit.candidate.place, terms)]
    first, others = _split_by_section(telling)
    before: Counter[str] = Counter()
    spread: list[tuple[float, Ranked]] = []
    for hit in first:
        path = hit.candidate.place.doc_path
        spread.append((hit.score - CROWDING * max(0, before[path] - UNCROWDED + 1), hit))
        before[path] += 1
    spread.sort(key=lambda entry: -entry[0])
    return [*(hit for _, hit in spread), *others], bare


def select(
    arranged: Iterable[Ranked],
    count: int,
    is_near: Callable[[Candidate, Candidate], bool],
    before: Sequence[Ranked] = (),
) -> list[Ranked]:
    """Choose hits in their order: no text twice, no near-duplicate, `count` at most.

    Args:
        arranged: The one to choose first, first.
        count: How many at most.
        is_near: Whether two candidates of different text say the same.
        before: Chosen already; they keep their places.
    """
    chosen = list(before)
    hashes = {hit.candidate.place.content_hash for hit in chosen}
    for hit in arranged:
        if len(chosen) == count:
            break
        if hit.candidate.place.content_hash in hashes:
            continue
        if any(is_near(hit.candidate, kept.candidate) for kept in chosen):
            continue
        hashes.add(hit.candidate.place.content_hash)
        chosen.append(hit)
    return chosen


def find_scale(chosen: Sequence[Ranked], ranked: Sequence[Ranked]) -> float:
    """By what the scores of a wider search are multiplied to stand beside those chosen before.

    Scores compare within their own search alone. The first hit chosen is found by both: each other
    one keeps its share of that one's score.
    """
    if not chosen:
        return 1.0
    first = chosen[0].candidate.place
    wider = next((hit.score for hit in ranked if hit.candidate.place == first), 0.0)
    return chosen[0].score / wider if wider > 0 else 1.0


def scale_scores(chosen: Sequence[Ranked], nearest: float) -> list[float]:
    """Scores shown to users: 0 to 1, never rising.

    The first hit gets `nearest`, the cosine of the question and the nearest passage of the book, so
    that a question the book does not treat scores low; the others get their share of it by fused
    score. The scores of a prefix do not depend on how many results were asked for.
    """
    level = min(max(nearest, 0.0), 1.0)
    scaled: list[float] = []
    for hit in chosen:
        best = chosen[0].score
        share = 1.0 if hit is chosen[0] else hit.score / best if best > 0 else 0.0
        level = min(level, max(0.0, min(1.0, nearest) * share))
        scaled.append(level)
    return scaled


def _describe(texts: Sequence[str], scores: Sequence[float]) -> Distribution:
    best = dict(sorted(zip(texts, scores, strict=True), key=itemgetter(1)))  # a text's highest
    return Distribution.of(best.values())


def _is_bare(place: Place, terms: frozenset[str]) -> bool:
    if place.bare_heading is None:
        return False
    return not terms or not terms <= set(extract_terms(place.bare_heading))


def _trust_bm25(
    candidates: Sequence[Candidate], weights: FusionWeights, term_weight: float
) -> float:
    if term_weight <= 0 or weights.semantic == 0:  # without vectors there is nobody to hand it to
        return 1.0
    best = max((candidate.bm25 for candidate in candidates), default=0.0)
    return min(1.0, best / term_weight / FULL_COVER)


def _mean_of_best(scores: list[float]) -> float:
    best = sorted(scores, reverse=True)[:DOCUMENT_DEPTH]
    return math.fsum(best) / len(best)


def _rank_key(hit: Ranked) -> tuple[float, str, int, int]:
    place = hit.candidate.place
    return (-hit.score, place.doc_path, place.chunk_index, place.point_id)


def _split_by_section(ranked: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
    """First hit of each section, and all others; both in order."""
    first: list[Ranked] = []
    others: list[Ranked] = []
    seen: set[str] = set()
    for hit in ranked:
        (others if hit.candidate.place.section in seen else first).append(hit)
        seen.add(hit.candidate.place.section)
    return first, others
