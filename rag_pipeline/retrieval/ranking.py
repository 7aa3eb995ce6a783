"""The fusion stage: candidates in the order of one score made of all channels' scores. Pure.

How each rule was chosen: docs/adr/0005-retrieval-fusion.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_pipeline.core.ids import PointId

STATISTICS_DEPTH: Final = 100
"""Number of a retriever's best scores that describe its distribution."""

FULL_COVER: Final = 0.45
"""Share of a question's terms, by weight, from which BM25 counts in full.

It is the median of our golden set.
"""

DOCUMENT_DEPTH: Final = 3
"""Number of a document's best candidates that say how much the question is about it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a point in the book, and which text it has.

    Attributes:
        section: Equal for all chunks of one section of one document.
        bare_heading: The heading, if the point is a heading without text of its own, which answers
            nothing; else None.
    """

    point_id: PointId
    doc_path: str
    section: str
    chunk_index: int
    content_hash: str
    bare_heading: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point that a retriever found, with its exact score by every retriever.

    Attributes:
        dense: Cosine of question and whole chunk.
        windows: Mean over the tokens of the question's words, stop words left out, of each token's
            cosine with the nearest window of words; `dense` if there are no windows.
        bm25: 0 for a point without any of the question's terms.
    """

    place: Place
    dense: float
    windows: float
    bm25: float

    @property
    def semantic(self) -> float:
        """Return the mean of both cosines: of the whole chunk's subject, and of its words."""
        return (self.dense + self.windows) / 2


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and its fused score."""

    candidate: Candidate
    score: float


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """The weight of each retriever, and of a document's best candidates.

    Attributes:
        windows: Share of the windows in the semantic part; the rest belongs to the whole chunk.
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
        """Describe the best scores of a retriever; (0, 0) if there are none."""
        top = sorted(scores, reverse=True)[:STATISTICS_DEPTH]
        if not top:
            return cls(0.0, 0.0)
        mean = math.fsum(top) / len(top)
        variance = math.fsum((score - mean) ** 2 for score in top) / len(top)
        return cls(mean, math.sqrt(variance))

    def place(self, score: float) -> float:
        """Return 0 for a score three deviations below the mean, 1 for three above; not clamped.

        Equal scores tell nothing apart: without a deviation every score gives 0.5.

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

    Each retriever's scores are placed in the distribution of its 100 best, weighted and added.
    Then the mean of each document's three best is added with its own weight. A text counts once
    in a distribution: a hundred copies would leave it no deviation, and other texts no difference.
    Ties go by document path and position, so that the order is the same on every run and store.

    Args:
        candidates: Of one question.
        weights: Weights for a question whose terms are covered.
        term_weight: The BM25 score of a passage that is about each of the question's terms; 0 if
            it is not known. If the best passage gets little of it, the book uses other words, and
            BM25 gives part of its weight to the vectors.
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


def scale_scores(chosen: Sequence[Ranked], nearest: float) -> list[float]:
    """Return the scores shown to users: 0 to 1, never rising.

    The first hit gets `nearest`, the cosine of the question and the nearest passage of the book, so
    that a question on a foreign subject scores low. The other hits get their share of it by fused
    score. The scores of a prefix do not depend on the number of results asked for.
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


def _trust_bm25(
    candidates: Sequence[Candidate], weights: FusionWeights, term_weight: float
) -> float:
    if term_weight <= 0 or weights.semantic == 0:  # there are no vectors to give it to
        return 1.0
    best = max((candidate.bm25 for candidate in candidates), default=0.0)
    return min(1.0, best / term_weight / FULL_COVER)


def _mean_of_best(scores: list[float]) -> float:
    best = sorted(scores, reverse=True)[:DOCUMENT_DEPTH]
    return math.fsum(best) / len(best)


def _rank_key(hit: Ranked) -> tuple[float, str, int, int]:
    place = hit.candidate.place
    return (-hit.score, place.doc_path, place.chunk_index, place.point_id)
