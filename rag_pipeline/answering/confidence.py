"""Estimate the probability that passages contain the answer to a question.

ADR 16 in docs/adr says how the rule was measured; benchmarks/grounding_curve.py prints the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Level
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH, find_chunk_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.retrieval.models import Evidence, RetrievalResult, ScoredChunk, WordNearness

ANSWERED_FROM: Final = 0.6
"""Lowest confidence at which passages count as an answer.

At most 5% of the questions that a book answers have a lower confidence (ADR 28).
"""

COVERED_FROM: Final = 0.3
"""Lowest confidence at which a book counts as covering the subject of a question.

Of the questions about other subjects, 98% have a lower confidence, and hardly any question that a
book answers (ADR 28).
"""

RELATED_FROM: Final = 0.33
"""Lowest mean of a passage's two cosines at which it has to do with the question (ADR 28)."""

STANDOUT_FROM: Final = 2.5
"""Standard deviations above the mean of unrelated questions from which a passage is related."""

_TYPICAL_CHUNKS: Final = 1_000  # assumed size of a book if a result does not state it
_WEAKEST: Final = 10.0  # how much the least supported words dominate; at 0 all count alike


@dataclass(frozen=True, slots=True)
class GroundingRule:
    """A logistic rule that decides whether passages contain an answer, from weighted `Signals`.

    Attributes:
        semantic: Weight of the highest cosine between the question and a passage.
        support: Weight of the similarity between the question's single words and the passages.
        cover: Weight of the highest share of the question's terms in one passage.
        known: Weight of the share of the question's terms that occur in the book.
        log_size: Weight of ln(number of searched chunks); more chunks give more chance matches.
        bias: Constant term.
        standout: If above 0, the confidence is also limited by how far the best passage stands out
            from what unrelated questions reach: it is `ANSWERED_FROM` at `STANDOUT_FROM`
            deviations, and its logit grows by this number per deviation.
    """

    semantic: float = 0.0
    support: float = 0.0
    cover: float = 0.0
    known: float = 0.0
    log_size: float = 0.0
    bias: float = 0.0
    standout: float = 0.0

    def confidence(self, signals: Signals) -> float:
        """Return the probability, 0 to 1, that the passages contain the answer."""
        logit = (
            self.semantic * signals.semantic
            + self.support * signals.support
            + self.cover * signals.cover
            + self.known * signals.known
            + self.log_size * math.log(max(1, signals.chunk_count))
            + self.bias
        )
        if self.standout > 0 and signals.standout is not None:
            level = math.log(ANSWERED_FROM / (1 - ANSWERED_FROM))
            logit = min(logit, level + self.standout * (signals.standout - STANDOUT_FROM))
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


@dataclass(frozen=True, slots=True)
class Signals:
    """The inputs of a `GroundingRule`, measured on a question and its five best passages.

    Attributes:
        semantic: Highest mean of a passage's two cosines with the question (whole chunk and
            four-word windows), -1 to 1. A passage without cosines counts with its score.
        support: Similarity of the question's single words to the passages, -1 to 1. The words with
            the lowest similarity count most. Equal to `semantic` if no words were compared.
        cover: Highest weighted share of the question's terms in one passage with its headings.
        known: Weighted share of the question's terms that occur anywhere in the book.
        chunk_count: Number of searched chunks.
        standout: Distance of `semantic` from the mean of unrelated questions, in their standard
            deviations. None if it was not measured.
    """

    semantic: float
    support: float
    cover: float
    known: float
    chunk_count: int
    standout: float | None = None


LEXICAL_RULE: Final = GroundingRule(cover=4.8, known=10.4, log_size=-0.78, bias=-2.4, standout=5.0)
"""For models without a measured rule.

Words decide, and the passages must be nearer than they are to unrelated questions. That does not
depend on the scale of the model's cosines (ADR 28).
"""

DEFAULT_RULE: Final = GroundingRule(semantic=16.8, support=19.7, known=9.7, bias=-20.9)
"""For the published local model, and for results built by hand, whose scores are cosines."""

TEXTBOOK_RULE: Final = GroundingRule(semantic=32.9, support=13.5, known=7.1, bias=-22.2)
"""For the local model that was trained on questions to textbooks (ADR 20)."""

_RULES: Final = {
    "local/all-MiniLM-L6-v2-int8-7df275c0-late": DEFAULT_RULE,
    "local/all-MiniLM-L6-v2-textbook-int8-f845cad2-late": TEXTBOOK_RULE,
}
"""Rules by provider and model, measured with the default rank fusion."""


def choose_rule(model: str) -> GroundingRule:
    """Return the grounding rule measured for an embedding model, or else `LEXICAL_RULE`."""
    name = "/".join(model.split("/")[:2])
    return _RULES.get(name, LEXICAL_RULE)


def choose_level(confidence: float) -> Level:
    """Return how well passages answer a question, from the confidence of a `GroundingRule`."""
    if confidence >= ANSWERED_FROM:
        return Level.ANSWERED
    return Level.CLOSEST_PASSAGES if confidence >= COVERED_FROM else Level.NOT_COVERED


def is_related(chunk: ScoredChunk, evidence: Evidence | None = None) -> bool:
    """Return True if a passage is similar enough to the question to be offered as related.

    Args:
        chunk: A passage that was found for the question.
        evidence: The evidence of the result. If it tells how near unrelated questions come, this
            is the bar; otherwise it is `RELATED_FROM`, which fits the local models.
    """
    bar = RELATED_FROM
    if evidence is not None and evidence.unrelated is not None:
        mean, deviation = evidence.unrelated
        bar = mean + STANDOUT_FROM * deviation
    return _nearness(chunk) >= bar


def measure_signals(result: RetrievalResult, question: str) -> Signals:
    """Measure how well the book and the five best passages of a result cover the question.

    The result must be from normal mode and have at least one passage.
    """
    evidence = result.evidence
    weights = weigh_question(evidence, question)
    total = math.fsum(weights.values())
    best = result.chunks[:EVIDENCE_DEPTH]
    terms_of_best = [
        find_chunk_terms(chunk.metadata.heading_breadcrumb, chunk.text) for chunk in best
    ]
    # Without evidence, only the terms of the retrieved passages are known.
    missing = (
        {entry.term for entry in evidence.terms if not entry.known}
        if evidence
        else set(weights).difference(*terms_of_best)
    )
    words = evidence.words if evidence else ()
    semantic = max((_nearness(chunk) for chunk in best), default=0.0)
    standout = None
    if evidence is not None and evidence.unrelated is not None:
        mean, deviation = evidence.unrelated
        standout = (semantic - mean) / deviation if deviation > 0 else None
    return Signals(
        semantic=semantic,
        support=_mean_of_weakest(words) if words else semantic,
        cover=max((_share(weights, terms, total) for terms in terms_of_best), default=0.0),
        known=_share(weights, set(weights) - missing, total),
        chunk_count=evidence.chunk_count if evidence else _TYPICAL_CHUNKS,
        standout=standout,
    )


def weigh_question(evidence: Evidence | None, question: str) -> dict[str, float]:
    """Return the weight of each distinct term of the question; rarer terms weigh more.

    Weights come from `evidence`; terms not in it get the mean weight, or 1.0 if it is None.
    """
    known = {entry.term: entry.weight for entry in evidence.terms} if evidence else {}
    typical = math.fsum(known.values()) / len(known) if known else 1.0
    return {term: known.get(term, typical) for term in extract_terms(question)}


def _mean_of_weakest(words: Sequence[WordNearness]) -> float:
    """Return a weighted mean of the words' similarity to the passages; the lowest values dominate.

    A word that no passage is similar to therefore cannot be outweighed by the other words.
    """
    total = math.fsum(word.weight for word in words)
    spread = math.fsum(word.weight * math.exp(-_WEAKEST * word.nearness) for word in words)
    return -math.log(spread / total) / _WEAKEST


def _nearness(chunk: ScoredChunk) -> float:
    channels = chunk.channels
    return chunk.score if channels is None else (channels.dense + channels.windows) / 2


def _share(weights: Mapping[str, float], terms: AbstractSet[str], total: float) -> float:
    found = math.fsum(weight for term, weight in weights.items() if term in terms)
    return found / total if total > 0 else 0.0
