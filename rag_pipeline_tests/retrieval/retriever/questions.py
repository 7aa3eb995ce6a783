"""Questions about the tiny book, and short forms of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_pipeline.retrieval import RetrievalResult


QUESTIONS = [
    "How can a hand pick up an egg without a force sensor?",
    "What moves a walker that has no motors?",
    "Who receives the messages of a publisher?",
    "When does a service caller go on?",
    "How do nodes follow the clock of the simulator?",
    "Why are ranges wrong behind glass?",
    "How is the range of a beam measured?",
    "How do I store a battery?",
    "What do I record in front of the wall?",
    "Does the body think?",
]


def headings(result: RetrievalResult) -> list[str]:
    """Return the section headings of the hits, in order."""
    return [hit.metadata.section_heading for hit in result.chunks]


def outline(result: RetrievalResult) -> list[tuple[str, float]]:
    """Return the chunk id and the score of each hit, in order."""
    return [(hit.chunk_id, hit.score) for hit in result.chunks]
