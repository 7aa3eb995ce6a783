"""Tests of the parts of a source that can be quoted: whole blocks that belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from rag_pipeline.answering.models import Source
from rag_pipeline.answering.quoting import passages
from rag_pipeline.answering.quoting.passages import (
    LONG_LIST_WORDS,
    find_parts,
    hide_section_solutions,
    hide_solutions,
    refers_back,
)
from rag_pipeline.answering.tables import find_blocks
from rag_pipeline.core.models import Figure
from rag_pipeline.retrieval.contents import SectionText
from rag_pipeline.retrieval.models import Citation
from rag_pipeline_tests.growth import assert_linear
from rag_pipeline_tests.markdown_strategies import DOCUMENTS

CITATION = Citation("t", "s", "", "m", "c")
FENCE = "```py\nx = 1\n```"
FORMULA = "$$\nE = m\n$$"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
LONG_ITEM = "- " + "word " * LONG_LIST_WORDS + "end"


def make_source(text: str) -> Source:
    """Return a source with the blocks of its text."""
    return Source(1, "1", text, CITATION, tuple(find_blocks(text)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("One.\n\nTwo.", ["One.", "Two."], id="paragraphs"),
        pytest.param("Pick:\n\n- a\n- b\n\nEnd it.", ["Pick:\n\n- a\n- b", "End it."], id="list"),
        pytest.param(f"Rates.\n\n{TABLE}", [f"Rates.\n\n{TABLE}"], id="table"),
        pytest.param(
            f"Go on.\n\nRun it.\n\n{FENCE}\n\nIt ends.",
            ["Go on.", f"Run it.\n\n{FENCE}", "It ends."],
            id="code",
        ),
        pytest.param(
            f"Energy is\n\n{FORMULA}\n\nwith a mass.\n\nIt is big.",
            [f"Energy is\n\n{FORMULA}\n\nwith a mass.", "It is big."],
            id="formula",
        ),
        pytest.param(f"{FENCE}\n\n{TABLE}", [FENCE, TABLE], id="no_introduction"),
        pytest.param("Answer\n\nIt walks well.", ["Answer\n\nIt walks well."], id="label"),
        pytest.param(
            ":::tip\n\nStand.\n\n- a\n\n:::\n\nSit.",
            [":::tip\n\nStand.\n\n- a\n\n:::", "Sit."],
            id="admonition",
        ),
        pytest.param("> One.\n>\n> Two.\n\nThree.", ["> One.\n>\n> Two.", "Three."], id="quote"),
        pytest.param("# A\n\nOne.\n\n## B", ["One."], id="headings"),
        pytest.param("# A", [], id="only_a_heading"),
        pytest.param("", [], id="empty"),
        pytest.param(
            f"Pick:\n\n{LONG_ITEM}\n- b\n  - c\n\nEnd it.",
            ["Pick:", LONG_ITEM, "- b\n  - c", "End it."],
            id="long_list",
        ),
    ],
)
def test_blocks_that_belong_together_are_one_part(text: str, parts: list[str]) -> None:
    assert [part.text for part in find_parts(make_source(text))] == parts
    assert [part.text for part in find_parts(Source(1, "1", text, CITATION))] == parts


def test_a_part_names_the_lines_of_its_blocks() -> None:
    text = f"# A\n\nRun it.\n\n{FENCE}\n\nIt ends."
    lines = [(part.start_line, part.end_line) for part in find_parts(make_source(text))]
    assert lines == [(3, 7), (9, 9)]


def test_a_heading_begins_a_new_run() -> None:
    found = find_parts(make_source("One.\n\nTwo.\n\n## B\n\nThree."))
    assert [(part.run, part.opens) for part in found] == [(0, True), (0, False), (1, True)]


@pytest.mark.parametrize(
    ("text", "refers"),
    [
        ("It walks.", True),
        ("- **This** walks.", True),
        ("However, it walks.", True),
        ("Items walk.", False),
        ("The robot walks.", False),
        ("`it` is a function.", False),
    ],
)
def test_a_text_that_begins_with_a_pronoun_refers_back(text: str, *, refers: bool) -> None:
    assert refers_back(text) is refers


@pytest.mark.parametrize(
    ("text", "has_code"),
    [
        (f"Run it:\n\n{FENCE}", True),
        (f"- Run it:\n\n  {FENCE}".replace("\n", "\n  "), True),
        ("See it:\n\n```mermaid\nflowchart\n```", False),
        ("Run `it`.", False),
    ],
)
def test_a_diagram_is_not_code(text: str, has_code: bool) -> None:  # noqa: FBT001  # a column of the table
    assert [part.has_code for part in find_parts(make_source(text))] == [has_code]


def test_a_source_with_blocks_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = make_source("One.\n\nTwo.")
    monkeypatch.setattr(passages, "find_blocks", None)
    assert len(find_parts(source)) == 2


@given(DOCUMENTS)
def test_parts_of_any_text_are_whole_blocks_in_order(text: str) -> None:
    source = make_source(text)
    starts = {block.start for block in source.blocks}
    ends = {block.end for block in source.blocks}
    after = 0
    for part in find_parts(source):
        assert after <= part.start < part.end
        assert part.start in starts
        assert part.end in ends
        assert part.start_line <= part.end_line
        after = part.end


def test_a_short_paragraph_does_not_join_the_next_section() -> None:
    parts = find_parts(make_source("## A\n\nGood luck\n\n## B\n\nThe robot walks."))
    assert [(part.text, part.run) for part in parts] == [("Good luck", 1), ("The robot walks.", 2)]


@pytest.mark.parametrize("mark", ["_", "*", "- ", "1. ", "> "])
def test_marks_before_a_text_are_skipped_in_linear_time(mark: str) -> None:
    def look(count: int) -> None:
        assert not any(refers_back(mark * count + "walks.") for _ in range(20))

    assert_linear(look, 500)


QUIZ = """## Part one

### Question 1: Speed

How fast is it?

- A. 1 m/s
- B. 2 m/s

Answer

**B.** It is fast.

More of the solution.

### Question 2

Why does it fall?

Answer

It leans.

### Question 3

What is open?"""


@pytest.mark.parametrize("text", [QUIZ, "Why?\n\nAnswer\n\nIt leans.", "Answer\n\nIt leans."])
def test_the_solutions_of_a_quiz_are_hidden_and_its_questions_stay(text: str) -> None:
    source = replace(make_source(text), content_type="quiz")
    hidden = hide_solutions(source)
    assert "lean" not in hidden.text
    assert "solution" not in hidden.text
    for asked in ("How fast is it?", "- B. 2 m/s", "Why does it fall?", "What is open?", "Why?"):
        assert (asked in hidden.text) == (asked in text)
    known = [(block.kind, hidden.text[block.start : block.end]) for block in hidden.blocks]
    assert known == [
        (block.kind, hidden.text[block.start : block.end]) for block in find_blocks(hidden.text)
    ]


def test_the_text_of_a_section_of_a_quiz_has_no_solutions() -> None:
    section = SectionText("t", "s", "", "quiz.md", QUIZ, "m", "c")
    assert hide_section_solutions(section) == section
    hidden = hide_section_solutions(replace(section, content_type="quiz"))
    assert hidden.text == hide_solutions(replace(make_source(QUIZ), content_type="quiz")).text


def test_figures_of_hidden_solutions_are_hidden_too() -> None:
    figures = tuple(Figure("image", f"/{line}.png", "", "", line) for line in (1, 5))
    source = make_source("Why?\n\nAnswer\n\nIt leans.")
    blocks = tuple(
        replace(block, start_line=line, end_line=line)
        for block, line in zip(source.blocks, (1, 3, 5), strict=True)
    )
    source = replace(source, blocks=blocks, content_type="quiz", figures=figures)
    hidden = hide_solutions(source)
    assert hidden.figures == figures[:1]


def test_only_a_quiz_has_solutions_to_hide() -> None:
    lab = replace(make_source(QUIZ), content_type="lab")
    assert hide_solutions(lab) is lab
    open_quiz = replace(make_source("## A\n\nWhy does it fall?"), content_type="quiz")
    assert hide_solutions(open_quiz) is open_quiz
