"""Tests of reading the citations of a model in all their forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.writing.citing import (
    is_definition,
    place_citations,
    read_citations,
    remove_citations,
)
from rag_pipeline_tests.growth import assert_linear

FORMS = [
    "[1]",
    "[[1]]",
    "[ 1 ]",
    "[^1]",
    "[#1]",
    "[Source 1]",
    "[source: 1]",
    "[source_1]",
    "[citation:1]",
    "[Quelle 1]",
    "[S1]",
    "[1](#source-1)",
    "\u30101\u3011",
    "\u30101\u2020source\u3011",
    "\u30101:0\u2020L3-L5\u3011",
    "(1)",
    "(Source 1)",
    "(see Source 1)",
    "\uff08Source 1\uff09",
    "<sup>1</sup>",
    "<sup>[1]</sup>",
    "^1^",
    "\\cite{1}",
    "[Source: Capture point]",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_citation_is_read_in_every_form(form: str) -> None:
    read = read_citations(f"The robot steps there {form}.", {1, 2}, [("Capture point", 1)])
    assert (read.text, read.numbers) == ("The robot steps there.", (1,))


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("[1, 3]", (1, 3)),
        ("[1; 3]", (1, 3)),
        ("[1 and 3]", (1, 3)),
        ("[1-3]", (1, 2, 3)),
        ("[3-1]", (1, 2, 3)),
        ("[1][3]", (1, 3)),
        ("[Source 1, Source 3]", (1, 3)),
    ],
)
def test_lists_and_ranges_are_read(written: str, numbers: tuple[int, ...]) -> None:
    assert read_citations(f"It steps {written}.", {1, 2, 3}).numbers == numbers


@pytest.mark.parametrize(
    "text",
    [
        "joints[9] is the last joint.",
        "Call `joints[1]` and `[2]`.",
        "```python\nx[1]\n```",
        "It is $x_{[1]}$ here.",
        "(1) first, (2) second.",
        "It was found in (2020).",
        "An area of 5 m\u00b2 is enough.",
        "See [the page](https://example.org/1).",
    ],
)
def test_other_brackets_are_kept(text: str) -> None:
    read = read_citations(text, {1, 2})
    assert (read.text, read.numbers) == (text, ())
    assert remove_citations("x [1] y") == "x y"


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("It steps.", "It steps [1][2]."),
        ("It steps", "It steps [1][2]"),
        ("Does it step?", "Does it step [1][2]?"),
        ("**It steps.**", "**It steps.** [1][2]"),
        ("\u5b83\u8d70\u3002", "\u5b83\u8d70 [1][2]\u3002"),
    ],
)
def test_citations_are_placed_before_the_last_mark(text: str, placed: str) -> None:
    assert place_citations(text, (2, 1), is_block=False) == placed


def test_citations_of_a_block_are_below_it() -> None:
    assert place_citations("```\nx\n```", (1,), is_block=True) == "```\nx\n```\n\n[1]"


@pytest.mark.parametrize("text", ["[1]: https://example.org", "[^1]: Balance, page 3", "- [2]: x"])
def test_definitions_of_footnotes_are_recognised(text: str) -> None:
    assert is_definition(text)
    assert not is_definition("[1] says this")


@given(st.text(alphabet="[](1 2,-^aS.\u3010\u3011`$"))
def test_any_text_is_read(text: str) -> None:
    assert all(number >= 0 for number in read_citations(text, {1, 2}).numbers)


@pytest.mark.parametrize("piece", ["[1", "[", "(1", "[1,", "[Source ", "`[1]", "$[1]", "^1"])
def test_the_time_grows_with_the_length(piece: str) -> None:
    assert_linear(lambda size: read_citations(piece * size, {1}), 2_000)
