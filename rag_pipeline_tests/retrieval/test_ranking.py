"""Fusion and shown scores, by numbers worked by hand and by properties."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.ids import PointId
from rag_pipeline.retrieval.choosing import arrange, select
from rag_pipeline.retrieval.ranking import (
    Candidate,
    Distribution,
    FusionWeights,
    Place,
    Ranked,
    fuse,
    scale_scores,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NO_DOCUMENT = FusionWeights(0.5, 0.5, 0.0)


def make_candidate(
    number: int,
    *,
    doc: str = "a.md",
    section: str | None = None,
    text: str | None = None,
    cosine: float = 0.0,
    bm25: float = 0.0,
    bare_heading: str | None = None,
) -> Candidate:
    section, text = section or f"{doc}#{number}", text or f"t{number}"
    place = Place(PointId(number), doc, section, number, text, bare_heading)
    return Candidate(place, cosine, cosine, bm25)


def rank(*candidates: Candidate) -> list[Ranked]:
    return [Ranked(candidate, 1.0 - at / 10) for at, candidate in enumerate(candidates)]


def numbers(hits: list[Ranked]) -> list[int]:
    return [hit.candidate.place.point_id for hit in hits]


def never_near(one: Candidate, other: Candidate) -> bool:
    del one, other
    return False


def choose(
    ranked: list[Ranked],
    count: int,
    is_near: Callable[[Candidate, Candidate], bool] = never_near,
    terms: frozenset[str] = frozenset(),
) -> list[Ranked]:
    passages, bare = arrange(ranked, terms)
    return select(bare, count, is_near, select(passages, count, is_near))


def test_a_distribution_places_its_mean_at_half_and_three_deviations_above_at_one() -> None:
    described = Distribution.of([2.0, 4.0, 6.0, 8.0])
    assert described.mean == 5.0
    assert described.deviation == pytest.approx(math.sqrt(5.0))
    assert described.place(5.0) == 0.5
    assert described.place(5.0 + 3 * math.sqrt(5.0)) == pytest.approx(1.0)


def test_places_beyond_three_deviations_are_not_clamped() -> None:
    described = Distribution(0.0, 1.0)
    assert described.place(6.0) == 1.5
    assert described.place(-6.0) == -0.5


def test_bm25_counts_by_how_much_of_the_question_its_best_hit_covers() -> None:
    near, worded = (
        make_candidate(1, cosine=0.4, bm25=0.0),
        make_candidate(2, cosine=0.2, bm25=9.0),
    )
    weights = FusionWeights(0.3, 0.7, 0.0)
    for term_weight, best in ((0.0, 2), (9.0, 2), (20.0, 2), (60.0, 1), (1000.0, 1)):
        assert numbers(fuse([near, worded], weights, term_weight))[0] == best
    words_alone = FusionWeights(0.0, 1.0, 0.0)
    assert numbers(fuse([near, worded], words_alone, 1000.0))[0] == 2


def test_only_the_hundred_best_scores_describe_a_retriever() -> None:
    assert Distribution.of([*[1.0] * 100, *[-50.0] * 100]).mean == 1.0


def test_equal_scores_tell_nothing_apart() -> None:
    assert Distribution.of([3.0, 3.0]).place(3.0) == 0.5
    assert Distribution.of([]).place(7.0) == 0.5


def test_a_hundred_copies_of_a_text_leave_the_others_their_order() -> None:
    copies = [
        make_candidate(at, doc=f"c{at}.md", text="same", cosine=0.9, bm25=20.0) for at in range(120)
    ]
    others = [
        make_candidate(200 + at, doc=f"d{at}.md", cosine=0.1 * at, bm25=at) for at in range(1, 5)
    ]
    ranked = fuse([*copies, *others], FusionWeights())
    assert numbers(ranked[120:]) == [204, 203, 202, 201]
    shown = scale_scores(choose(ranked, 5), 0.9)
    assert shown == sorted(set(shown), reverse=True)
    assert shown[-1] > 0.0


def test_fusion_adds_both_placed_scores() -> None:
    # cosines 0.2, 0.4: mean 0.3, deviation 0.1, so they stand at 1/3 and 2/3; BM25 0, 10 likewise
    hits = fuse(
        [make_candidate(1, cosine=0.2, bm25=10.0), make_candidate(2, cosine=0.4, bm25=10.0),
         make_candidate(3, cosine=0.4, bm25=0.0), make_candidate(4, cosine=0.2, bm25=0.0)],
        NO_DOCUMENT,
    )  # fmt: skip
    assert numbers(hits) == [2, 1, 3, 4]
    assert [hit.score for hit in hits] == pytest.approx([2 / 3, 1 / 2, 1 / 2, 1 / 3])


def test_a_document_lifts_its_hits_by_the_mean_of_its_three_best() -> None:
    candidates = [
        make_candidate(1, doc="a.md", cosine=0.4),
        make_candidate(2, doc="a.md", cosine=0.4),
        make_candidate(3, doc="b.md", cosine=0.4),
        make_candidate(4, doc="b.md", cosine=0.2),
        make_candidate(5, doc="a.md", cosine=0.2),
        make_candidate(6, doc="a.md", cosine=0.2),
    ]
    own = {hit.candidate.place.point_id: hit.score for hit in fuse(candidates, NO_DOCUMENT)}
    lifted = {
        hit.candidate.place.point_id: hit.score
        for hit in fuse(candidates, FusionWeights(0.5, 0.5, 0.2))
    }
    best_of_a = (own[1] + own[2] + own[5]) / 3
    assert lifted[1] == pytest.approx(own[1] + 0.2 * best_of_a)
    assert lifted[3] == pytest.approx(own[3] + 0.2 * (own[3] + own[4]) / 2)


def test_ties_go_by_document_and_position_whatever_the_order_of_candidates() -> None:
    tied = [
        make_candidate(9, doc="b.md", cosine=0.3),
        make_candidate(7, doc="a.md", cosine=0.3),
        make_candidate(5, doc="b.md", cosine=0.3),
    ]
    assert numbers(fuse(tied, NO_DOCUMENT)) == [7, 5, 9]
    assert numbers(fuse(tied[::-1], NO_DOCUMENT)) == [7, 5, 9]


def test_shown_scores_begin_at_the_nearest_cosine_and_never_rise() -> None:
    hits = rank(make_candidate(1), make_candidate(2), make_candidate(3))
    assert scale_scores(hits, 0.8) == pytest.approx([0.8, 0.72, 0.64])
    assert scale_scores(hits, -0.2) == [0.0, 0.0, 0.0]
    assert scale_scores([], 0.5) == []


def test_a_hit_that_fills_up_late_never_scores_above_the_one_before() -> None:
    hits = rank(make_candidate(1), make_candidate(2), make_candidate(3))
    late = [hits[0], hits[2], hits[1]]
    assert scale_scores(late, 1.0) == pytest.approx([1.0, 0.8, 0.8])


scores = st.floats(min_value=-1.0, max_value=1.0, width=32)
candidates_lists = st.lists(
    st.tuples(
        scores,
        st.floats(min_value=0, max_value=40, width=32),
        st.integers(0, 4),
        st.integers(0, 6),
        st.integers(0, 12),
    ),
    max_size=40,
).map(
    lambda rows: [
        make_candidate(
            number,
            doc=f"d{doc}.md",
            section=f"d{doc}#{section}",
            text=f"t{text}",
            cosine=cosine,
            bm25=bm25,
        )
        for number, (cosine, bm25, doc, section, text) in enumerate(rows)
    ]
)


@given(candidates_lists, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_candidates(
    candidates: list[Candidate], random: object
) -> None:
    shuffled = list(candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis gives a random.Random
    assert fuse(candidates, FusionWeights()) == fuse(shuffled, FusionWeights())


@given(candidates_lists, st.integers(1, 12), st.floats(-1, 1))
def test_shown_scores_keep_their_bounds(
    candidates: list[Candidate], count: int, nearest: float
) -> None:
    shown = scale_scores(choose(fuse(candidates, FusionWeights()), count), nearest)
    assert all(0.0 <= score <= 1.0 for score in shown)
    assert shown == sorted(shown, reverse=True)
