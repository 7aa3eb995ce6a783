"""Tests of the citations in complete answers and in answers that arrive in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.writing.citing import CitationFilter, split_answer
from rag_pipeline_tests.growth import assert_linear

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
        (r"So $x \in [0, 1]$ holds [9].", r"So $x \in [0, 1]$ holds.", {9}),
        ("$$x[0] + y[8]$$ holds [9].", "$$x[0] + y[8]$$ holds.", {9}),
        ("$$\nx[0]\n$$\n[1]", "$$\nx[0]\n$$\n[1]", set()),
        ("It costs $5 [9] and $10 [1].", "It costs $5 and $10 [1].", {9}),
        ("It costs $5 [9] or US$6.", "It costs $5 or US$6.", {9}),
        (r"It costs \$5 [9], not 4$.", r"It costs \$5, not 4$.", {9}),
        ("An open $$ sign [9]\n\nand $$ [1]", "An open $$ sign\n\nand $$ [1]", {9}),
        ("It walks [Source 1, Source 9].", "It walks [1].", {9}),
        ("It walks [ 9 ] [ 1 ].", "It walks [1].", {9}),
        ("It walks [1, 2 and 9].", "It walks [1][2].", {9}),
        ("It walks [1, 2, and 3].", "It walks [1][2][3].", set()),
        ("It walks [[9]] on [[1]].", "It walks on [1].", {9}),
        ("See [sand] and [1 andean]", "See [sand] and [1 andean]", set()),
        ("", "", set()),
    ],
)
def test_numbers_without_a_source_are_removed_except_in_code_and_formulas(
    text: str, expected: str, dropped: set[int]
) -> None:
    assert clean(text) == (expected, dropped)


@given(
    st.lists(
        st.sampled_from(
            [
                *"[]123 79,;`\n.(~-s$\\",
                "```",
                "~~~",
                "[1]",
                "[9]",
                "[1-3",
                "[Source",
                " and ",
                " word",
                "\n\n",
                "$$",
                "$x",
                "y$",
                "[[2",
            ]
        ),
        max_size=40,
    ),
    st.integers(1, 5),
)
def test_the_size_of_the_pieces_does_not_change_the_result(parts: list[str], size: int) -> None:
    text = "".join(parts)
    checked = CitationFilter(KNOWN)
    shown = [checked.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert ("".join(shown) + checked.finish(), checked.dropped) == clean(text)


@given(st.text(alphabet="[]0123456789,;- `~$\nab.", max_size=60))
def test_only_brackets_and_white_space_can_be_removed(text: str) -> None:
    shown, _ = clean(text)
    kept = [char for char in shown if char in "ab."]
    assert kept == [char for char in text if char in "ab."]


def test_each_sentence_has_its_text_and_its_source_numbers() -> None:
    text = "It walks [1]. It falls. Both hold [2, 3].\n\n```py\nx[1]\n```\n\nIt ends here.[1] [2]"
    assert [(entry.text, entry.cited) for entry in split_answer(text, KNOWN)] == [
        ("It walks [1].", (1,)),
        ("It falls.", ()),
        ("Both hold [2, 3].", (2, 3)),
        ("```py\nx[1]\n```", ()),
        ("It ends here.[1] [2]", (1, 2)),
    ]


@pytest.mark.no_cover  # tracing would add to the measured time
@pytest.mark.parametrize("unit", [" ", "\t", "$", "$x ", "$$\n\n", "` `` "])
def test_checking_an_answer_takes_linear_time(unit: str) -> None:
    def check(size: int) -> None:
        text = "a [1" + unit * size + "b [1]"
        clean(text)
        split_answer(text, KNOWN)

    assert_linear(check, 500)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It walks. [1] It falls. [2]", [(1,), (2,)]),
        ("It steps.[1] It flies.", [(1,), ()]),
        ("It steps.[1][2] It flies.[3]\nIt lands.", [(1, 2), (3,), ()]),
        ("机器人行走。[1]它飞到火星。", [(1,), ()]),
        ("Робот ходит [1]. Он летает.", [(1,), ()]),
        ("42 [1].", [(1,)]),
        ("x = 5 [2].", [(2,)]),
        ("- 3 [1]\n- 4 [2]\n- 5. [3]", [(1,), (2,), (3,)]),
        ("## It steps [1]\n\n## It falls\n\n---", [(1,)]),
        ("$$\nm = 5\n$$ [1]", [(1,)]),
        ("Its mass is\n\n$$\nm[3] = 5\n$$\n\nby weight [1].", [(1,)]),
        ("```\nx\n``` [1]\nIt flies.", [(1,), ()]),
        ("```npm i``` installs it [1]. It flies.", [(1,), ()]),
        ("```\r\nx\r\n```\r\nIt flies [1].\r\nIt lands.", [(), (1,), ()]),
        ("Use `a. B[1]` here.", [()]),
        ("So $a. B[1]$ holds.", [()]),
        ("It walks.\n\n[2](http://x) says so.", [(), ()]),
        ("Start a fence with ``` here [1].\n\nIt ends at [9].", [(), ()]),
        ("", []),
    ],
)
def test_each_sentence_gets_the_citations_in_it_and_directly_after_it(
    text: str, expected: list[tuple[int, ...]]
) -> None:
    assert [entry.cited for entry in split_answer(text, KNOWN)] == expected


def test_a_link_whose_text_is_a_number_is_not_a_citation() -> None:
    sentences = split_answer("It walks.\n\n[2](http://x) says so.", KNOWN)
    assert [entry.text for entry in sentences] == ["It walks.", "[2](http://x) says so."]


def test_a_citation_after_a_closing_fence_belongs_to_the_code() -> None:
    sentences = split_answer("```\na\n``` [1]\nIt.", KNOWN)
    assert [entry.text for entry in sentences] == ["```\na\n``` [1]", "It."]


def test_white_space_at_both_ends_of_a_text_in_pieces_is_removed() -> None:
    checked = CitationFilter(KNOWN)
    shown = [checked.feed(piece) for piece in (" \n", " It", " ", " walks", ". ", "\n")]
    assert "".join(shown) + checked.finish() == checked.text == "It  walks."


def test_headings_and_thematic_breaks_are_not_sentences() -> None:
    assert [entry.text for entry in split_answer("## Walking\n\nIt walks [1].\n\n---", KNOWN)] == [
        "It walks [1]."
    ]
