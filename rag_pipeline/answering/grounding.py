"""The decision if the retrieved passages contain an answer, and the sources that a model is given.

docs/adr/0016-refusing-by-the-weakest-words.md describes how the rule was measured;
benchmarks/grounding_curve.py prints its curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import GroundedResponse, Reason, Source
from rag_pipeline.answering.prompts import build_instruction, format_context, key_sources
from rag_pipeline.core.terms import extract_terms, find_distinct_terms
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.filters import build_point_filter
from rag_pipeline.retrieval.models import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.retrieval.models import (
        Citation,
        Evidence,
        RetrievalResult,
        ScoredChunk,
        WordNearness,
    )

MAX_CONTEXT_TOKENS: Final = 8_000
"""Bound on all sources in a prompt: ten chunks of the largest size. Later sources are left out."""

RELATED_SECTIONS: Final = 3
_TYPICAL_CHUNKS: Final = 1_000  # of a textbook, if a result does not say
_WEAKEST: Final = 10.0  # how much the least supported words count; 0 counts all alike
_CHARS_PER_TOKEN: Final = 3  # of widened passages: few texts have fewer

_NO_PASSAGES: Final = (
    "I don't have enough information in the book to answer this: no passage was found."
)
_NOT_COVERED: Final = (
    "I don't have enough information in the book to answer this: it does not seem to cover the "
    "question."
)
_UNRELATED: Final = (
    "The question does not seem to be about the selected text. I can answer from the selection "
    "all the same, or search the whole book."
)
_FILTERED: Final = "The search was limited to a part of the book; ask again without filters."


@dataclass(frozen=True, slots=True)
class GroundingRule:
    """A logistic rule; a confidence of 0.5 or more suffices.

    Attributes:
        semantic: Weight of the question's cosine with the nearest retrieved passage.
        support: Weight of how near the passages come to the question's words.
        cover: Weight of the share of the question's terms that the best passage contains.
        known: Weight of the share of the terms that the book contains.
        log_size: Weight of the logarithm of the number of searched chunks: in more chunks, more
            is found by chance.
        bias: Constant term.
    """

    semantic: float = 0.0
    support: float = 0.0
    cover: float = 0.0
    known: float = 0.0
    log_size: float = 0.0
    bias: float = 0.0

    def confidence(self, signals: Signals) -> float:
        """Return how likely the passages contain the answer, 0 to 1."""
        logit = (
            self.semantic * signals.semantic
            + self.support * signals.support
            + self.cover * signals.cover
            + self.known * signals.known
            + self.log_size * math.log(max(1, signals.chunk_count))
            + self.bias
        )
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


@dataclass(frozen=True, slots=True)
class Signals:
    """The inputs of the rule, from the five best passages; none depends on a book's subject.

    Attributes:
        semantic: Highest mean of a passage's two cosines, -1 to 1; its score without channels.
        support: How near the passages come to the words of the question that they support least,
            -1 to 1; equal to `semantic` if words were not compared.
        cover: Highest weighted share of the question's terms in one passage and its headings.
        known: The same share in the whole book.
        chunk_count: Number of chunks that were searched.
    """

    semantic: float
    support: float
    cover: float
    known: float
    chunk_count: int


LEXICAL_RULE: Final = GroundingRule(cover=4.8, known=10.4, log_size=-0.78, bias=-4.2)
"""For models without a measured rule: their cosines have a scale of their own."""

DEFAULT_RULE: Final = GroundingRule(semantic=16.8, support=19.7, known=9.7, bias=-20.9)
"""For the local model as published, and for results built by hand, whose scores are cosines."""

TEXTBOOK_RULE: Final = GroundingRule(semantic=32.9, support=13.5, known=7.1, bias=-22.2)
"""For the local model trained on questions to textbooks: docs/adr/0020."""

_RULES: Final = {
    "local/all-MiniLM-L6-v2-int8-7df275c0-late": DEFAULT_RULE,
    "local/all-MiniLM-L6-v2-textbook-int8-f845cad2-late": TEXTBOOK_RULE,
}
"""By provider and model; measured with the default fusion."""


def apply_grounding_policy(
    result: RetrievalResult, question: str, *, max_context_tokens: int = MAX_CONTEXT_TOKENS
) -> GroundedResponse:
    """Prepare passages for an answer, or refuse.

    In normal mode a measured rule decides, from the passages' scores and from how much of the
    question their words cover. In selected-text mode the question must be about the selection.

    Args:
        result: Of `Retriever.retrieve`; a result without evidence is judged only by its passages.
        question: As asked.
        max_context_tokens: Bound on all sources together; the first is always given whole.

    Returns:
        Context, instruction, citations and the decision; a refusal has up to three related
        sections.
    """
    selected = result.mode == Mode.SELECTED_TEXT_ONLY
    sources = _number_sources(result.chunks, None if selected else max_context_tokens)
    key = key_sources(question, sources, Mode(result.mode))
    context = "\n\n".join(source.text for source in sources) if selected else None
    reason, confidence = _decide(result, question)
    refused = reason is not Reason.SUFFICIENT
    return GroundedResponse(
        context=format_context(sources, Mode.NORMAL, key) if context is None else context,
        system_instruction=build_instruction(result.mode, key),
        citations=tuple(source.citation for source in sources),
        mode=Mode(result.mode),
        sufficient_context=not refused,
        reason=reason,
        sources=sources,
        confidence=confidence,
        message=_MESSAGES[reason],
        related=_suggest_sections(result.chunks) if refused and not selected else (),
        notices=_collect_notices(result, question, refused=refused),
    )


def choose_rule(model: str) -> GroundingRule:
    """Return the rule of an embedding model by its fingerprint; by default only words decide."""
    name = "/".join(model.split("/")[:2])
    return _RULES.get(name, LEXICAL_RULE)


def measure_signals(result: RetrievalResult, question: str) -> Signals:
    """Return the signals of a result in normal mode with at least one passage."""
    evidence = result.evidence
    weights = weigh_question(evidence, question)
    total = math.fsum(weights.values())
    best = result.chunks[:EVIDENCE_DEPTH]
    held = [
        find_distinct_terms(" ".join((*chunk.metadata.heading_breadcrumb, chunk.text)))
        for chunk in best
    ]
    # Without evidence, only the retrieved passages are known of the book.
    missing = (
        {entry.term for entry in evidence.terms if not entry.known}
        if evidence
        else set(weights).difference(*held)
    )
    words = evidence.words if evidence else ()
    semantic = max((_nearness(chunk) for chunk in best), default=0.0)
    return Signals(
        semantic=semantic,
        support=_mean_of_weakest(words) if words else semantic,
        cover=max((_share(weights, terms, total) for terms in held), default=0.0),
        known=_share(weights, set(weights) - missing, total),
        chunk_count=evidence.chunk_count if evidence else _TYPICAL_CHUNKS,
    )


def weigh_question(evidence: Evidence | None, question: str) -> dict[str, float]:
    """Return the weights of a question's distinct terms; all alike if nothing is known of them."""
    known = {entry.term: entry.weight for entry in evidence.terms} if evidence else {}
    typical = math.fsum(known.values()) / len(known) if known else 1.0
    return {term: known.get(term, typical) for term in extract_terms(question)}


def find_missing_names(evidence: Evidence | None, question: str) -> tuple[str, ...]:
    """Return the names in the question that the book does not contain, as written, in order.

    A name is a word with a capital after its first letter, a digit or an underscore, or a word with
    a capital that does not begin the question. `ROS2` is not missing if `ROS` and `2` occur.
    """
    if evidence is None:
        return ()
    first = question.split(maxsplit=1)[0] if question.strip() else ""
    missing: list[str] = []
    for word in dict.fromkeys(entry.word for entry in evidence.terms):
        inner = any(char.isupper() or char.isdigit() or char == "_" for char in word[1:])
        if not inner and not (word[:1].isupper() and not first.startswith(word)):
            continue
        entries = [entry for entry in evidence.terms if entry.word == word]
        whole, *parts = [entry.known for entry in entries]
        joined = any(char.isdigit() or char == "_" for char in word) and parts and all(parts)
        if not whole and not joined:
            missing.append(word)
    return tuple(missing)


def _suggest_sections(chunks: Sequence[ScoredChunk]) -> tuple[Citation, ...]:
    """Return the best passages' sections, each once, at most three."""
    return tuple(dict.fromkeys(chunk.citation for chunk in chunks))[:RELATED_SECTIONS]


_MESSAGES: Final = {
    Reason.SUFFICIENT: "",
    Reason.NO_PASSAGES: _NO_PASSAGES,
    Reason.NOT_COVERED: _NOT_COVERED,
    Reason.UNRELATED_TO_SELECTION: _UNRELATED,
}


def _decide(result: RetrievalResult, question: str) -> tuple[Reason, float | None]:
    if not result.chunks:
        return Reason.NO_PASSAGES, 0.0
    if result.mode == Mode.SELECTED_TEXT_ONLY:
        return (Reason.SUFFICIENT if result.related else Reason.UNRELATED_TO_SELECTION), None
    rule = choose_rule(result.evidence.model) if result.evidence else DEFAULT_RULE
    confidence = rule.confidence(measure_signals(result, question))
    return (Reason.SUFFICIENT if confidence >= 0.5 else Reason.NOT_COVERED), confidence


def _number_sources(chunks: Sequence[ScoredChunk], max_tokens: int | None) -> tuple[Source, ...]:
    sources: list[Source] = []
    left = max_tokens
    for chunk in chunks:
        widened = chunk.expanded_text is not None
        tokens = (
            len(chunk.context_text) // _CHARS_PER_TOKEN if widened else chunk.metadata.token_count
        )
        if left is not None:
            if sources and tokens > left:
                break
            left -= tokens
        number = len(sources) + 1
        text, blocks = chunk.context_text, chunk.context_blocks
        sources.append(Source(number, chunk.chunk_id, text, chunk.citation, blocks))
    return tuple(sources)


def _collect_notices(result: RetrievalResult, question: str, *, refused: bool) -> tuple[str, ...]:
    notices: list[str] = []
    if result.notice and not (refused and result.mode == Mode.SELECTED_TEXT_ONLY):
        notices.append(result.notice)
    missing = find_missing_names(result.evidence, question)
    if missing:
        notices.append(f"The book does not mention {', '.join(missing)}.")
    limited = bool(build_point_filter(result.query.filters).fields)
    if refused and limited and result.mode == Mode.NORMAL:
        notices.append(_FILTERED)
    return tuple(notices)


def _mean_of_weakest(words: Sequence[WordNearness]) -> float:
    """Return a soft minimum of the words' nearness, by weight.

    One thing that the question asks for and no passage comes near is not made up for by others.
    """
    total = math.fsum(word.weight for word in words)
    spread = math.fsum(word.weight * math.exp(-_WEAKEST * word.nearness) for word in words)
    return -math.log(spread / total) / _WEAKEST


def _nearness(chunk: ScoredChunk) -> float:
    channels = chunk.channels
    return chunk.score if channels is None else (channels.dense + channels.windows) / 2


def _share(weights: Mapping[str, float], terms: AbstractSet[str], total: float) -> float:
    held = math.fsum(weight for term, weight in weights.items() if term in terms)
    return held / total if total > 0 else 0.0
