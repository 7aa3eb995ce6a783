"""Splitting text into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.text.sentences import split_sentences

WIDE = "A program that runs in the game engine speaks another language than the robot"


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


CASES = [
    pytest.param("", [], id="empty"),
    pytest.param(" \n\t ", [], id="white_space"),
    pytest.param("One.", ["One."], id="one"),
    pytest.param("  One.  ", ["One."], id="white_space_around"),
    pytest.param("No end", ["No end"], id="no_mark"),
    pytest.param("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"], id="marks"),
    pytest.param('He said "go." Then', ['He said "go."', "Then"], id="quoted_end"),
    pytest.param("(One.) (Two.)", ["(One.)", "(Two.)"], id="parentheses"),
    pytest.param("See Fig. 3 and Eq. 4.", ["See Fig. 3 and Eq. 4."], id="abbreviations"),
    pytest.param("See Sec. 4 by Ms. Lee.", ["See Sec. 4 by Ms. Lee."], id="title"),
    pytest.param("It takes 33 ms. Then", ["It takes 33 ms.", "Then"], id="unit"),
    pytest.param("Use e.g. ROS. Or not.", ["Use e.g. ROS.", "Or not."], id="dotted"),
    pytest.param("By J. Smith. Then", ["By J. Smith.", "Then"], id="initial"),
    pytest.param("So am I. Then", ["So am I.", "Then"], id="pronoun"),
    pytest.param("Version 2.5 is out. Yes", ["Version 2.5 is out.", "Yes"], id="decimal"),
    pytest.param("it ends. so it goes", ["it ends. so it goes"], id="lower_case_continues"),
    pytest.param("A line\nthat wraps.", ["A line\nthat wraps."], id="wrapped_line"),
    pytest.param("First.\nsecond", ["First.", "second"], id="line_with_end_mark"),
    pytest.param(
        f"{WIDE} of\nUnity goes on. Then",
        [f"{WIDE} of\nUnity goes on.", "Then"],
        id="wrapped_name",
    ),
    pytest.param(f"{WIDE} of\n`tf2` is", [f"{WIDE} of\n`tf2` is"], id="wrapped_code"),
    pytest.param(f"{WIDE}:\nUnity", [f"{WIDE}:", "Unity"], id="line_after_colon"),
    pytest.param(f"{WIDE}  \nUnity", [WIDE, "Unity"], id="hard_break"),
    pytest.param(f"{WIDE}\\\nUnity", [f"{WIDE}\\", "Unity"], id="hard_break_by_backslash"),
    pytest.param(f"{WIDE}\n- Unity", [WIDE, "- Unity"], id="list_after_line"),
    pytest.param(f"{WIDE}\n2. Unity", [WIDE, "2. Unity"], id="numbered_list_after_line"),
    pytest.param(f"{WIDE}\n\nUnity", [WIDE, "Unity"], id="blank_line_after_line"),
    pytest.param(f"## {WIDE}\nUnity", [f"## {WIDE}", "Unity"], id="heading"),
    pytest.param(
        f"- {WIDE} and\n  Unity\n- b", [f"- {WIDE} and\n  Unity", "- b"], id="wrapped_list"
    ),
    pytest.param(f"A label\nUnity {WIDE}", ["A label", f"Unity {WIDE}"], id="line_with_room_left"),
    pytest.param("A label\nUnity", ["A label", "Unity"], id="short_lines"),
    pytest.param(
        f"{WIDE} {WIDE}\nUnity", [f"{WIDE} {WIDE}", "Unity"], id="lines_too_long_to_be_wrapped"
    ),
    pytest.param("- one\n- two", ["- one", "- two"], id="list"),
    pytest.param("Para\n\nnext", ["Para", "next"], id="blank_line"),
    pytest.param("| a | b |\n| c | d |", ["| a | b |", "| c | d |"], id="table"),
    pytest.param("Use `x`. `y` is it.", ["Use `x`.", "`y` is it."], id="code"),
    pytest.param("Он идёт. Летит! Да", ["Он идёт.", "Летит!", "Да"], id="cyrillic"),
    pytest.param("Он идёт. и летит", ["Он идёт. и летит"], id="cyrillic_lower_case_continues"),
    pytest.param("Это Ж. Попов. Да", ["Это Ж. Попов.", "Да"], id="cyrillic_initial"),
    pytest.param("Il marche. École fermée.", ["Il marche.", "École fermée."], id="accented"),
    pytest.param(
        "Une ligne\nélargie.", ["Une ligne\nélargie."], id="accented_lower_case_continues"
    ),
    pytest.param(
        "他走路。它飞吗\uff1f是\uff01", ["他走路。", "它飞吗\uff1f", "是\uff01"], id="chinese"
    ),
    pytest.param("他说「走。」它飞。", ["他说「走。」", "它飞。"], id="chinese_quoted"),
    pytest.param("歩く。 飛ぶ。", ["歩く。", "飛ぶ。"], id="japanese"),
    pytest.param("वह चलता है। वह उड़ता है।", ["वह चलता है।", "वह उड़ता है।"], id="hindi"),
    pytest.param("وہ چلتا ہے\u06d4 کیا؟ ہاں", ["وہ چلتا ہے\u06d4", "کیا؟", "ہاں"], id="urdu"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_text_is_split_where_a_reader_would_split_it(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_carriage_returns_do_not_change_the_split(text: str, expected: list[str]) -> None:
    returned = [sentence.replace("\n", "\r\n") for sentence in expected]
    assert sentences(text.replace("\n", "\r\n")) == returned


@given(
    st.text(alphabet=st.sampled_from(" \n\r\tabIZ.!?e.g\"'()-*_`|01éЖ中。」\u06d4"), max_size=80)
)
def test_every_character_except_white_space_is_in_exactly_one_sentence(text: str) -> None:
    spans = split_sentences(text)
    end_before = 0
    for start, end in spans:
        assert text[end_before:start].strip() == ""
        assert start < end
        assert text[start:end] == text[start:end].strip()
        end_before = end
    assert text[end_before:].strip() == ""


@pytest.mark.parametrize(
    "text",
    ["." * 60_000, "\u06d4" * 60_000, "。" * 60_000, "a" + " " * 60_000 + "b", "\t" * 60_000 + "x"],
)
def test_long_runs_of_one_character_are_split_before_the_test_times_out(text: str) -> None:
    assert sentences(text) == [text.strip()]  # quadratic time would take minutes
