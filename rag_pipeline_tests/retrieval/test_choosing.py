"""Choosing hits from ranked candidates: sections, near-duplicates and parts of a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.retrieval.choosing import (
    CROWDING,
    FIRST_PLACE,
    PART_DEPTH,
    arrange,
    find_scale,
    place_parts,
    select,
)
from rag_pipeline.retrieval.ranking import Candidate, FusionWeights, Ranked, fuse, scale_scores
from rag_pipeline_tests.retrieval.test_ranking import (
    candidates_lists,
    choose,
    make_candidate,
    never_near,
    numbers,
    rank,
)


def test_each_section_gives_one_hit_before_any_section_gives_a_second() -> None:
    hits = rank(
        make_candidate(1, section="s"),
        make_candidate(2, section="s"),
        make_candidate(3, section="u"),
    )
    assert numbers(choose(hits, 2)) == [1, 3]
    assert numbers(choose(hits, 3)) == [1, 3, 2]


def test_the_third_section_of_a_document_needs_a_lead_over_other_documents() -> None:
    near, far = CROWDING - 0.01, CROWDING + 0.01
    for gap, expected in ((near, [1, 2, 4, 3]), (far, [1, 2, 3, 4])):
        of_a = [Ranked(make_candidate(at, doc="a.md", section=f"a{at}"), 1.0) for at in (1, 2, 3)]
        of_b = Ranked(make_candidate(4, doc="b.md", section="b"), 1.0 - gap)
        assert numbers(arrange([*of_a, of_b])[0]) == expected


def test_the_penalty_grows_with_each_further_section_of_a_document() -> None:
    of_a = [Ranked(make_candidate(at, doc="a.md", section=f"a{at}"), 1.0) for at in range(1, 5)]
    of_b = Ranked(make_candidate(9, doc="b.md", section="b"), 1.0 - 1.5 * CROWDING)
    assert numbers(arrange([*of_a, of_b])[0]) == [1, 2, 3, 9, 4]


def test_a_heading_without_text_comes_last_unless_the_question_names_it() -> None:
    hits = rank(
        make_candidate(1, section="s", bare_heading="Backlash in gears"),
        make_candidate(2, section="u"),
        make_candidate(3, section="u"),
    )
    assert numbers(choose(hits, 2)) == [2, 3]
    assert numbers(choose(hits, 3)) == [2, 3, 1]
    for question, first in (("gear backlash", 1), ("gear backlash noise", 2), ("how", 2)):
        terms = frozenset(extract_terms(question))
        assert numbers(choose(hits, 3, terms=terms))[0] == first


def test_an_equal_text_is_chosen_once_and_the_next_hit_takes_its_place() -> None:
    hits = rank(make_candidate(1, text="same"), make_candidate(2, text="same"), make_candidate(3))
    assert numbers(choose(hits, 2)) == [1, 3]


def test_a_near_duplicate_is_replaced_by_the_next_hit() -> None:
    def first_two_are_near(one: Candidate, other: Candidate) -> bool:
        return {one.place.point_id, other.place.point_id} == {1, 2}

    hits = rank(make_candidate(1), make_candidate(2), make_candidate(3))
    assert numbers(choose(hits, 2, first_two_are_near)) == [1, 3]


def test_hits_chosen_before_keep_their_places_and_are_not_chosen_again() -> None:
    one, other, third = (make_candidate(number, text=f"t{number % 2}") for number in (1, 2, 3))
    before = choose(rank(one), 1)
    assert numbers(select(rank(other, third, one), 3, never_near, before)) == [1, 2]
    assert numbers(select(rank(other), 3, lambda *_: True, before)) == [1]


def test_no_hit_is_taken_that_is_not_needed() -> None:
    arranged = iter(rank(make_candidate(1), make_candidate(2), make_candidate(3)))
    chosen = select(arranged, 2, never_near)
    assert select(arranged, 2, never_near, chosen) == chosen
    assert numbers([*arranged]) == [3]


def test_scores_of_a_wider_search_are_scaled_to_the_score_of_the_first_hit() -> None:
    first, other = make_candidate(1), make_candidate(2)
    wider = [Ranked(first, 1.2), Ranked(other, 0.3)]
    assert find_scale([Ranked(first, 0.6)], wider) == pytest.approx(0.5)
    assert find_scale([], wider) == 1.0
    deleted = Ranked(make_candidate(3), 0.6)  # deleted between the two searches
    assert find_scale([deleted], wider) == 1.0


def test_the_best_hit_of_each_part_follows_the_first_three_hits() -> None:
    hits = [make_candidate(number) for number in range(1, 11)]
    whole = rank(*hits)
    parts = [rank(hits[0], hits[8]), rank(hits[6], hits[7])]
    # The best hit of the first part is already among the first three; that of the second moves up.
    assert numbers(place_parts(whole, parts, 5)) == [1, 2, 3, 7, 4]


def test_hits_of_parts_are_the_same_when_more_hits_are_wanted() -> None:
    hits = [make_candidate(number) for number in range(PART_DEPTH + 5)]
    parts = [rank(hits[-1], hits[9])]
    for count in (5, len(hits)):
        assert numbers(place_parts(rank(*hits), parts, count))[:5] == [0, 1, 2, 9, 3]


def test_a_part_adds_no_hit_that_the_whole_question_did_not_find() -> None:
    whole = rank(*(make_candidate(number) for number in range(1, 6)))
    assert numbers(place_parts(whole, [rank(make_candidate(99))], 5)) == [1, 2, 3, 4, 5]


@given(st.permutations(range(1, 13)), st.integers(1, 12))
def test_the_order_of_hits_does_not_depend_on_the_number_of_results(
    order: list[int], count: int
) -> None:
    hits = {number: make_candidate(number) for number in range(1, 13)}
    whole = rank(*(hits[number] for number in range(1, 13)))
    part = rank(*(hits[number] for number in order))
    few, many = place_parts(whole, [part], count), place_parts(whole, [part], 12)
    assert numbers(few) == numbers(many)[:count]
    assert sorted(numbers(many)) == list(range(1, 13))
    assert numbers(many)[:FIRST_PLACE] == [1, 2, 3]


@given(candidates_lists, st.integers(1, 12))
def test_as_many_hits_are_chosen_as_there_are_distinct_texts(
    candidates: list[Candidate], count: int
) -> None:
    ranked = fuse(candidates, FusionWeights())
    chosen = choose(ranked, count)
    texts = [hit.candidate.place.content_hash for hit in chosen]
    assert len(set(texts)) == len(texts)
    assert len(chosen) == min(count, len({each.place.content_hash for each in candidates}))


@given(candidates_lists, st.integers(1, 12))
def test_fewer_results_are_a_prefix_of_more_results(
    candidates: list[Candidate], count: int
) -> None:
    ranked = fuse(candidates, FusionWeights())
    more = choose(ranked, count + 3)
    fewer = choose(ranked, count)
    assert more[: len(fewer)] == fewer
    nearest = 0.7
    assert scale_scores(more, nearest)[: len(fewer)] == scale_scores(fewer, nearest)
