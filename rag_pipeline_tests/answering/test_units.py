"""Tests of the sentences, code blocks, tables and formulas that a text is split into."""

from __future__ import annotations

import pytest

from rag_pipeline.answering.tables import find_blocks, split_units
from rag_pipeline.core.models import TextBlock, TextBlockKind

FORMULA = "$$\n\\tau = F r\n$$"


@pytest.mark.parametrize(
    ("text", "units"),
    [
        pytest.param(
            "Intro sentence here.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd of it.",
            ["Intro sentence here.", "| a | b |\n|---|---|\n| 1 | 2 |", "End of it."],
            id="table",
        ),
        pytest.param(
            "Rates:\n\nSensor | Rate\n--- | ---\nIMU | 400\n\nEnd.",
            ["Rates:", "Sensor | Rate\n--- | ---\nIMU | 400", "End."],
            id="table_without_outer_pipes",
        ),
        pytest.param("End.\n\n~~~\ncode. More", ["End.", "~~~\ncode. More"], id="open_fence"),
        pytest.param("```\na. B\n```\nIt.", ["```\na. B\n```", "It."], id="fence"),
        pytest.param(
            "> ```\n> a. B\n> ```\nIt.", ["> ```\n> a. B\n> ```", "It."], id="quoted_fence"
        ),
        pytest.param(
            "```npm i``` installs. It ends.", ["```npm i``` installs.", "It ends."], id="long_ticks"
        ),
        pytest.param("Use `a. B[1]` here.", ["Use `a. B[1]` here."], id="code_span"),
        pytest.param(
            "So $a. B$ holds. It does.", ["So $a. B$ holds.", "It does."], id="formula_span"
        ),
        pytest.param("It costs $5. Or $6.", ["It costs $5.", "Or $6."], id="prices"),
        pytest.param(
            f"It is.\n\n{FORMULA}\n\nIt was.", ["It is.", FORMULA, "It was."], id="formula"
        ),
        pytest.param(
            f"A. Torque is\n\n{FORMULA}\n\nwith a force. It was.",
            [f"A. Torque is\n\n{FORMULA}\n\nwith a force.", "It was."],
            id="formula_in_sentence",
        ),
        pytest.param(
            f"It is $$a.\nB$$ there. Torque:\n{FORMULA}\n1. One",
            ["It is $$a.\nB$$ there.", f"Torque:\n{FORMULA}", "1. One"],
            id="formula_in_line",
        ),
        pytest.param(f"{FORMULA}\n\n{FORMULA}", [FORMULA, FORMULA], id="two_formulas"),
        pytest.param(
            "An open $$ ends.\n\nIt is $$.", ["An open $$ ends.", "It is $$."], id="open_formula"
        ),
        pytest.param(
            "```\n$$\n```\nIt. $$x$$", ["```\n$$\n```", "It.", "$$x$$"], id="formula_mark_in_code"
        ),
    ],
)
def test_a_text_is_split_into_sentences_and_blocks(text: str, units: list[str]) -> None:
    assert [text[unit.start : unit.end] for unit in split_units(text)] == units
    returned = text.replace("\n", "\r\n")
    assert [returned[unit.start : unit.end] for unit in split_units(returned)] == [
        unit.replace("\n", "\r\n") for unit in units
    ]


WRAPPED = "Shrinking the image to\n15 kB helps. It\nDoes."


@pytest.mark.parametrize(
    ("text", "units"),
    [
        pytest.param(WRAPPED, [WRAPPED[:35], "It\nDoes."], id="paragraph"),
        pytest.param(
            "- Set it to\n  $x$. Then\n  Stop.\n- Go.",
            ["- Set it to\n  $x$.", "Then\n  Stop.", "- Go."],
            id="list_item",
        ),
        pytest.param("> It is\n> ROS. No.", ["> It is\n> ROS.", "No."], id="quote"),
        pytest.param(
            "Time: 3 h  \nLevel: A\\\nB", ["Time: 3 h", "Level: A\\", "B"], id="hard_break"
        ),
        pytest.param("- One\n\n  Two\n- Three", ["- One", "Two", "- Three"], id="two_paragraphs"),
        pytest.param("It is\n\n## A\nB", ["It is", "## A", "B"], id="heading"),
    ],
)
def test_a_line_end_does_not_end_a_sentence_of_the_book(text: str, units: list[str]) -> None:
    found = split_units(text, find_blocks(text))
    assert [text[unit.start : unit.end] for unit in found] == units


def test_a_line_end_ends_a_sentence_of_a_selection() -> None:
    selection = "Walk slowly\nStop at once"
    assert len(split_units(selection)) == 2


def test_text_outside_the_given_blocks_is_not_lost() -> None:
    text = f"It is.\n\n{FORMULA}\n\nIt was."
    formula = TextBlock(TextBlockKind.FORMULA, 8, 8 + len(FORMULA), 3, 5)
    units = [text[unit.start : unit.end] for unit in split_units(text, [formula])]
    assert units == ["It is.", FORMULA, "It was."]


def test_a_unit_names_the_blocks_in_which_it_begins_and_ends() -> None:
    text = f"# A\n\n- One. Two.\n\n> Torque is\n>\n> {FORMULA}"
    text = text.replace("\n\\tau", "\n> \\tau").replace("\n$$", "\n> $$")
    kinds = [(unit.first.value, unit.last.value) for unit in split_units(text)]
    assert kinds == [
        ("heading", "heading"),
        ("list_item", "paragraph"),
        ("paragraph", "paragraph"),
        ("paragraph", "formula"),
    ]
