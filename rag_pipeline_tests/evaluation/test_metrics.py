"""Ranking measures: worked examples, and equality with ir-measures and with the formulas."""

from __future__ import annotations

import math
import random
from pathlib import Path

import ir_measures
import pytest
from ir_measures import RR, P, R, Success, nDCG

from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery, GoldenSet
from rag_pipeline.evaluation.metrics import (
    DOCUMENT,
    SECTION,
    Ranking,
    rank_hits,
    score_budgets,
    score_rankings,
)
from rag_pipeline.evaluation.records import RetrievedChunk, hits_section


def make_chunk(doc_path: str, *headings: str, tokens: int = 100) -> RetrievedChunk:
    breadcrumb = headings or ("Title",)
    chunk_id = f"{doc_path}{headings}"
    return RetrievedChunk(chunk_id, doc_path, breadcrumb[-1], breadcrumb, 0.5, tokens, "")


def ask(*expected: tuple[str, str] | tuple[str, str, str], all_of: bool = False) -> GoldenQuery:
    return GoldenQuery(
        "q", "?", tuple(ExpectedSection(*one) for one in expected), "fact", all_of=all_of
    )


def score(query: GoldenQuery, chunks: list[RetrievedChunk], level: str) -> dict[str, float]:
    return score_rankings({query.id: rank_hits(query, chunks, level)})[query.id]


A1 = make_chunk("a.md", "A", "One")
A1_DEEP = make_chunk("a.md", "A", "One", "Deep")
A2 = make_chunk("a.md", "A", "Two")
B1 = make_chunk("b.md", "B", "One")
LEAD = make_chunk("a.md", "A")
OTHERS = [make_chunk(f"x{number}.md", "X", "Y") for number in range(20)]


@pytest.mark.parametrize(
    ("chunk", "expected", "hits"),
    [
        (A1, ("a.md", "One"), True),
        (A1_DEEP, ("a.md", "One"), True),
        (A1_DEEP, ("a.md", "Deep"), True),
        (A1, ("a.md", "Deep"), False),
        (A2, ("a.md", "One"), False),
        (B1, ("a.md", "One"), False),
        (LEAD, ("a.md", "A"), True),
        (A1, ("a.md", "A"), False),
    ],
    ids=[
        "same section",
        "below it",
        "itself, deep",
        "above it",
        "beside it",
        "same heading, other page",
        "text before the first heading",
        "the title is not the whole page",
    ],
)
def test_a_chunk_hits_its_own_section_and_those_above_it(
    chunk: RetrievedChunk, expected: tuple[str, str], *, hits: bool
) -> None:
    assert hits_section(chunk, ExpectedSection(*expected)) is hits


def test_the_measures_of_a_right_section_at_rank_two() -> None:
    values = score(ask(("a.md", "One")), [OTHERS[0], A1, A1, B1], SECTION)
    assert values == {
        "Success@5": 1.0,
        "recall@5": 1.0,
        "R@5": 1.0,
        "P@5": 0.4,
        "RR@10": 0.5,
        "nDCG@10": pytest.approx(1 / math.log2(3)),
    }


def test_a_second_chunk_of_a_section_finds_nothing_new() -> None:
    query = ask(("a.md", "One"), ("b.md", "One"))
    values = score(query, [A1, A1_DEEP, A1, A1, A1, B1], SECTION)
    assert values["R@5"] == 0.5
    assert values["P@5"] == 1.0
    ideal = 1 + 1 / math.log2(3)
    assert values["nDCG@10"] == pytest.approx((1 + 1 / math.log2(7)) / ideal)


def test_a_chunk_counts_for_the_section_it_hits_most_exactly() -> None:
    query = ask(("a.md", "One"), ("a.md", "Deep"))
    assert score(query, [A1_DEEP, A1], SECTION)["R@5"] == 1.0
    assert score(query, [A1_DEEP], SECTION)["R@5"] == 0.5


def test_the_page_counts_at_document_level_whatever_the_section() -> None:
    query = ask(("a.md", "One"), ("a.md", "Two"))
    assert score(query, [LEAD], DOCUMENT)["R@5"] == 1.0
    assert score(query, [LEAD], SECTION)["Success@5"] == 0.0


def test_rank_five_is_in_and_rank_six_is_out() -> None:
    query = ask(("a.md", "One"))
    assert score(query, [*OTHERS[:4], A1], SECTION)["recall@5"] == 1.0
    sixth = score(query, [*OTHERS[:5], A1], SECTION)
    assert sixth["recall@5"] == 0.0
    assert sixth["RR@10"] == pytest.approx(1 / 6)
    assert score(query, [*OTHERS[:10], A1], SECTION)["RR@10"] == 0.0


def test_a_question_without_retrieved_chunks_scores_zero() -> None:
    assert set(score(ask(("a.md", "One")), [], SECTION).values()) == {0.0}


def test_all_of_needs_a_hit_of_each_group() -> None:
    query = ask(("a.md", "One", "x"), ("a.md", "Two", "x"), ("b.md", "One", "y"), all_of=True)
    assert score(query, [A1, A2], SECTION)["Success@5"] == 0.0
    assert score(query, [A2, B1], SECTION)["Success@5"] == 1.0
    assert score(query, [A2, *OTHERS[:4], B1], SECTION)["Success@5"] == 0.0
    assert score(query, [LEAD, make_chunk("b.md", "B")], DOCUMENT)["Success@5"] == 1.0


def test_all_of_without_groups_needs_each_section() -> None:
    query = ask(("a.md", "One"), ("a.md", "Two"), all_of=True)
    assert score(query, [A1, OTHERS[0]], SECTION)["Success@5"] == 0.0
    assert score(query, [A1, A2], SECTION)["Success@5"] == 1.0
    assert score(query, [A1], DOCUMENT)["Success@5"] == 1.0


def test_a_budget_takes_whole_chunks_while_they_fit() -> None:
    query = ask(("a.md", "One"))
    big = make_chunk("x.md", "X", tokens=800)
    exact = make_chunk("a.md", "A", "One", tokens=200)
    over = make_chunk("a.md", "A", "One", tokens=201)

    def budgets(chunks: list[RetrievedChunk]) -> list[float]:
        return list(score_budgets(rank_hits(query, chunks, SECTION), chunks).values())

    assert budgets([big, exact]) == [1.0, 1.0]
    assert budgets([big, over]) == [0.0, 1.0]
    assert budgets([big, big, big, exact]) == [0.0, 0.0]
    assert budgets([over, big]) == [1.0, 1.0]
    assert budgets([]) == [0.0, 0.0]


def make_random_ranking(rng: random.Random) -> Ranking:
    units = tuple(f"unit {number}" for number in range(rng.randint(1, 4)))
    hits = tuple(
        (rng.choice(units),) if rng.random() < 0.3 else () for _ in range(rng.randint(0, 20))
    )
    return Ranking(units, hits, (frozenset(units),))


def read_oracle(rankings: dict[str, Ranking]) -> dict[str, dict[str, float]]:
    """Return the values that ir-measures computes, by question and measure, as a reference."""
    oracle: dict[str, dict[str, float]] = {query: {} for query in rankings}
    for novel, measures in ((False, [Success @ 5, P @ 5, RR @ 10]), (True, [R @ 5, nDCG @ 10])):
        qrels, run = [], []
        for query, ranking in rankings.items():
            seen: set[str] = set()
            qrels += [ir_measures.Qrel(query, unit, 1) for unit in ranking.units]
            for rank, hit in enumerate(ranking.hits):
                name = hit[0] if hit else f"other {rank}"
                if name in seen:
                    name = f"again {rank}"
                    qrels.append(ir_measures.Qrel(query, name, 0 if novel else 1))
                seen.add(name)
                run.append(ir_measures.ScoredDoc(query, name, 100.0 - rank))
        for metric in ir_measures.iter_calc(measures, qrels, run):
            oracle[metric.query_id][str(metric.measure)] = metric.value
    return oracle


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_ir_measures_on_random_runs(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # no secret
    rankings = {f"q{number}": make_random_ranking(rng) for number in range(40)}
    scores = score_rankings(rankings)
    oracle = read_oracle(rankings)
    for query, values in scores.items():
        assert values.pop("recall@5") == values["Success@5"]
        assert values == pytest.approx(oracle[query])


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_their_formulas_on_random_runs(seed: int) -> None:
    rng = random.Random(100 + seed)  # noqa: S311  # no secret
    ranking = make_random_ranking(rng)
    values = score_rankings({"q": ranking})["q"]
    relevant = [bool(hit) for hit in ranking.hits]
    first: list[bool] = []
    for at, hit in enumerate(ranking.hits):
        first.append(bool(hit) and hit not in ranking.hits[:at])
    gains = sum(1 / math.log2(rank + 1) for rank, new in enumerate(first[:10], 1) if new)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, len(ranking.units) + 1))
    assert values["Success@5"] == float(any(relevant[:5]))
    assert values["P@5"] == pytest.approx(sum(relevant[:5]) / 5)
    assert values["R@5"] == pytest.approx(sum(first[:5]) / len(ranking.units))
    assert values["RR@10"] == pytest.approx(
        next((1 / rank for rank, hit in enumerate(relevant[:10], 1) if hit), 0.0)
    )
    assert values["nDCG@10"] == pytest.approx(gains / ideal)


def test_no_question_gives_no_values() -> None:
    assert score_rankings({}) == {}
    assert GoldenSet(Path("empty.json"), ()).queries == ()
