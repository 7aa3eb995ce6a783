"""The choice among ranked candidates: sections, near-duplicates, and the parts of a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.terms import extract_terms
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


def test_a_section_gives_one_hit_before_any_gives_a_second() -> None:
    hits = rank(
        make_candidate(1, section="s"),
        make_candidate(2, section="s"),
        make_candidate(3, section="u"),
    )
    assert numbers(choose(hits, 2)) == [1, 3]
    assert numbers(choose(hits, 3)) == [1, 3, 2]


def test_a_third_section_of_a_document_has_to_beat_others_by_more() -> None:
    near, far = CROWDING - 0.01, CROWDING + 0.01
    for gap, expected in ((near, [1, 2, 4, 3]), (far, [1, 2, 3, 4])):
        of_a = [Ranked(make_candidate(at, doc="a.md", section=f"a{at}"), 1.0) for at in (1, 2, 3)]
        of_b = Ranked(make_candidate(4, doc="b.md", section="b"), 1.0 - gap)
        assert numbers(arrange([*of_a, of_b])[0]) == expected


def test_each_further_section_of_a_document_counts_less() -> None:
    of_a = [Ranked(make_candidate(at, doc="a.md", section=f"a{at}"), 1.0) for at in range(1, 5)]
    of_b = Ranked(make_candidate(9, doc="b.md", section="b"), 1.0 - 1.5 * CROWDING)
    assert numbers(arrange([*of_a, of_b])[0]) == [1, 2, 3, 9, 4]


def test_a_heading_without_text_comes_behind_all_that_says_something() -> None:
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


def test_the_same_text_is_chosen_once_and_its_place_is_refilled() -> None:
    hits = rank(make_candidate(1, text="same"), make_candidate(2, text="same"), make_candidate(3))
    assert numbers(choose(hits, 2)) == [1, 3]


def test_a_near_duplicate_makes_room_for_the_next() -> None:
    def first_two_are_near(one: Candidate, other: Candidate) -> bool:
        return {one.place.point_id, other.place.point_id} == {1, 2}

    hits = rank(make_candidate(1), make_candidate(2), make_candidate(3))
    assert numbers(choose(hits, 2, first_two_are_near)) == [1, 3]


def test_what_was_chosen_before_keeps_its_place_and_is_not_chosen_again() -> None:
    one, other, third = (make_candidate(number, text=f"t{number % 2}") for number in (1, 2, 3))
    before = choose(rank(one), 1)
    assert numbers(select(rank(other, third, one), 3, never_near, before)) == [1, 2]
    assert numbers(select(rank(other), 3, lambda *_: True, before)) == [1]


def test_scores_of_a_wider_search_keep_their_share_of_the_first_hit_s() -> None:
    first, other = make_candidate(1), make_candidate(2)
    wider = [Ranked(first, 1.2), Ranked(other, 0.3)]
    assert find_scale([Ranked(first, 0.6)], wider) == pytest.approx(0.5)
    assert find_scale([], wider) == 1.0
    assert find_scale([Ranked(make_candidate(3), 0.6)], wider) == 1.0  # deleted in between


def test_the_best_hit_of_each_part_follows_the_first_three() -> None:
    hits = [make_candidate(number) for number in range(1, 11)]
    whole = rank(*hits)
    parts = [rank(hits[0], hits[8]), rank(hits[6], hits[7])]
    # The first part's best stands among the first three already; the second's moves up.
    assert numbers(place_parts(whole, parts, 5)) == [1, 2, 3, 7, 4]


def test_a_part_is_looked_for_no_deeper_where_more_hits_are_wanted() -> None:
    hits = [make_candidate(number) for number in range(PART_DEPTH + 5)]
    parts = [rank(hits[-1], hits[9])]
    for count in (5, len(hits)):
        assert numbers(place_parts(rank(*hits), parts, count))[:5] == [0, 1, 2, 9, 3]


def test_a_hit_that_the_whole_question_did_not_find_gets_no_place() -> None:
    whole = rank(*(make_candidate(number) for number in range(1, 6)))
    assert numbers(place_parts(whole, [rank(make_candidate(99))], 5)) == [1, 2, 3, 4, 5]


@given(st.permutations(range(1, 13)), st.integers(1, 12))
def test_places_do_not_depend_on_how_many_are_asked_for(order: list[int], count: int) -> None:
    hits = {number: make_candidate(number) for number in range(1, 13)}
    whole = rank(*(hits[number] for number in range(1, 13)))
    part = rank(*(hits[number] for number in order))
    few, many = place_parts(whole, [part], count), place_parts(whole, [part], 12)
    assert numbers(few) == numbers(many)[:count]
    assert sorted(numbers(many)) == list(range(1, 13))
    assert numbers(many)[:FIRST_PLACE] == [1, 2, 3]


@given(candidates_lists, st.integers(1, 12))
def test_choice_fills_up_to_the_count_whenever_distinct_texts_are_there(
    candidates: list[Candidate], count: int
) -> None:
    ranked = fuse(candidates, FusionWeights())
    chosen = choose(ranked, count)
    texts = [hit.candidate.place.content_hash for hit in chosen]
    assert len(set(texts)) == len(texts)
    assert len(chosen) == min(count, len({each.place.content_hash for each in candidates}))


@given(candidates_lists, st.integers(1, 12))
def test_fewer_results_are_a_prefix_of_more_while_sections_last(
    candidates: list[Candidate], count: int
) -> None:
    ranked = fuse(candidates, FusionWeights())
    more = choose(ranked, count + 3)
    fewer = choose(ranked, count)
    assert more[: len(fewer)] == fewer
    nearest = 0.7
    assert scale_scores(more, nearest)[: len(fewer)] == scale_scores(fewer, nearest)
