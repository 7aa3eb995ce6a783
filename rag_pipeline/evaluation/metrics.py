"""Measures of a ranking: by rank, and within a number of tokens."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.evaluation.measures import Interval, find_intervals
from rag_pipeline.evaluation.records import hits_section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery
    from rag_pipeline.evaluation.records import (
        Place,
        QuestionResult,
        RetrievedChunk,
        Summary,
    )


DOCUMENT: Final = "document"
SECTION: Final = "section"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The retrieved chunks of one question, compared with the expected documents or sections.

    An expected document or section is called a unit here.

    Attributes:
        units: Key of each expected unit, without repetition.
        hits: For each retrieved chunk, best first, the keys of the units that it belongs to. The
            unit with the chunk's own heading comes before the units of the sections around it.
        groups: Sets of unit keys. The question succeeds if a unit of each set is found.
    """

    units: tuple[str, ...]
    hits: tuple[tuple[str, ...], ...]
    groups: tuple[frozenset[str], ...]

    def succeeds(self, depth: int) -> bool:
        """Return True if the first `depth` chunks hit at least one unit of each group."""
        found = {unit for hit in self.hits[:depth] for unit in hit}
        return all(group & found for group in self.groups)


def rank_hits(query: GoldenQuery, places: Sequence[Place], level: str) -> Ranking:
    """Compare retrieved chunks with the documents or sections that a question expects.

    Args:
        query: A question with at least one expected section.
        places: Locations of the retrieved chunks, best first.
        level: DOCUMENT to compare only documents, SECTION to compare sections.
    """
    keys = {
        one: one.doc_path if level == DOCUMENT else f"{one.doc_path}#{one.section_heading}"
        for one in query.expected
    }
    hits = tuple(
        tuple(
            dict.fromkeys(
                keys[section]
                for section in sorted(
                    query.expected, key=lambda one: one.section_heading != place.section_heading
                )
                if (
                    place.doc_path == section.doc_path
                    if level == DOCUMENT
                    else hits_section(place, section)
                )
            )
        )
        for place in places
    )
    return Ranking(tuple(dict.fromkeys(keys.values())), hits, _group_units(query, keys))


def _group_units(
    query: GoldenQuery, keys: Mapping[ExpectedSection, str]
) -> tuple[frozenset[str], ...]:
    """Return the groups of expected units; a question succeeds if a unit of each group is found.

    Normally all units form one group. With `all_of`, sections with the same group name form one
    group, and each unit without a group name forms its own group.
    """
    groups: dict[tuple[str | None, str], set[str]] = {}
    for section, key in keys.items():
        name = (section.group, "" if section.group else key) if query.all_of else (None, "")
        groups.setdefault(name, set()).add(key)
    return tuple(frozenset(units) for units in groups.values())


SUCCESS: Final = "Success@5"
RECALL: Final = "recall@5"
NDCG: Final = "nDCG@10"
_MEASURES: Final = (SUCCESS, RECALL, "R@5", "P@5", "RR@10", NDCG)
CONTEXT_BUDGETS_TOKENS: Final = (1000, 2000)
_DEPTH: Final = 5  # number of best chunks that most measures look at


def score_rankings(rankings: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Compute Success@5 (also named recall@5), R@5, P@5, RR@10 and nDCG@10 of each question.

    Success, P (precision) and RR (reciprocal rank) count chunks: a chunk is relevant if it belongs
    to any expected document or section. For an `all_of` question, Success needs a hit in each
    group. R (recall) and nDCG count expected documents or sections: each counts at the rank of the
    first chunk that finds it, and each chunk counts for at most one. Further chunks of a section
    that was already found add nothing.

    Args:
        rankings: Rankings of answerable questions, by question id.

    Returns:
        Values from 0 to 1, by question id and name of the measure.

    Source:
        The measures are those of ir-measures. The specification's SC-001 calls Success@5 recall@5
        (ADR 9).
    """
    import ir_measures as ir  # noqa: PLC0415  # only the `pipeline` extra has it

    scores = {
        query_id: dict.fromkeys(_MEASURES, 0.0)
        | dict.fromkeys((SUCCESS, RECALL), float(ranking.succeeds(_DEPTH)))
        for query_id, ranking in rankings.items()
    }
    for list_hits, measures in (
        (_list_chunk_hits, (ir.P @ 5, ir.RR @ 10)),
        (_list_unit_hits, (ir.R @ 5, ir.nDCG @ 10)),
    ):
        qrels, run = [], []
        for query_id, ranking in rankings.items():
            names = list_hits(ranking)
            relevant = {*ranking.units, *(name for name in names if name.startswith("hit "))}
            qrels += [ir.Qrel(query_id, name, 1) for name in relevant]
            run += [ir.ScoredDoc(query_id, name, -rank) for rank, name in enumerate(names)]
        for query_id, measure, value in ir.iter_calc(measures, qrels, run) if qrels else ():
            scores[query_id][str(measure)] = float(value)
    return scores


def _list_chunk_hits(ranking: Ranking) -> list[str]:
    return [f"hit {rank}" if hit else f"miss {rank}" for rank, hit in enumerate(ranking.hits)]


def _list_unit_hits(ranking: Ranking) -> list[str]:
    found: list[str] = []
    for rank, hit in enumerate(ranking.hits):
        found.append(next((unit for unit in hit if unit not in found), f"miss {rank}"))
    return found


def score_budgets(ranking: Ranking, retrieved: Sequence[RetrievedChunk]) -> dict[str, float]:
    """Compute a question's success within the first 1,000 and the first 2,000 tokens of chunks.

    A budget is filled with whole chunks, best first, until the next chunk does not fit. Small and
    large chunks are compared fairly at equal numbers of tokens, not of chunks.

    Returns:
        1.0 for success and 0.0 otherwise, by the name of the measure (`Success@1000tok`).
    """
    sizes = np.cumsum([chunk.token_count for chunk in retrieved])
    return {
        name_budget(budget): float(ranking.succeeds(int((sizes <= budget).sum())))
        for budget in CONTEXT_BUDGETS_TOKENS
    }


def name_budget(tokens: int) -> str:
    """Return the name of the measure of success within a number of tokens: `Success@1000tok`."""
    return f"Success@{tokens}tok"


def summarize(questions: Sequence[QuestionResult]) -> Summary:
    """Compute the mean and 95% interval of every measure over the answerable questions.

    Returns:
        Intervals by level and measure; empty if no question is answerable.
    """
    scored = [question.scores for question in questions if question.scores]
    if not scored:
        return {}
    columns = [(level, measure) for level, values in scored[0].items() for measure in values]
    table = np.array([[scores[level][measure] for level, measure in columns] for scores in scored])
    summary: dict[str, dict[str, Interval]] = defaultdict(dict)
    for (level, measure), interval in zip(columns, find_intervals(table), strict=True):
        summary[level][measure] = interval
    return dict(summary)
