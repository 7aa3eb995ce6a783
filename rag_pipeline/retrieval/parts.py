"""Questions that ask for two things at once: a place among the first hits for each of them. Pure.

A question such as "How does X relate to Y?" is one point for a model, somewhere between X and Y:
passages on the stronger half fill the list. Each half is therefore searched for as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.terms import extract_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.retrieval.ranking import Ranked

MAX_PARTS: Final = 3
PART_DEPTH: Final = 20
"""Hits of the whole question among which the best of a part is looked for."""

FIRST_PLACE: Final = 3
"""Hits of the whole question that stand before any hit of a part."""

_SENTENCE: Final = re.compile(r"(?<=[.?!;])\s+")
_ASKING: Final = (
    r"(?:how|what|which|why|when|where|who|whose"
    r"|does|do|did|is|are|can|could|should|must|will|would)"
)
_ASKS: Final = re.compile(rf"(?:(?:in|at|to|by|from|for|on)\s+)?{_ASKING}\b", re.IGNORECASE)
_CLAUSE: Final = re.compile(rf",?\s+(?:and|but|or)\s+(?={_ASKS.pattern})", re.IGNORECASE)
_PAIR: Final = (
    re.compile(r"\bbetween\s+(?P<one>.+?)\s+and\s+(?P<other>.+)", re.IGNORECASE),
    re.compile(
        r"\bcompared?\s+(?P<one>.+?)\s+(?:with|to|and|against)\s+(?P<other>.+)", re.IGNORECASE
    ),
    re.compile(
        rf"^(?:{_ASKING}\s+)*(?P<one>.+?)\s+"
        r"(?:relates?|related|connects?|connected|differs?|different)\s+"
        r"(?:to|from|with)\s+(?P<other>.+)",
        re.IGNORECASE,
    ),
    re.compile(r"^(?P<one>.+?)\s+(?:vs\.?|versus)\s+(?P<other>.+)", re.IGNORECASE),
)
_CLAUSE_TERMS: Final = 2  # fewer say too little to be searched for by themselves
_PAIR_TERMS: Final = 1
_MAX_CHARS: Final = 1_000  # a longer text is no question for two things; looking takes its square


def split_question(question: str) -> tuple[str, ...]:
    """What a question asks for besides each other: 2 or 3 parts in order, or none for a single
    thing.
    """
    question = " ".join(question.split())  # runs of blanks took the cube of their length
    if len(question) > _MAX_CHARS:
        return ()
    clauses = [
        clause.strip(" ,.;?!")
        for sentence in _SENTENCE.split(question)
        for clause in _CLAUSE.split(sentence)
    ]
    asked = [
        clause
        for clause in clauses
        if _ASKS.match(clause) and _count_terms(clause) >= _CLAUSE_TERMS
    ]
    if len(asked) >= 2:
        return tuple(asked[:MAX_PARTS])
    for pattern in _PAIR:
        match = pattern.search(question.strip(" .?!"))
        if match is not None:
            pair = (match["one"].strip(" ,"), match["other"].strip(" ,"))
            if all(_count_terms(part) >= _PAIR_TERMS for part in pair):
                return pair
    return ()


def place_parts(
    chosen: Sequence[Ranked], parts: Sequence[Sequence[Ranked]], count: int
) -> list[Ranked]:
    """Give the best hit of each part a place behind the first three hits of the whole question.

    Args:
        chosen: Hits of the whole question, best first.
        parts: Hits of each part, best first; only those among the `PART_DEPTH` first of the
            whole question count.
        count: How many hits are wanted; the places do not depend on it.
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


def _count_terms(text: str) -> int:
    return len(set(extract_terms(text)))
