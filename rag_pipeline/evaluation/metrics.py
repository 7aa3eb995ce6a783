"""Ranking measures per question and per group of questions.

Belongs here: what rankings are worth. Does not belong here: what counts as a hit (matching), spans
of text (spans), tests of chance (significance).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import MissingDependencyError
from rag_pipeline.evaluation.significance import find_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from rag_pipeline.evaluation.matching import Ranking
    from rag_pipeline.evaluation.records import (
        Interval,
        QuestionResult,
        RetrievedChunk,
        Scores,
        Summary,
    )

SUCCESS: Final = "Success@5"
RECALL: Final = "recall@5"
NDCG: Final = "nDCG@10"
_MEASURES: Final = (SUCCESS, RECALL, "R@5", "P@5", "RR@10", NDCG)
CONTEXT_BUDGETS_TOKENS: Final = (1000, 2000)
_FLAG_BELOW: Final = 0.5  # recall@5; tasks.md T050


def score_rankings(rankings: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Success@5 (under its second name recall@5 too), R@5, P@5, RR@10 and nDCG@10 per question.

    Success, P and RR look at chunks: a chunk is relevant where it hits anything expected; with
    `all_of` Success needs a hit of each group. R and nDCG look at what is expected: a unit counts
    at the first chunk that hits it, a chunk counts for one unit, and its rank stays that of the
    chunk, so more chunks of a section found already earn nothing.

    Args:
        rankings: By question id, of answerable questions.

    Source:
        Measures: ir-measures. SC-001 calls Success@5 recall@5 (decision 8).
    """
    ir = _load_ir_measures()
    chunk_hits = {query_id: _list_chunk_hits(one) for query_id, one in rankings.items()}
    unit_hits = {query_id: _list_unit_hits(one) for query_id, one in rankings.items()}
    success = _score_success(rankings)
    scores = {
        query_id: dict.fromkeys(_MEASURES, 0.0) | {SUCCESS: value, RECALL: value}
        for query_id, value in success.items()
    }
    for measures, hits in (
        ((ir.P @ 5, ir.RR @ 10), chunk_hits),
        ((ir.R @ 5, ir.nDCG @ 10), unit_hits),
    ):
        for query_id, measure, value in _calculate(measures, rankings, hits):
            scores[query_id][measure] = value
    return scores


def score_budgets(ranking: Ranking, retrieved: Sequence[RetrievedChunk]) -> dict[str, float]:
    """Success within a context of 1,000 and of 2,000 tokens: as many whole chunks, best first, as
    fit.

    Small chunks and large ones compare fairly at an equal budget, not at an equal number.
    """
    sizes = np.cumsum([chunk.token_count for chunk in retrieved])
    return {
        name_budget(budget): float(ranking.succeeds(int((sizes <= budget).sum())))
        for budget in CONTEXT_BUDGETS_TOKENS
    }


def name_budget(tokens: int) -> str:
    """Name of the measure of success within a context of that many tokens."""
    return f"Success@{tokens}tok"


def is_flagged(scores: Scores) -> bool:
    """Whether recall@5 at document level is below 0.5 (FR of User Story 4)."""
    return scores.get("document", {}).get(RECALL, 1.0) < _FLAG_BELOW


def summarize(questions: Sequence[QuestionResult]) -> Summary:
    """Mean and interval of every measure over the answerable questions; empty for none."""
    scored = [question.scores for question in questions if question.scores]
    if not scored:
        return {}
    columns = [(level, measure) for level, values in scored[0].items() for measure in values]
    table = np.array([[scores[level][measure] for level, measure in columns] for scores in scored])
    summary: dict[str, dict[str, Interval]] = defaultdict(dict)
    for (level, measure), interval in zip(columns, find_intervals(table), strict=True):
        summary[level][measure] = interval
    return dict(summary)


def summarize_by(
    questions: Sequence[QuestionResult], names_of: Callable[[QuestionResult], Iterable[str]]
) -> dict[str, Summary]:
    """Summaries of groups in name order; a question may be in several groups."""
    groups: dict[str, list[QuestionResult]] = defaultdict(list)
    for question in questions:
        for name in names_of(question):
            groups[name].append(question)
    summaries = {name: summarize(groups[name]) for name in sorted(groups)}
    return {name: summary for name, summary in summaries.items() if summary}


def _list_chunk_hits(ranking: Ranking) -> list[str]:
    return [f"hit {rank}" if hit else f"miss {rank}" for rank, hit in enumerate(ranking.hits)]


def _list_unit_hits(ranking: Ranking) -> list[str]:
    found: list[str] = []
    for rank, hit in enumerate(ranking.hits):
        found.append(next((unit for unit in hit if unit not in found), f"miss {rank}"))
    return found


def _calculate(
    measures: Sequence[object],
    rankings: Mapping[str, Ranking],
    lists: Mapping[str, Sequence[str]],
) -> Iterable[tuple[str, str, float]]:
    ir = _load_ir_measures()
    relevant = {
        query_id: {*ranking.units, *(name for name in lists[query_id] if name.startswith("hit "))}
        for query_id, ranking in rankings.items()
    }
    qrels = [ir.Qrel(query, name, 1) for query, names in relevant.items() for name in names]
    run = [
        ir.ScoredDoc(query, name, -rank)
        for query, names in lists.items()
        for rank, name in enumerate(names)
    ]
    if not qrels:
        return
    for query_id, measure, value in ir.iter_calc(measures, qrels, run):
        yield query_id, str(measure), float(value)


def _score_success(rankings: Mapping[str, Ranking]) -> dict[str, float]:
    ir = _load_ir_measures()
    qrels, run = [], []
    owners: dict[str, str] = {}
    for query_id, ranking in rankings.items():
        for position, group in enumerate(ranking.groups):
            key = f"{position} {query_id}"
            owners[key] = query_id
            qrels.append(ir.Qrel(key, "never returned", 1))
            for rank, hit in enumerate(ranking.hits):
                qrels.append(ir.Qrel(key, str(rank), int(bool(group & set(hit)))))
                run.append(ir.ScoredDoc(key, str(rank), -rank))
    values = dict.fromkeys(rankings, 1.0)
    for key, _, value in ir.iter_calc([ir.Success @ 5], qrels, run) if qrels else ():
        values[owners[key]] = min(values[owners[key]], float(value))
    return values


def _load_ir_measures() -> ModuleType:
    try:
        import ir_measures  # noqa: PLC0415  # an extra that retrieval alone does not need
    except ImportError as error:
        raise MissingDependencyError("ir-measures", "pipeline") from error
    return ir_measures
