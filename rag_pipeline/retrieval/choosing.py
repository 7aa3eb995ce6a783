"""The choosing stage: one hit for each section first, documents spread, no near-duplicates."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.terms import extract_terms
from rag_pipeline.retrieval.candidates import DEPTH, gather_candidates
from rag_pipeline.retrieval.ranking import fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.core.vectors import FloatVector
    from rag_pipeline.retrieval.candidates import PlaceCache
    from rag_pipeline.retrieval.ranking import Candidate, FusionWeights, Place, Ranked
    from rag_pipeline.retrieval.search import Search

UNCROWDED: Final = 2
"""Number of sections of one document that are chosen by their score alone."""

CROWDING: Final = 0.1
"""Fused score that each further section of the document counts less than the one before."""

PART_DEPTH: Final = 20
"""Hits of the whole question among which the best hit of a part is looked for."""

FIRST_PLACE: Final = 3
"""Hits of the whole question that stand before any hit of a part."""

_SPARE: Final = 2  # candidates whose vectors are read together with those of the hits asked for
_DEEPEN_FACTOR: Final = 4  # how much further a search goes if duplicates left too few hits


def choose_hits(
    index: VectorIndex,
    searches: Sequence[Search],
    places: PlaceCache,
    weights: FusionWeights,
    dedup_threshold: float,
) -> None:
    """Set `chosen` of each search, from its candidates and evidence.

    A search whose duplicates leave too few hits is repeated with more candidates. These change the
    statistics, so the hits that were chosen before keep their places: the first hits are the same
    however many are asked for.
    """
    near = NearDuplicates(index, dedup_threshold)
    for search in searches:
        search.nearest = max((candidate.semantic for candidate in search.candidates), default=0.0)
        _rank(search, weights)
    near.load(
        [
            hit.candidate
            for search in searches
            for hit in search.passages[: _count_wanted(search) + _SPARE]
        ]
    )
    for search in searches:
        count, depth = _count_wanted(search), DEPTH
        search.chosen = select(search.passages, count, near.is_near)
        while len(search.chosen) < count and not search.exhausted:
            depth *= _DEEPEN_FACTOR
            gather_candidates(index, [search], depth, places)
            _rank(search, weights)
            search.chosen = select(search.passages, count, near.is_near, search.chosen)
        search.chosen = select(search.bare, count, near.is_near, search.chosen)
        if search.parts:
            of_parts = [fuse(part.candidates, weights) for part in search.parts]
            search.chosen = place_parts(search.chosen, of_parts, search.offered)


class NearDuplicates:
    """Compares candidates by their dense vectors, which are read from the store when needed.

    Args:
        index: The store of the vectors.
        threshold: Two texts with a higher cosine say the same.
    """

    def __init__(self, index: VectorIndex, threshold: float) -> None:
        self._index = index
        self._threshold = threshold
        self._vectors: dict[PointId, FloatVector] = {}
        self._asked: set[PointId] = set()

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Read the vectors that are likely to be compared, in one round trip."""
        wanted = sorted({candidate.place.point_id for candidate in candidates} - self._asked)
        self._asked.update(wanted)
        self._vectors |= self._index.fetch_dense(wanted)

    def is_near(self, one: Candidate, other: Candidate) -> bool:
        """Return True if two candidates say the same; False if one was deleted in the meantime."""
        missing = [each for each in (one, other) if each.place.point_id not in self._asked]
        if missing:
            self.load(missing)
        left, right = self._vectors.get(one.place.point_id), self._vectors.get(other.place.point_id)
        if left is None or right is None:
            return False
        return float(left @ right) > self._threshold


def arrange(
    ranked: Sequence[Ranked], terms: frozenset[str] = frozenset()
) -> tuple[list[Ranked], list[Ranked]]:
    """Order hits for being chosen: one of each section before a second of any, documents spread.

    From its third section on, each hit of a document counts `CROWDING` less than the one before:
    five places full of one page leave no room for the page that has the answer.

    Args:
        ranked: Best first.
        terms: Terms of the question. A bare heading that contains all of them is what was asked
            for, so it counts as a passage.

    Returns:
        The first hit of each section, then the sections' other hits; and the bare headings, which
        come after everything that has text.
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
        arranged: In the order of choice.
        count: Bound on the hits, those of `before` included.
        is_near: Tells if two candidates of different text say the same.
        before: Hits that are chosen already; they keep their places.
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
    """Return the factor that makes the scores of a wider search compare with those chosen before.

    Scores compare only within their own search. The first hit chosen is found by both searches:
    every other hit keeps its share of the first hit's score.
    """
    if not chosen:
        return 1.0
    first = chosen[0].candidate.place
    wider = next((hit.score for hit in ranked if hit.candidate.place == first), 0.0)
    return chosen[0].score / wider if wider > 0 else 1.0


def place_parts(
    chosen: Sequence[Ranked], parts: Sequence[Sequence[Ranked]], count: int
) -> list[Ranked]:
    """Give the best hit of each part a place after the first three hits of the whole question.

    Args:
        chosen: Hits of the whole question, best first.
        parts: Hits of each part, best first. Only hits among the first `PART_DEPTH` of the whole
            question count.
        count: Number of hits wanted; the places do not depend on it.
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


def _count_wanted(search: Search) -> int:
    return max(search.offered, PART_DEPTH if search.parts else 0)


def _rank(search: Search, weights: FusionWeights) -> None:
    """Set `passages` and `bare`, with scores that compare with those of the hits chosen so far."""
    known = search.evidence.terms if search.evidence else ()
    ranked = fuse(search.candidates, weights, math.fsum(term.weight for term in known))
    search.passages, search.bare = arrange(ranked, frozenset(term.term for term in known))
    if search.chosen:
        scale = find_scale(search.chosen, ranked)
        search.passages = [replace(hit, score=hit.score * scale) for hit in search.passages]
        search.bare = [replace(hit, score=hit.score * scale) for hit in search.bare]


def _is_bare(place: Place, terms: frozenset[str]) -> bool:
    if place.bare_heading is None:
        return False
    return not terms or not terms <= set(extract_terms(place.bare_heading))


def _split_by_section(ranked: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
    """Return the first hit of each section, and all other hits; both in order."""
    first: list[Ranked] = []
    others: list[Ranked] = []
    seen: set[str] = set()
    for hit in ranked:
        (others if hit.candidate.place.section in seen else first).append(hit)
        seen.add(hit.candidate.place.section)
    return first, others
