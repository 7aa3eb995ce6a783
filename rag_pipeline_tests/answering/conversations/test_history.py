"""Tests of which earlier turns count for a question, and of their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering import Turn, conversation
from rag_pipeline.answering.conversation import (
    MAX_HISTORY_TOKENS,
    MAX_TURNS,
    choose_turns,
)
from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline_tests.growth import assert_linear

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERY = Query("And why?")
SELECTION = "A gyroscope  drifts.\nCafe\u0301 robots fall."
ABOUT_SELECTION = Query("And why?", Mode.SELECTED_TEXT_ONLY, SELECTION)
TEXTS = st.text(max_size=200)
TURNS = st.lists(st.builds(Turn, TEXTS, TEXTS, st.none() | TEXTS), max_size=30)


def count_all(turns: Sequence[Turn]) -> int:
    return sum(count_tokens(turn.question) + count_tokens(turn.answer) for turn in turns)


def test_the_latest_20_turns_count_oldest_first() -> None:
    turns = [Turn(f"What is number {number}?") for number in range(50)]
    assert choose_turns(turns, QUERY) == tuple(turns[-MAX_TURNS:])


def test_the_latest_turns_that_fit_8000_tokens_count() -> None:
    turns = [Turn(f"Question {number}?", "word " * 1_500) for number in range(10)]
    chosen = choose_turns(turns, QUERY)
    assert chosen[-1].question == "Question 9?"
    assert 4 <= len(chosen) < 10
    assert count_all(chosen) <= MAX_HISTORY_TOKENS


def test_no_older_turn_takes_the_place_of_one_that_does_not_fit() -> None:
    long = Turn("Long?", "\U0001f9be" * 8_000)  # several tokens per character
    chosen = choose_turns([Turn("Old?"), long, Turn("New?")], QUERY)
    assert [turn.question for turn in chosen] == ["New?"]


def test_one_huge_turn_is_cut() -> None:
    (turn,) = choose_turns([Turn("q" * 5_000_000, "a " * 2_500_000)], QUERY)
    assert len(turn.question) <= 2_000
    assert len(turn.answer) <= 8_000
    assert turn.question.endswith("…")


def test_a_huge_history_takes_linear_time() -> None:
    assert_linear(lambda size: choose_turns([Turn("q" * size, "a" * size)] * 5, QUERY), 100_000)
    assert_linear(lambda count: choose_turns([Turn("Why?", "So.")] * count, QUERY), 5_000)


@pytest.mark.parametrize("question", ["", " \n", "\x00", "\udc80\ud800", "\u200b\u202e"])
def test_a_turn_without_a_visible_question_does_not_count(question: str) -> None:
    assert choose_turns([Turn(question, "An answer.")], QUERY) == ()


def test_joiners_of_persian_words_and_emoji_stay() -> None:
    question = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f468\u200d\U0001f52c?"
    (turn,) = choose_turns([Turn(question, question)], QUERY)
    assert (turn.question, turn.answer) == (question, question)


def test_turns_beyond_the_budget_are_not_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []
    clean = conversation._clean_text  # noqa: SLF001  # the number of its calls is tested
    monkeypatch.setattr(
        conversation, "_clean_text", lambda text, most: cleaned.append(text) or clean(text, most)
    )
    turns = [Turn(f"What is joint {number}?") for number in range(100)]
    assert len(choose_turns(turns, QUERY)) == conversation.MAX_TURNS
    assert not any(turn.question in cleaned for turn in turns[: -conversation.MAX_TURNS])


def test_control_characters_are_removed() -> None:
    (turn,) = choose_turns([Turn("What\x00 is\x1b a gyro\udc80?", "It\x7f turns.")], QUERY)
    assert turn == Turn("What is a gyro?", "It turns.")


def test_about_a_selection_only_turns_about_the_same_selection_count() -> None:
    same = Turn("What drifts?", "The gyroscope.", "A gyroscope drifts. Caf\u00e9 robots fall. ")
    others = [Turn("Book?", "A whole-book answer."), Turn("Other?", "No.", "Another selection.")]
    assert choose_turns([others[0], same, others[1]], ABOUT_SELECTION) == (same,)


def test_a_turn_about_a_selection_loses_it_when_the_whole_book_is_asked() -> None:
    turn = Turn("What drifts?", "The gyroscope.", SELECTION)
    assert choose_turns([turn], QUERY) == (Turn("What drifts?"),)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("text", "history must be a list of turns, not 'text'"),
        (None, "history must be a list of turns, not None"),
        ([{"question": "What?"}], r"history\[0\] must be a Turn, not \{'question': 'What\?'\}"),
        ([Turn("What?"), Turn(cast("str", 7))], r"history\[1\]\.question must be a string"),
        ([Turn("What?", cast("str", None))], r"history\[0\]\.answer must be a string"),
        ([Turn("What?", "", cast("str", 3))], r"history\[0\]\.selected_text must be a string"),
    ],
)
def test_an_invalid_history_is_refused_with_the_place(history: object, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        choose_turns(cast("list[Turn]", history), QUERY)


@given(TURNS, st.sampled_from([QUERY, ABOUT_SELECTION]))
def test_any_history_stays_within_its_bounds(history: list[Turn], query: Query) -> None:
    chosen = choose_turns(history, query)
    assert len(chosen) <= MAX_TURNS
    assert count_all(chosen) <= MAX_HISTORY_TOKENS
    assert all(turn.question.strip() for turn in chosen)
    assert choose_turns(chosen, query) == chosen
