"""Blocks of texts that a reader selected: code without fences, cut tables, fences and formulas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_pipeline
from rag_pipeline.answering import answer
from rag_pipeline.answering.selected_blocks import complete_marks, find_selected_blocks
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.settings import Settings
from rag_pipeline.ingestion.markdown.blocks import find_text_blocks
from rag_pipeline.retrieval.queries import Mode, Query

SETTINGS = Settings(_env_file=None)  # type: ignore[call-arg]  # pydantic's own argument
CODE, TABLE, FORMULA = TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA
FENCED = re.compile(
    r"^```(?!mermaid|text)\w+[^\n]*\n(?P<code>\S[^`]*?\n[^`]*?\S)\n```$", re.MULTILINE
)
BOOK = Path(rag_pipeline.__file__).parents[1] / "website" / "docs"
CASES = json.loads(
    (Path(__file__).parents[1] / "retrieval" / "selected_text_cases.json").read_text("utf-8")
)

PYTHON = """\
def retry(call, attempts=5):
    # Wait twice as long after each failed attempt.
    for attempt in range(attempts):
        try:
            return call()
        except ConnectionError:
            if attempt == attempts - 1:
                raise

    return None"""
SHELL = "cd ws\ncolcon build --symlink-install\nsource install/setup.bash"
YAML = "planner_server:\n  ros__parameters:\n    tolerance: 0.5\n    allow_unknown: true"
C = 'int main(void) {\n  int n = 3;\n\n  while (n-- > 0) {\n    puts("hi");\n  }\n  return 0;\n}'
JAVASCRIPT = "function later(fn) {\n  let timer = null;\n  return () => {\n    fn();\n  };\n}"
SQL = "SELECT c.name, COUNT(o.id)\nFROM customers AS c\nJOIN orders ON owner = c.id\nLIMIT 5;"
RUST = "fn main() {\n    let mut n = 0;\n    loop {\n        n += 1;\n    }\n}"
HTML = "<ul>\n  <li>One</li>\n  <li>Two</li>\n</ul>"
INDENTED = "    a = read()\n\n        if a:\n            write(a)"
XML = '<link name="body">\n  <density>600</density>\n</link>'
COLUMNS = "readout and USB         10.0   12.0\nmessage transport        0.5    3.0"
VALUES = "AP at IoU 0.5: 0.833\nAP at IoU 0.75: 0.333 m"
ROWS = "gain 0.1: lag 50 ms, 1.0 Hz, error 0.151 rad\ngain 0.5: lag 10 ms, 0.2 Hz, error 0.006 rad"
TREE = "my_package/\n├── launch/\n│   └── robot.launch.py\n└── setup.py"
CONTINUED = "sudo apt install ros-jazzy-ros-gz \\\n  ros-jazzy-ros2-control ros-jazzy-controllers"
DOCSTRING = 'def update(state, dt):\n    """Update the state of the robot, and then move it."""'
PRINTED = [COLUMNS, VALUES, ROWS, TREE]
PROGRAMS = [PYTHON, SHELL, YAML, C, JAVASCRIPT, SQL, RUST, INDENTED, XML, CONTINUED, DOCSTRING]

PROSE = [
    "A robot walks. It puts a foot in front of the other.\nThen it stops.",
    "The cost of a grid, so that f(x) = 3 holds for\nall of its cells, is the length of the way.",
    "Call `main()` first;\nit is the place where everything else in the program begins.",
    "- A. 0.04 m\n- B. 0.12 m\n- C. 0.24 m",
    "- the linear pendulum, when it is upside down;\n- the mean of n values, which is $x = y$;",
    "**B.** A = 3 is not true.\n**C.** It is true, see `f(x)`.",
    "- Walk slowly.\n- Stop at once.\n- Look at both sides of the road.",
    "Ship (noun): a large boat; see also the entry on boats.\nIt is older than the wheel.",
    "Dear reader,\nthis book is for you.\nIt was written in a year.",
    "The offer: two apples for the price of one (until Monday).\nThe shop closes at 6.",
    "In 1347 it reached Sicily; in 1348, France.\nNobody knew what to do about it.",
    "It walks.  It puts a foot in front\nof the other.  Then it stops",
    "Roses are red\nViolets are blue\nSugar is sweet\nAnd so are you",
]


def kinds(text: str) -> list[TextBlockKind]:
    """Return the kinds of a text's blocks."""
    return [block.kind for block in find_selected_blocks(text)]


@pytest.mark.parametrize("code", [*PROGRAMS, *PRINTED])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("This is how it is done:\n\n", "\n\nIt stops if there is nothing left."),
    ],
)
def test_code_without_fences_is_one_block(code: str, before: str, after: str) -> None:
    text = before + code + after
    found = [block for block in find_selected_blocks(text) if block.kind is CODE]
    assert [text[block.start : block.end] for block in found] == [code]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_not_code(text: str) -> None:
    assert find_selected_blocks(text) == find_text_blocks(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Run it:\n\n```bash\nros2 topic list", [(CODE, "```bash\nros2 topic list")]),
        ("ros2 topic list\n```\n\nThen look at it again.", [(CODE, "ros2 topic list\n```")]),
        (
            "a = 1\n```\nThen this is done:\n```\nb\n```",
            [(CODE, "a = 1\n```"), (CODE, "```\nb\n```")],
        ),
        ("It is done like this.\n```\nb", [(CODE, "```\nb")]),
        ("The torque is\n$$\n\\tau = J^T F", [(FORMULA, "$$\n\\tau = J^T F")]),
        (
            "The torque is\n$$\n\\tau = J^T F\nwhere $F$ is the force that acts at the foot.",
            [(FORMULA, "$$\n\\tau = J^T F")],
        ),
        ("\\tau = J^T F\n$$\nwhere it is small.", [(FORMULA, "\\tau = J^T F\n$$")]),
        ("| foot | 1 kg |\n| shank | 2.6 kg |", [(TABLE, "| foot | 1 kg |\n| shank | 2.6 kg |")]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", [(TABLE, "| a | b |\n|---|---|\n| 1 | 2 |")]),
        ("$$\nx = 1\ny = 2\n$$", [(FORMULA, "$$\nx = 1\ny = 2\n$$")]),
        ("It costs $$ and time.", []),
    ],
)
def test_a_cut_block_reaches_to_the_mark_that_is_selected(
    text: str, parts: list[tuple[TextBlockKind, str]]
) -> None:
    found = [
        (block.kind, text[block.start : block.end])
        for block in find_selected_blocks(text)
        if block.kind in {CODE, TABLE, FORMULA}
    ]
    assert found == parts


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("a = 1", CODE, "```\na = 1\n```"),
        ("```py\na = 1", CODE, "```py\na = 1\n```"),
        ("a = 1\n```", CODE, "```\na = 1\n```"),
        ("~~~\na\n~~~", CODE, "~~~\na\n~~~"),
        ("````\n```\na\n````", CODE, "````\n```\na\n````"),
        ("$$\nx", FORMULA, "$$\nx\n$$"),
        ("x\n$$", FORMULA, "$$\nx\n$$"),
        ("$$\nx\n$$", FORMULA, "$$\nx\n$$"),
        ("A $$ sign.", TextBlockKind.PARAGRAPH, "A $$ sign."),
    ],
)
def test_missing_marks_are_added_and_others_stay(
    text: str, kind: TextBlockKind, shown: str
) -> None:
    assert complete_marks(text, kind) == shown


@pytest.mark.parametrize("code", [*PROGRAMS, *PRINTED])
def test_an_answer_shows_selected_code_with_its_lines_and_indentation(code: str) -> None:
    query = Query("Explain this code", Mode.SELECTED_TEXT_ONLY, selected_text=code)
    shown = answer(query, settings=SETTINGS).text
    start = min(len(line) - len(line.lstrip()) for line in code.split("\n") if line.strip())
    assert shown == "```\n" + "\n".join(line[start:] for line in code.split("\n")) + "\n```\n\n[1]"


@pytest.mark.parametrize(
    "text",
    [one["text"] for one in CASES["selections"].values()]
    + [*PROGRAMS, HTML, "```", "$$", "```\n```\n```", "|\n|", "$$\n```\n$$", "> ```\n> a = 1"],
)
def test_a_selection_may_be_cut_at_every_place(text: str) -> None:
    for at in range(0, len(text), 7):
        for part in (text[:at], text[at:]):
            if not part.strip():
                continue
            query = Query("Explain this", Mode.SELECTED_TEXT_ONLY, selected_text=part)
            given = answer(query, settings=SETTINGS)
            assert all(one.text in part for one in given.sentences)


def test_prose_of_the_book_is_not_code() -> None:
    changed = []
    for page in sorted(BOOK.rglob("*.md")):
        text = page.read_text("utf-8").split("\n---\n", 1)[-1]
        known = {(block.start, block.end) for block in find_text_blocks(text)}
        changed += [
            (page.name, text[block.start : block.end])
            for block in find_selected_blocks(text)
            if block.kind is CODE and (block.start, block.end) not in known
        ]
    assert changed == []


def test_most_programs_of_the_book_are_one_block_without_their_fences() -> None:
    whole = []
    for page in sorted(BOOK.rglob("*.md")):
        for fenced in FENCED.finditer(page.read_text("utf-8")):
            text = f"This program does it.\n\n{fenced['code']}\n\nIt prints the value of the sum."
            found = [block for block in find_selected_blocks(text) if block.kind is CODE]
            whole.append([text[block.start : block.end] for block in found] == [fenced["code"]])
    assert len(whole) >= 150
    assert sum(whole) / len(whole) >= 0.9


@given(
    text=st.lists(
        st.sampled_from(
            ["```", "$$", "| a | b |", "x = f(1)", "    y();", "- item", "# Title", "", "A robot."]
        ),
        max_size=12,
    ).map("\n".join)
)
def test_the_blocks_contain_all_text_in_order(text: str) -> None:
    blocks = find_selected_blocks(text)
    covered = [False] * len(text)
    for block in blocks:
        assert 0 <= block.start < block.end <= len(text)
        assert block.start_line == text.count("\n", 0, block.start) + 1
        assert block.end_line == text.count("\n", 0, block.end) + 1
        covered[block.start : block.end] = [True] * (block.end - block.start)
    assert [block.start for block in blocks] == sorted(block.start for block in blocks)
    assert all(seen for seen, char in zip(covered, text, strict=True) if char.strip())


@given(text=st.text(max_size=200))
def test_no_text_causes_an_error(text: str) -> None:
    for block in find_selected_blocks(text):
        complete_marks(text[block.start : block.end], block.kind)


@pytest.mark.parametrize("text", ["## Inverse kinematics of the arm", "# A\n\n## The arm"])
def test_a_selection_of_headings_only_is_refused_with_a_hint(text: str) -> None:
    query = Query("What is the arm?", Mode.SELECTED_TEXT_ONLY, selected_text=text)
    given = answer(query, settings=SETTINGS)
    assert (given.kind, given.text) == (
        "refused",
        "Your selection is only a heading. Select some text below it.",
    )
