"""The choosing stage of retrieval: pick the hits of each search from its ranked candidates.

Each section gives one hit before any section gives a second, no document fills the list, and
near-duplicates are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.retrieval.candidates import DEPTH, Found, find_best, gather_candidates
from rag_pipeline.retrieval.ranking import favor_explaining, fit_weights, fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols import VectorIndex
    from rag_pipeline.core.vectors import FloatVector
    from rag_pipeline.retrieval.models import Evidence
    from rag_pipeline.retrieval.open_index import OpenIndex
    from rag_pipeline.retrieval.ranking import Candidate, FusionWeights, Ranked
    from rag_pipeline.retrieval.search import Search

UNCROWDED: Final = 2
"""Number of sections of one document that are ordered by their score without a penalty."""

CROWDING: Final = 0.1
"""Amount by which the penalty grows with each section of a document after the first two.

The third section loses 0.1 of its fused score, the fourth 0.2, and so on.
"""

PART_DEPTH: Final = 20
"""Number of the whole question's best hits that can be moved up for a sub-question."""

FIRST_PLACE: Final = 3
"""Number of the whole question's best hits that come before the hits of its sub-questions."""

_SPARE: Final = 2  # further candidates whose vectors are read at once, to replace duplicates
_PAGE: Final = 5  # candidates whose vectors are read at once after that
_DEEPEN_FACTOR: Final = 4  # growth of the search depth when duplicates leave too few hits


@dataclass(frozen=True, slots=True)
class Chosen:
    """The candidates that were chosen as the hits of a search.

    Attributes:
        hits: The chosen candidates, best first.
        nearest: The highest similarity of a candidate to the question, -1 to 1.
        candidate_count: Number of candidates that were ranked.
    """

    hits: tuple[Ranked, ...]
    nearest: float
    candidate_count: int


def choose_hits(
    opened: OpenIndex,
    searches: Sequence[Search],
    found: Sequence[Found],
    evidence: Sequence[Evidence],
    weights: FusionWeights,
    near: NearDuplicates,
) -> list[Chosen]:
    """Rank the candidates of each search and choose its hits.

    If duplicates leave too few hits, the search is repeated with more candidates. More candidates
    change the score statistics, so the hits that were chosen before keep their places. The first
    hits are therefore the same, however many results are asked for. Bare headings (headings
    without any text below them) are chosen last.

    Args:
        opened: The collection, for vectors and further candidates.
        searches: The searches.
        found: The candidates of each search.
        evidence: The term weights of each search.
        weights: The weights of the fused score.
        near: The test for near-duplicates.
    """
    orders = [_rank(own, known, weights) for own, known in zip(found, evidence, strict=True)]
    counts = [max(search.offered, PART_DEPTH if search.parts else 0) for search in searches]
    near.load(
        [
            hit.candidate
            for count, (passages, bare) in zip(counts, orders, strict=True)
            for hit in [*passages, *bare][: count + _SPARE]
        ]
    )
    chosen = []
    for search, first, known, order, count in zip(
        searches, found, evidence, orders, counts, strict=True
    ):
        (passages, bare), own, depth = order, first, DEPTH
        hits = select(near.load_ahead(passages), count, near.is_near)
        while len(hits) < count and not own.exhausted:
            depth *= _DEEPEN_FACTOR
            deeper, _ = find_best(opened, [replace(search, parts=())], depth)
            (own,) = gather_candidates(opened, deeper, weights)
            passages, bare = _rank(own, known, weights, hits)
            hits = select(near.load_ahead(passages), count, near.is_near, hits)
        hits = select(near.load_ahead(bare), count, near.is_near, hits)
        if search.parts:
            of_parts = [fuse(part.candidates, weights, far=part.far) for part in first.parts]
            hits = place_parts(hits, of_parts, search.offered)
        nearest = max((candidate.semantic for candidate in first.candidates), default=0.0)
        chosen.append(Chosen(tuple(hits), nearest, len(own.candidates)))
    return chosen


class NearDuplicates:
    """A test for near-duplicates that compares the dense vectors of two candidates.

    Args:
        index: The collection that stores the vectors.
        threshold: Two candidates whose vectors have a higher cosine are near-duplicates.

    Attributes:
        payloads: The payloads that were read together with the vectors.
    """

    def __init__(self, index: VectorIndex, threshold: float) -> None:
        self._index = index
        self._threshold = threshold
        self.payloads: dict[PointId, Payload] = {}
        self._vectors: dict[PointId, FloatVector | None] = {}
        self._asked: set[PointId] = set()

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Read the vectors and payloads of the candidates in one round trip, unless known."""
        wanted = sorted({candidate.place.point_id for candidate in candidates} - self._asked)
        self._asked.update(wanted)
        for point_id, (payload, vector) in self._index.fetch_with_dense(wanted).items():
            self.payloads[point_id], self._vectors[point_id] = payload, vector

    def load_ahead(self, ranked: Sequence[Ranked]) -> Iterator[Ranked]:
        """Yield ranked hits in order, and read the vectors of several of them at once."""
        for at, hit in enumerate(ranked):
            if hit.candidate.place.point_id not in self._asked:
                self.load([following.candidate for following in ranked[at : at + _PAGE]])
            yield hit

    def is_near(self, one: Candidate, other: Candidate) -> bool:
        """Return True if the cosine of two loaded candidates' vectors is above the threshold.

        If one of the two points has been deleted from the store, the result is False.
        """
        left, right = (self._vectors.get(each.place.point_id) for each in (one, other))
        if left is None or right is None:
            return False
        return float(left @ right) > self._threshold


def arrange(
    ranked: Sequence[Ranked], terms: frozenset[str] = frozenset()
) -> tuple[list[Ranked], list[Ranked]]:
    """Return ranked hits in the order in which they are to be chosen.

    Each section gives one hit before any section gives a second. From its third section on, a
    document loses score for each further section (see `CROWDING`), because five hits from one
    document leave no room for the document that has the answer.

    Args:
        ranked: Hits, best first.
        terms: The terms of the question. A bare heading (a heading without any text below it) that
            contains all of them counts as a passage, because the question names that heading.

    Returns:
        Two lists. The first has the best hit of each section and then all other hits with text.
        The second has the bare headings.
    """
    bare: list[Ranked] = []
    others: list[Ranked] = []
    spread: list[tuple[float, Ranked]] = []
    sections: set[str] = set()
    before: Counter[str] = Counter()
    for hit in ranked:
        place = hit.candidate.place
        heading = place.bare_heading
        is_named = heading is not None and bool(terms) and terms <= set(extract_terms(heading))
        if heading is not None and not is_named:
            bare.append(hit)
        elif place.section in sections:
            others.append(hit)
        else:
            penalty = CROWDING * max(0, before[place.page] - UNCROWDED + 1)
            spread.append((hit.score - penalty, hit))
            sections.add(place.section)
            before[place.page] += 1
    spread.sort(key=lambda entry: -entry[0])
    return [*(hit for _, hit in spread), *others], bare


def select(
    arranged: Iterable[Ranked],
    count: int,
    is_near: Callable[[Candidate, Candidate], bool],
    before: Sequence[Ranked] = (),
) -> list[Ranked]:
    """Choose at most `count` hits in the given order, without equal texts and near-duplicates.

    Args:
        arranged: Hits in the order in which they are to be chosen.
        count: Maximum number of hits, including the hits of `before`.
        is_near: Returns True if two candidates are near-duplicates.
        before: Hits that are already chosen. They come first in the result.

    Returns:
        The hits of `before`, followed by the new hits.
    """
    chosen = list(before)
    hashes = {hit.candidate.place.content_hash for hit in chosen}
    following = iter(arranged)
    # The next hit is taken only if it is needed, because taking it can cost a request.
    while len(chosen) < count and (hit := next(following, None)) is not None:
        if hit.candidate.place.content_hash in hashes:
            continue
        if any(is_near(hit.candidate, kept.candidate) for kept in chosen):
            continue
        hashes.add(hit.candidate.place.content_hash)
        chosen.append(hit)
    return chosen


def find_scale(chosen: Sequence[Ranked], ranked: Sequence[Ranked]) -> float:
    """Return the factor that makes scores of a repeated search comparable with earlier scores.

    Fused scores are comparable only within one search. Multiplied by this factor, the first chosen
    hit has the same score in both searches.

    Args:
        chosen: The hits that were chosen from the earlier search, best first; may be empty.
        ranked: The hits of the repeated, wider search.

    Returns:
        The factor, or 1.0 if the first chosen hit is missing from the repeated search.
    """
    if not chosen:
        return 1.0
    first = chosen[0].candidate.place
    wider = next((hit.score for hit in ranked if hit.candidate.place == first), 0.0)
    return chosen[0].score / wider if wider > 0 else 1.0


def place_parts(
    chosen: Sequence[Ranked], parts: Sequence[Sequence[Ranked]], count: int
) -> list[Ranked]:
    """Move the best hit of each sub-question up, to follow the question's first three hits.

    A hit is not moved if its section is already among the hits before it.

    Args:
        chosen: Hits of the whole question, best first.
        parts: Hits of each sub-question, best first. Hits that are not among the first
            `PART_DEPTH` hits of the whole question are ignored.
        count: Maximum number of hits to return. It does not change their order.

    Returns:
        The first `count` hits in the new order.
    """
    found = {hit.candidate.place.point_id: hit for hit in chosen[:PART_DEPTH]}
    first = list(chosen[:FIRST_PLACE])
    for ranked in parts:
        best = next((hit for hit in ranked if hit.candidate.place.point_id in found), None)
        sections = {hit.candidate.place.section for hit in first}
        if best is not None and best.candidate.place.section not in sections:
            first.append(found[best.candidate.place.point_id])
    taken = {hit.candidate.place.point_id for hit in first}
    rest = [hit for hit in chosen if hit.candidate.place.point_id not in taken]
    return [*first, *rest][:count]


def _rank(
    found: Found, evidence: Evidence, weights: FusionWeights, before: Sequence[Ranked] = ()
) -> tuple[list[Ranked], list[Ranked]]:
    """Return the ranked passages and the ranked bare headings of a search.

    If hits were chosen before, the scores are scaled to be comparable with theirs.
    """
    terms = {term.term: term.weight for term in evidence.terms}
    weights = fit_weights(weights, evidence.model, [*terms])
    fused = fuse(found.candidates, weights, math.fsum(terms.values()), found.far)
    ranked = favor_explaining(fused, terms, evidence.abbreviations)
    scale = find_scale(before, ranked)
    passages, bare = (
        [replace(hit, score=hit.score * scale) for hit in own] if scale != 1.0 else own
        for own in arrange(ranked, frozenset(terms))
    )
    return passages, bare
