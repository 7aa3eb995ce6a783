"""Citations in a finished or streamed answer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.citing import CitationFilter, split_answer

KNOWN = frozenset({1, 2, 3})


def clean(text: str) -> tuple[str, set[int]]:
    checked = CitationFilter(KNOWN)
    return checked.feed(text) + checked.finish(), checked.dropped


@pytest.mark.parametrize(
    ("text", "expected", "dropped"),
    [
        ("It walks [1].", "It walks [1].", set()),
        ("It walks [7].", "It walks.", {7}),
        ("It walks [1, 9].", "It walks [1].", {9}),
        ("It walks [2][8][3].", "It walks [2][3].", {8}),
        ("It walks [1; 2].", "It walks [1; 2].", set()),
        ("Take `x[7]` here [7].", "Take `x[7]` here.", {7}),
        ("Take ``x[7]`` here.", "Take ``x[7]`` here.", set()),
        ("```py\na[7] = b[8]\n```\nDone [9]", "```py\na[7] = b[8]\n```\nDone", {9}),
        ("A lone ` tick [9]\nand on [1]", "A lone ` tick\nand on [1]", {9}),
        ("An open fence ```\na[7]", "An open fence ```\na[7]", set()),
        ("See [7](http://x) and [the page](y)", "See [7](http://x) and [the page](y)", set()),
        ("Unclosed [1", "Unclosed [1", set()),
        ("It walks [1-3].", "It walks [1][2][3].", set()),
        ("It walks [2\u20139].", "It walks [2][3].", {4, 5, 6, 7, 8, 9}),
        ("It walks [7-900000000].", "It walks.", {7, 900_000_000}),
        ("It walks [3-2, 1].", "It walks [2][3][1].", set()),
        ("It walks [Source 2].", "It walks [2].", set()),
        ("It walks [sources 2, 9].", "It walks [2].", {9}),
        ("It walks [123456].", "It walks.", {123456}),
        ("~~~py\na[7] = b[8]\n~~~\nDone [9]", "~~~py\na[7] = b[8]\n~~~\nDone", {9}),
        ("It ~~stands~~ walks [9].", "It ~~stands~~ walks.", {9}),
        ("The range [0, 1] holds", "The range [1] holds", {0}),
        ("", "", set()),
    ],
)
def test_unknown_numbers_are_dropped_and_code_is_left_alone(
    text: str, expected: str, dropped: set[int]
) -> None:
    assert clean(text) == (expected, dropped)


@given(
    st.lists(
        st.sampled_from(
            [*"[]123 79,;`\n.(~-s", "```", "~~~", "[1]", "[9]", "[1-3", "[Source", " word", "\n\n"]
        ),
        max_size=40,
    ),
    st.integers(1, 5),
)
def test_the_pieces_a_text_comes_in_change_nothing(parts: list[str], size: int) -> None:
    text = "".join(parts)
    checked = CitationFilter(KNOWN)
    shown = [checked.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert ("".join(shown) + checked.finish(), checked.dropped) == clean(text)


@given(st.text(alphabet="[]0123456789,;- `~\nab.", max_size=60))
def test_nothing_but_brackets_and_blanks_is_ever_lost(text: str) -> None:
    shown, _ = clean(text)
    kept = [char for char in shown if char in "ab."]
    assert kept == [char for char in text if char in "ab."]


def test_sentences_carry_their_numbers() -> None:
    text = "It walks [1]. It falls. Both hold [2, 3].\n\n```py\nx[1]\n```\n\nIt ends here.[1] [2]"
    assert [(entry.text, entry.cited) for entry in split_answer(text)] == [
        ("It walks [1].", (1,)),
        ("It falls.", ()),
        ("Both hold [2, 3].", (2, 3)),
        ("```py\nx[1]\n```", ()),
        ("It ends here.[1] [2]", (1, 2)),
    ]


def test_no_answer_takes_long_to_check() -> None:
    start = time.perf_counter()
    text = "a" + " " * 20_000 + "b" + "\t" * 20_000 + "[1]"
    assert clean(text) == (text, set())
    split_answer(text)
    assert time.perf_counter() - start < 0.5


def test_a_number_behind_the_full_stop_belongs_to_the_sentence_before() -> None:
    assert [entry.cited for entry in split_answer("It walks. [1] It falls. [2]")] == [(1,), (2,)]


def test_headings_and_numbers_alone_are_no_sentences() -> None:
    assert [entry.text for entry in split_answer("## Walking\n\nIt walks [1].\n\n---")] == [
        "It walks [1]."
    ]
    assert split_answer("") == ()
