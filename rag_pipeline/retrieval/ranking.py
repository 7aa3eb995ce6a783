"""The fusion stage: order candidates by one score that combines the scores of all channels.

All functions are pure. docs/adr/0005-retrieval-fusion.md explains how each rule was chosen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols import Channel
from rag_pipeline.core.text.abbreviations import Abbreviation, add_other_forms
from rag_pipeline.core.text.terms import is_latin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.core.ids import PointId

STATISTICS_DEPTH: Final = 100
"""Number of a channel's best scores from which its mean and standard deviation are computed."""

FULL_COVER: Final = 0.45
"""Share of a question's term weight that the best BM25 hit must reach for BM25 to count in full.

The value is the median over our golden set.
"""

DOCUMENT_DEPTH: Final = 3
"""Number of a document's best candidates whose mean score raises all of its candidates."""

# Learned together on the tuning halves of four sites, and confirmed on sites left out (ADR 57).
PATH: Final = 0.15  # for a title and headings that contain all terms of the question
HEADING: Final = 0.2  # for a heading that consists of the terms of the question
LENGTH: Final = 0.05  # times the logarithm of the number of words
POST: Final = 0.15  # what a page of a blog loses (ADR 87)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a point in the book, and the hash of its text.

    Attributes:
        page: A key that all chunks of one page share, in all its versions and languages.
        section: A key that all chunks of one section of a page share, in the same way.
        bare_heading: The heading if the chunk has no other text, so that it answers nothing;
            otherwise None.
        is_default: False in a version or language that readers do not get by default.
        word_count: Number of words of the text.
        path_terms: The distinct terms of the page's title and of the headings above the text.
        heading_terms: The distinct terms of the nearest heading, or of the title if there is none.
        is_post: True for a page of a blog.
    """

    point_id: PointId
    page: str
    section: str
    chunk_index: int
    content_hash: str
    bare_heading: str | None = None
    is_default: bool = True
    word_count: int = 0
    path_terms: frozenset[str] = frozenset()
    heading_terms: frozenset[str] = frozenset()
    is_post: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point that may answer a question, with its exact score in every channel.

    Attributes:
        dense: Cosine of the question's and the chunk's vectors.
        windows: Late-interaction (MaxSim) score: the mean over the question's tokens, without stop
            words, of each token's cosine with the chunk's nearest window (a vector of four words).
            Equal to `dense` if the model has no windows.
        bm25: BM25 score; 0 for a point without any of the question's terms.
        tokens: By row of the question's token vectors, the mean of such cosines over the tokens of
            the same word. Empty if the model has no windows.
    """

    place: Place
    dense: float
    windows: float
    bm25: float
    tokens: tuple[float, ...] = ()

    @property
    def semantic(self) -> float:
        """Return the mean of the `dense` and `windows` scores."""
        return (self.dense + self.windows) / 2


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its fused score; a higher score is better."""

    candidate: Candidate
    score: float


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """The weights from which a fused score is computed.

    Attributes:
        semantic: Weight of the vector scores, `dense` and `windows` together.
        bm25: Weight of the BM25 score.
        document: Weight of the mean score of the document's three best candidates.
        windows: Share of `windows` in the semantic weight, 0 to 1; `dense` has the rest.
    """

    semantic: float = 0.8
    bm25: float = 0.2
    document: float = 0.2
    windows: float = 0.7


def fit_weights(weights: FusionWeights, model: str, terms: Sequence[str]) -> FusionWeights:
    """Return the weights for a question, which depend on whether the model knows its language.

    The local model knows English only. For a question in another script, the weights of BM25 and of
    the vectors are exchanged. Languages in Latin letters share many words with English.

    Args:
        weights: The weights for a question in a language that the model knows.
        model: Fingerprint of the embedding model.
        terms: The terms of the question.
    """
    foreign = sum(not is_latin(term) for term in terms)
    if not model.startswith("local/") or 2 * foreign <= len(terms):
        return weights
    return replace(weights, semantic=weights.bm25, bm25=weights.semantic)


@dataclass(frozen=True, slots=True)
class Distribution:
    """The mean and the standard deviation of a channel's best scores."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: Iterable[float]) -> Distribution:
        """Return the distribution of the 100 highest scores, or (0, 0) if there are none."""
        top = sorted(scores, reverse=True)[:STATISTICS_DEPTH]
        if not top:
            return cls(0.0, 0.0)
        mean = math.fsum(top) / len(top)
        variance = math.fsum([(score - mean) ** 2 for score in top]) / len(top)
        return cls(mean, math.sqrt(variance))

    def place(self, scores: Iterable[float]) -> list[float]:
        """Return normalized scores: 0 at three deviations below the mean, 1 at three above it.

        The results are not limited to 0 to 1. If all scores are equal, every result is 0.5.

        Source:
            Distribution-based score fusion: (s - (mean - 3 deviation)) / (6 deviation).
        """
        mean, below, width = self.mean, 3 * self.deviation, 6 * self.deviation
        if self.deviation < 1e-9:
            return [0.5 for _ in scores]
        return [(score - mean + below) / width for score in scores]


def fuse(
    candidates: Sequence[Candidate],
    weights: FusionWeights,
    term_weight: float = 0.0,
    far: Mapping[Channel, Sequence[float]] | None = None,
) -> list[Ranked]:
    """Return the candidates of a question with their fused scores, best first.

    The scores of each channel are normalized by the distribution of its 100 best scores, then
    weighted and added. Each candidate also gets a weighted share of the mean score of its
    document's three best candidates. Equal texts count once in a distribution, because many copies
    would reduce its deviation to almost 0. Equal scores are ordered by document path and position,
    so that the order is the same on every run and store.

    Args:
        candidates: All candidates of one question.
        weights: The weights for a question whose terms the best BM25 hit covers.
        term_weight: The sum of the weights of the question's terms: the BM25 score of a passage
            about all of them. 0 if it is unknown. If the best candidate reaches only a small part
            of it, the book uses other words, and BM25 passes part of its weight to the vectors.
        far: The dense and BM25 scores of other points, which count in the distributions. Their
            window scores were not computed; each is assumed to lie as many deviations from the
            candidates' mean as the point's dense score. Equal scores count once.
    """
    by_text: dict[str, tuple[float, float, float]] = {}
    for candidate in candidates:
        own = (candidate.dense, candidate.windows, candidate.bm25)
        held = by_text.get(candidate.place.content_hash)
        if held is not None:
            own = (max(own[0], held[0]), max(own[1], held[1]), max(own[2], held[2]))
        by_text[candidate.place.content_hash] = own
    far_dense, far_bm25 = (
        set(far.get(channel, ()) if far else ()) for channel in (Channel.DENSE, Channel.BM25)
    )
    near_dense, near_windows, near_bm25 = (
        [scores[at] for scores in by_text.values()] for at in range(3)
    )
    own_dense, own_windows = Distribution.of(near_dense), Distribution.of(near_windows)
    ratio = own_windows.deviation / own_dense.deviation if own_dense.deviation > 1e-9 else 0.0
    far_windows = [own_windows.mean + ratio * (score - own_dense.mean) for score in far_dense]
    dense = Distribution.of([*near_dense, *far_dense])
    windows = Distribution.of([*near_windows, *far_windows])
    bm25 = Distribution.of([*near_bm25, *far_bm25])
    trust = 1.0
    if term_weight > 0 and weights.semantic > 0:  # vectors that do not count get no weight
        best_bm25 = max((candidate.bm25 for candidate in candidates), default=0.0)
        trust = min(1.0, best_bm25 / term_weight / FULL_COVER)
    bm25_weight = weights.bm25 * trust
    windows_weight = (weights.semantic + weights.bm25 - bm25_weight) * weights.windows
    dense_weight = weights.semantic + weights.bm25 - bm25_weight - windows_weight
    placed = zip(
        dense.place([candidate.dense for candidate in candidates]),
        windows.place([candidate.windows for candidate in candidates]),
        bm25.place([candidate.bm25 for candidate in candidates]),
        strict=True,
    )
    fused = [
        dense_weight * by_dense + windows_weight * by_windows + bm25_weight * by_bm25
        for by_dense, by_windows, by_bm25 in placed
    ]
    by_document: dict[str, list[float]] = defaultdict(list)
    for candidate, score in zip(candidates, fused, strict=True):
        by_document[candidate.place.page].append(score)
    best = {
        path: sorted(scores, reverse=True)[:DOCUMENT_DEPTH] for path, scores in by_document.items()
    }
    means = {path: math.fsum(scores) / len(scores) for path, scores in best.items()}
    ranked = [
        Ranked(candidate, score + weights.document * means[candidate.place.page])
        for candidate, score in zip(candidates, fused, strict=True)
    ]
    return sorted(ranked, key=_rank_key)


def favor_explaining(
    ranked: Sequence[Ranked], terms: Mapping[str, float], abbreviations: Sequence[Abbreviation] = ()
) -> list[Ranked]:
    """Return ranked candidates in a new order that favors the texts that explain the subject.

    A text that only echoes the words of a question, such as a list of lessons, may be nearer to the
    question than the section that explains them. So a candidate gains by the share of the question
    in its title and headings, by a heading that names nothing else, and by its length. A page of a
    blog loses a little, because posts tell what was new on a day, and the docs what is true now.

    Args:
        ranked: Candidates with their fused scores.
        terms: The weight of each term of the question; empty if it has no terms.
        abbreviations: Abbreviations of which a title or heading may have the other form.
    """
    total = math.fsum(terms.values())
    if total <= 0:
        return list(ranked)
    known = add_other_forms(frozenset(terms), abbreviations)

    def rate(place: Place) -> float:
        path_terms = add_other_forms(place.path_terms, abbreviations)
        heading_terms = add_other_forms(place.heading_terms, abbreviations)
        path = math.fsum(weight for term, weight in terms.items() if term in path_terms)
        named = math.fsum(weight for term, weight in terms.items() if term in heading_terms)
        others = sum(term not in known for term in place.heading_terms)
        return (
            PATH * path / total
            + HEADING * named / (total + others)
            + LENGTH * math.log1p(place.word_count)
            - POST * place.is_post
        )

    return sorted(
        (Ranked(hit.candidate, hit.score + rate(hit.candidate.place)) for hit in ranked),
        key=_rank_key,
    )


def scale_scores(chosen: Sequence[Ranked], nearest: float) -> list[float]:
    """Return the scores to show to users: one for each hit, from 0 to 1, never rising.

    The first hit gets `nearest`, so that all hits score low if the book does not cover the subject.
    Each other hit gets `nearest` times the ratio of its fused score to the first hit's, but never
    more than the hit before it. The score of a hit does not depend on the hits after it.

    Args:
        chosen: The hits in their final order.
        nearest: The similarity of the question to the nearest candidate, usually -1 to 1.
    """
    level = min(max(nearest, 0.0), 1.0)
    scaled: list[float] = []
    for hit in chosen:
        best = chosen[0].score
        share = 1.0 if hit is chosen[0] else hit.score / best if best > 0 else 0.0
        level = min(level, max(0.0, min(1.0, nearest) * share))
        scaled.append(level)
    return scaled


def _rank_key(hit: Ranked) -> tuple[float, str, bool, int, int]:
    place = hit.candidate.place
    return (-hit.score, place.page, not place.is_default, place.chunk_index, place.point_id)
