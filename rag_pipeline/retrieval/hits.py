"""From chosen candidates to what a caller sees: text, metadata, citation, scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ResultInvalidError
from rag_pipeline.core.payload import read_metadata, read_text
from rag_pipeline.core.terms import extract_terms, find_distinct_terms
from rag_pipeline.retrieval.citations import build_citation
from rag_pipeline.retrieval.expansion import expand, read_sections
from rag_pipeline.retrieval.models import ChannelScores, ScoredChunk
from rag_pipeline.retrieval.ranking import scale_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols.embedding import Reranker
    from rag_pipeline.core.protocols.stores import StoredPoint, VectorIndex
    from rag_pipeline.core.vectors import FloatVector
    from rag_pipeline.retrieval.ranking import Candidate, Ranked


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for one query.

    Attributes:
        nearest: Cosine of the question and the nearest candidate, -1 to 1.
        candidate_count: How many candidates were ranked.
    """

    chosen: tuple[Ranked, ...]
    nearest: float
    candidate_count: int


class NearDuplicates:
    """Compares candidates by their dense vectors, read from the store in blocks when needed.

    Args:
        index: Where the vectors are.
        threshold: Cosine over which two texts say the same.
    """

    def __init__(self, index: VectorIndex, threshold: float) -> None:
        self._index = index
        self._threshold = threshold
        self._vectors: dict[PointId, FloatVector] = {}
        self._asked: set[PointId] = set()

    def load(self, candidates: Sequence[Candidate]) -> None:
        """Read vectors that are likely to be compared, in one round trip."""
        wanted = sorted({candidate.place.point_id for candidate in candidates} - self._asked)
        self._asked.update(wanted)
        self._vectors |= self._index.fetch_dense(wanted)

    def is_near(self, one: Candidate, other: Candidate) -> bool:
        """Whether two candidates say the same; never for one deleted since it was found."""
        missing = [each for each in (one, other) if each.place.point_id not in self._asked]
        if missing:
            self.load(missing)
        left, right = self._vectors.get(one.place.point_id), self._vectors.get(other.place.point_id)
        if left is None or right is None:
            return False
        return float(left @ right) > self._threshold


def build_hits(
    question: str, choice: Choice, points: Mapping[PointId, StoredPoint]
) -> list[ScoredChunk]:
    """Describe chosen candidates; those that were deleted since they were found are left out.

    Raises:
        PayloadError: A point does not keep the payload contract.
    """
    terms = set(extract_terms(question))
    hits = []
    for ranked, score in zip(
        choice.chosen, scale_scores(choice.chosen, choice.nearest), strict=True
    ):
        candidate = ranked.candidate
        point = points.get(candidate.place.point_id)
        if point is None:
            continue
        metadata, text = read_metadata(point.payload), read_text(point.payload)
        held = _find_terms_once(" ".join((*metadata.heading_breadcrumb, text)))
        channels = ChannelScores(
            dense=candidate.dense,
            windows=candidate.windows,
            bm25=candidate.bm25,
            lexical=len(terms & held) / len(terms) if terms else 0.0,
            fused=ranked.score,
        )
        citation = build_citation(metadata)
        hits.append(ScoredChunk(metadata.chunk_id, text, score, metadata, citation, channels))
    return hits


_find_terms_once = lru_cache(maxsize=1024)(find_distinct_terms)  # chunks; about 10 MB


def rerank_hits(
    reranker: Reranker, question: str, hits: Sequence[ScoredChunk]
) -> list[ScoredChunk]:
    """Order hits by a reranker's scores, which become theirs, within 0 to 1; ties keep order.

    Raises:
        ResultInvalidError: There is not one finite score for each hit.
    """
    given = reranker.rerank(question, [hit.text for hit in hits])
    scores = [float(score) for score in given]  # NumPy's numbers are no JSON
    if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
        finite = sum(map(math.isfinite, scores))
        raise ResultInvalidError(
            f"the reranker {type(reranker).__name__} gave {len(scores)} scores, {finite} of them "
            f"finite, for {len(hits)} passages. It must give a finite one for each"
        )
    ranked = sorted(zip(hits, scores, strict=True), key=lambda scored: -scored[1])
    return [replace(hit, score=min(1.0, max(0.0, score))) for hit, score in ranked]


def widen_hits(
    index: VectorIndex, hits: Sequence[ScoredChunk], budget_tokens: int
) -> list[ScoredChunk]:
    """Give each hit its neighbours in the same section that fit the budget."""
    sections = read_sections(index, [hit.metadata.doc_path for hit in hits])
    return [
        replace(hit, expanded_text=expand(hit.metadata, hit.text, sections, budget_tokens))
        for hit in hits
    ]
