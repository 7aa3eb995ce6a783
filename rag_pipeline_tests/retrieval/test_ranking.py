"""Fusion and shown scores, tested with numbers computed by hand and with properties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import Channel
from rag_pipeline.core.text.terms import find_distinct_terms
from rag_pipeline.retrieval.choosing import arrange, select
from rag_pipeline.retrieval.ranking import (
    Candidate,
    Distribution,
    FusionWeights,
    Place,
    Ranked,
    favor_explaining,
    fit_weights,
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
    """Return a candidate whose `dense` and `windows` scores are both `cosine`."""
    section, text = section or f"{doc}#{number}", text or f"t{number}"
    place = Place(PointId(number), doc, section, number, text, bare_heading)
    return Candidate(place, cosine, cosine, bm25)


def rank(*candidates: Candidate) -> list[Ranked]:
    """Give the candidates the scores 1.0, 0.9, 0.8 and so on, in the given order."""
    return [Ranked(candidate, 1.0 - at / 10) for at, candidate in enumerate(candidates)]


def numbers(hits: list[Ranked]) -> list[int]:
    """Return the point ids of the hits, in order."""
    return [hit.candidate.place.point_id for hit in hits]


def never_near(one: Candidate, other: Candidate) -> bool:
    """Return False: no two candidates are near-duplicates."""
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


def test_the_mean_is_placed_at_one_half_and_three_deviations_above_it_at_1() -> None:
    described = Distribution.of([2.0, 4.0, 6.0, 8.0])
    assert described.mean == 5.0
    assert described.deviation == pytest.approx(math.sqrt(5.0))
    assert described.place([5.0, 5.0 + 3 * math.sqrt(5.0)]) == [0.5, pytest.approx(1.0)]


def test_scores_beyond_three_deviations_are_not_clamped() -> None:
    described = Distribution(0.0, 1.0)
    assert described.place([6.0, -6.0]) == [1.5, -0.5]


def test_bm25_counts_less_if_its_best_hit_covers_little_of_the_question() -> None:
    near, worded = (
        make_candidate(1, cosine=0.4, bm25=0.0),
        make_candidate(2, cosine=0.2, bm25=9.0),
    )
    weights = FusionWeights(0.3, 0.7, 0.0)
    for term_weight, best in ((0.0, 2), (9.0, 2), (20.0, 2), (60.0, 1), (1000.0, 1)):
        assert numbers(fuse([near, worded], weights, term_weight))[0] == best
    words_alone = FusionWeights(0.0, 1.0, 0.0)
    assert numbers(fuse([near, worded], words_alone, 1000.0))[0] == 2


def test_a_distribution_uses_only_the_hundred_best_scores() -> None:
    assert Distribution.of([*[1.0] * 100, *[-50.0] * 100]).mean == 1.0


def test_equal_scores_are_all_placed_at_one_half() -> None:
    assert Distribution.of([3.0, 3.0]).place([3.0, 4.0]) == [0.5, 0.5]
    assert Distribution.of([]).place([7.0]) == [0.5]


def test_a_hundred_copies_of_a_text_do_not_change_the_order_of_other_texts() -> None:
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


def test_fusion_adds_the_normalized_scores_of_both_channels() -> None:
    # Cosines 0.2 and 0.4 have mean 0.3 and deviation 0.1, so they are placed at 1/3 and 2/3.
    # BM25 scores 0 and 10 are placed at 1/3 and 2/3 too.
    hits = fuse(
        [make_candidate(1, cosine=0.2, bm25=10.0), make_candidate(2, cosine=0.4, bm25=10.0),
         make_candidate(3, cosine=0.4, bm25=0.0), make_candidate(4, cosine=0.2, bm25=0.0)],
        NO_DOCUMENT,
    )  # fmt: skip
    assert numbers(hits) == [2, 1, 3, 4]
    assert [hit.score for hit in hits] == pytest.approx([2 / 3, 1 / 2, 1 / 2, 1 / 3])


def test_each_hit_gets_a_share_of_the_mean_of_its_documents_three_best() -> None:
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


def test_ties_are_ordered_by_document_and_position() -> None:
    tied = [
        make_candidate(9, doc="b.md", cosine=0.3),
        make_candidate(7, doc="a.md", cosine=0.3),
        make_candidate(5, doc="b.md", cosine=0.3),
    ]
    assert numbers(fuse(tied, NO_DOCUMENT)) == [7, 5, 9]
    assert numbers(fuse(tied[::-1], NO_DOCUMENT)) == [7, 5, 9]


def test_shown_scores_start_at_the_nearest_cosine_and_never_rise() -> None:
    hits = rank(make_candidate(1), make_candidate(2), make_candidate(3))
    assert scale_scores(hits, 0.8) == pytest.approx([0.8, 0.72, 0.64])
    assert scale_scores(hits, -0.2) == [0.0, 0.0, 0.0]
    assert scale_scores([], 0.5) == []


def test_a_hit_that_is_chosen_late_is_never_shown_above_the_hit_before_it() -> None:
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


@given(
    st.lists(st.tuples(st.integers(-99, 99), st.integers(0, 99)), max_size=99, unique=True),
    st.integers(0, 99),
)
def test_far_points_count_in_the_distributions_like_candidates(
    rows: list[tuple[int, int]], near: int
) -> None:
    """The estimated window scores are exact here, because the windows equal the dense scores."""
    rows = list({cosine: (cosine, bm25) for cosine, bm25 in rows}.values())
    rows = list({bm25: (cosine, bm25) for cosine, bm25 in rows}.values())
    candidates = [
        make_candidate(at, doc=f"d{at}.md", text=f"t{at}", cosine=cosine / 100, bm25=float(bm25))
        for at, (cosine, bm25) in enumerate(rows)
    ]
    own, others = candidates[:near], candidates[near:]
    if len({candidate.dense for candidate in own}) < 2:
        return
    far = {
        Channel.DENSE: [candidate.dense for candidate in others],
        Channel.BM25: [candidate.bm25 for candidate in others],
    }
    whole = {hit.candidate.place.point_id: hit.score for hit in fuse(candidates, NO_DOCUMENT)}
    for hit in fuse(own, NO_DOCUMENT, far=far):
        assert hit.score == pytest.approx(whole[hit.candidate.place.point_id])


@given(candidates_lists, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_candidates(
    candidates: list[Candidate], random: object
) -> None:
    shuffled = list(candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis passes a random.Random
    assert fuse(candidates, FusionWeights()) == fuse(shuffled, FusionWeights())


@given(candidates_lists, st.integers(1, 12), st.floats(-1, 1))
def test_shown_scores_are_from_0_to_1_and_never_rise(
    candidates: list[Candidate], count: int, nearest: float
) -> None:
    shown = scale_scores(choose(fuse(candidates, FusionWeights()), count), nearest)
    assert all(0.0 <= score <= 1.0 for score in shown)
    assert shown == sorted(shown, reverse=True)


def make_section(number: int, path: str, heading: str, words: int = 100) -> Ranked:
    """Return a hit with the score 0.5 of a section below a title and headings."""
    candidate = make_candidate(number)
    place = replace(
        candidate.place,
        word_count=words,
        path_terms=find_distinct_terms(f"{path} {heading}"),
        heading_terms=find_distinct_terms(heading),
    )
    return Ranked(replace(candidate, place=place), 0.5)


def test_a_section_about_the_subject_comes_before_one_that_only_mentions_it() -> None:
    terms = {"friction": 3.0, "cone": 3.0}
    echoing = make_section(1, "Syllabus", "Lessons")
    longer = make_section(2, "Contact", "Friction cone and other shapes")
    named = make_section(3, "Contact", "Friction cone")
    assert numbers(favor_explaining([echoing, longer, named], terms)) == [3, 2, 1]


def test_a_text_comes_before_a_stub_of_the_same_score() -> None:
    stub, text = (make_section(at, "Guide", "Start", words) for at, words in ((1, 8), (2, 200)))
    assert numbers(favor_explaining([stub, text], {"robot": 2.0})) == [2, 1]


def test_the_docs_come_before_a_post_of_a_blog_about_the_same() -> None:
    post, page = (make_section(at, "Release 2", "Friction cone").candidate for at in (1, 2))
    post = replace(post, place=replace(post.place, is_post=True))
    terms = {"friction": 3.0, "cone": 3.0}
    assert numbers(favor_explaining([Ranked(post, 0.6), Ranked(page, 0.5)], terms)) == [2, 1]
    assert numbers(favor_explaining([Ranked(post, 0.7), Ranked(page, 0.5)], terms)) == [1, 2]


def test_a_question_without_terms_keeps_the_order() -> None:
    hits = rank(make_candidate(2), make_candidate(1))
    assert favor_explaining(hits, {}) == hits


def test_a_much_nearer_passage_stays_first_whatever_the_headings_say() -> None:
    near = Ranked(make_section(1, "Syllabus", "Lessons").candidate, 1.0)
    named = make_section(2, "Contact", "Friction cone")
    assert numbers(favor_explaining([near, named], {"friction": 3.0, "cone": 3.0})) == [1, 2]


@pytest.mark.parametrize(
    ("model", "terms", "semantic"),
    [
        ("local/minilm/384/254/4", ["\u5438\u76e4", "\u4ea4\u63db", "ros2"], 0.2),
        ("local/minilm/384/254/4", ["gr\u00f6\u00dfe", "motor"], 0.8),
        ("local/minilm/384/254/4", [], 0.8),
        ("openai/text-embedding-3-small/1536/8191/0", ["\u5438\u76e4", "\u4ea4\u63db"], 0.8),
    ],
)
def test_words_weigh_more_in_a_script_that_the_local_model_does_not_know(
    model: str, terms: list[str], semantic: float
) -> None:
    fitted = fit_weights(FusionWeights(), model, terms)
    assert fitted.semantic == pytest.approx(semantic)
    assert fitted.semantic + fitted.bm25 == pytest.approx(1)
