"""Terms of a text, the units of lexical search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.text.terms import (
    STOP_WORDS,
    extract_terms,
    extract_words,
    find_distinct_terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("the and of", [], id="only_stop_words"),
        pytest.param("Robots moving", ["robot", "move"], id="stems"),
        pytest.param("robot robot", ["robot", "robot"], id="repeats_kept"),
        pytest.param("use_sim_time", ["use_sim_time", "use", "sim", "time"], id="snake_case"),
        pytest.param("JointState", ["jointstat", "joint", "state"], id="camel_case"),
        pytest.param("ROS2", ["ros2", "ros", "2"], id="letters_and_digits"),
        pytest.param("IMUData", ["imudata", "imu", "data"], id="capitals_before_a_word"),
        pytest.param("a_the_joint", ["a_the_joint", "joint"], id="stop_words_in_parts"),
        pytest.param("_private __dunder__", ["privat", "dunder"], id="underscores_outside"),
        pytest.param("don't", [], id="contraction"),
        pytest.param("x" * 65, [], id="longer_than_a_word"),
        pytest.param("größe", ["größe"], id="other_letters"),
        pytest.param("ÉcoleNormale", ["écolenormal", "école", "normal"], id="accents_in_parts"),
        pytest.param("A* vs C++", ["a*", "c++"], id="letters_with_symbols"),
        pytest.param("A\\* and RRT*", ["a*", "rrt*", "rrt"], id="escaped_and_longer_names"),
        pytest.param("C++17 in C#", ["c++", "17", "c#"], id="standards_of_languages"),
        pytest.param(
            "put it in `.env`, not x.then(1)",
            ["put", ".env", "env", "x", "1"],
            id="file_with_a_dot",
        ),
        pytest.param(
            "bag record -a --ros-args",
            ["bag", "record", "-a", "--ros-args", "ros", "arg"],
            id="flags",
        ),
        pytest.param("well-known x-y (-x)", ["well", "known", "x", "y", "x"], id="hyphens"),
        pytest.param("*A* a*b 2*x", ["b", "2", "x"], id="emphasis_and_products"),
        pytest.param("whats the topic, cant see", ["topic", "see"], id="without_apostrophe"),
        pytest.param("torque: 3.5 Nm", ["torqu", "3", "5", "nm"], id="figures_and_units"),
    ],
)
def test_terms_are_stemmed_words_and_identifiers_with_their_parts(
    text: str, expected: list[str]
) -> None:
    assert extract_terms(text) == expected


@pytest.mark.parametrize("name", ["JointState", "useState", "WebSockets", "PikaPods", "use_time"])
def test_an_identifier_in_small_letters_has_the_term_of_the_whole(name: str) -> None:
    assert extract_terms(name)[0] == extract_terms(name.lower())[0]


def test_every_spelling_of_an_identifier_contains_its_parts() -> None:
    for spelling in ("use sim time", "useSimTime", "use_sim_time", "USE_SIM_TIME"):
        assert {"sim", "time"} <= set(extract_terms(spelling))


@given(st.text(max_size=60))
def test_a_stop_word_gives_no_terms_and_no_term_is_empty(text: str) -> None:
    for word in extract_words(text):
        terms = extract_terms(word)
        assert all(terms)
        if word.lower() in STOP_WORDS:
            assert terms == []


@given(st.text(alphabet="abcXYZ_0 .-*+#\\`", max_size=60))
def test_distinct_terms_are_the_set_of_all_terms(text: str) -> None:
    assert find_distinct_terms(text) == set(extract_terms(text))


@given(st.text(alphabet="abcXYZ_0 .-*+#\\`", max_size=60))
def test_terms_of_a_text_are_the_terms_of_its_words_in_order(text: str) -> None:
    expected = [term for word in extract_words(text) for term in extract_terms(word)]
    assert extract_terms(text) == expected


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (
            "\u5438\u76e4\u3092\u63db\u3048\u308b",
            ["\u5438\u76e4", "\u76e4\u3092", "\u3092\u63db", "\u63db\u3048", "\u3048\u308b"],
        ),
        ("\u7535", ["\u7535"]),
        ("ROS2\u3067\u52d5\u304f", ["ros2", "ros", "2", "\u3067\u52d5", "\u52d5\u304f"]),
        ("\ubc30\ud130\ub9ac \ucda9\uc804", ["\ubc30\ud130", "\ud130\ub9ac", "\ucda9\uc804"]),
    ],
)
def test_runs_without_spaces_give_pairs_of_characters(text: str, terms: list[str]) -> None:
    assert extract_terms(text) == terms
    assert find_distinct_terms(text) == frozenset(terms)


def test_a_long_sentence_without_spaces_has_terms() -> None:
    assert len(extract_terms("\u5438\u76e4" * 500)) == 999
