"""Tests of cutting long tables to the rows that answer a question."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering.tables import (
    MOST_CODE_LINES,
    MOST_ROWS,
    cut_tables,
    find_blocks,
    shorten_code,
)
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline_tests.growth import assert_linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import TextBlock

_PARTS = ["pump", "valve", "hose", "seal", "filter"]
_VALUES = ["pressure", "diameter", "length", "weight", "age", "price"]


def _make_table(rows: int) -> str:
    lines = ["| Part | Value | Limit |", "|---|---|---|"]
    for number in range(rows):
        part, value = _PARTS[number % 5], _VALUES[number // 5 % 6]
        lines.append(f"| `{part}.{value}.{number // 30}` | {number} bar | Limits the {value}. |")
    return "\n".join(lines)


def _cut(text: str, question: str) -> str:
    return cut_tables(text, find_blocks(text), question)[0]


def test_a_row_is_found_by_its_words_and_keeps_the_header() -> None:
    shown = _cut(f"Before.\n\n{_make_table(30)}\n\nAfter.", "How high may the valve's length be?")
    assert shown.split("\n") == [
        "Before.",
        "",
        "| Part | Value | Limit |",
        "|---|---|---|",
        "| `valve.length.0` | 11 bar | Limits the length. |",
        "",
        "After.",
    ]


def test_rows_that_answer_equally_well_are_kept_in_order_up_to_a_limit() -> None:
    rows = _cut(_make_table(300), "What are the limits of the seal?").split("\n")[2:]
    assert len(rows) == MOST_ROWS
    assert all("seal" in row for row in rows)
    numbers = [int(row.split("|")[2].removesuffix("bar ")) for row in rows]
    assert numbers == sorted(numbers)


def test_the_first_rows_stand_for_a_table_without_a_matching_row() -> None:
    table = _make_table(40)
    assert _cut(table, "Which colour?") == "\n".join(table.split("\n")[: 2 + MOST_ROWS])


def test_a_short_table_stays_whole() -> None:
    table = _make_table(MOST_ROWS)
    assert _cut(table, "valve") == table


@pytest.mark.parametrize("prefix", ["> ", "  "])
def test_a_table_in_a_quote_or_list_item_is_cut_too(prefix: str) -> None:
    table = "\n".join(prefix + line for line in _make_table(30).split("\n"))
    text = table if prefix == "> " else f"- Item\n\n{table}"
    shown = _cut(text, "filter age")
    assert shown.count("\n") == text.count("\n") - 29
    assert "filter.age.0" in shown


def test_ragged_rows_are_rows() -> None:
    table = _make_table(20) + "\n| only one cell\n| a | b | c | d | needle |"
    assert _cut(table, "needle").endswith("|---|---|---|\n| a | b | c | d | needle |")


def test_the_blocks_of_the_cut_text_are_at_their_places() -> None:
    text = f"Before.\n\n{_make_table(50)}\n\nAfter the table."
    shown, blocks = cut_tables(text, find_blocks(text), "pump price")
    assert [shown[block.start : block.end] for block in blocks if block.kind != "table"] == [
        "Before.",
        "After the table.",
    ]
    (table,) = (block for block in blocks if block.kind is TextBlockKind.TABLE)
    assert shown[table.start : table.end].startswith("| Part")
    assert shown[table.start : table.end].endswith("Limits the price. |")


def test_cutting_takes_linear_time() -> None:
    @cache
    def make(count: int) -> tuple[str, Sequence[TextBlock]]:
        text = _make_table(count)
        return text, find_blocks(text)

    assert_linear(lambda count: cut_tables(*make(count), "seal limits"), 1_000)


def test_a_comparison_of_two_columns_shows_the_rows_that_differ() -> None:
    lines = ["| Feature | Free plan | Team plan |", "|---|---|---|"]
    lines += [f"| Feature {number} | yes | yes |" for number in range(40)]
    lines[20] = "| Storage | 5 GB | 1 TB |"
    lines[31] = "| Seats | 1 | 20 |"
    shown = _cut("\n".join(lines), "What is the difference between the free and the team plan?")
    assert shown.split("\n")[2:] == [lines[20], lines[31]]


def test_both_rows_of_a_comparison_are_shown() -> None:
    table = _make_table(30) + "\n| `winch` | 3 t | Lifts. |"
    shown = _cut(table, "What is the difference between the winch and the filter's price?")
    assert "`winch`" in shown
    assert "`filter.price.0`" in shown


_NAMES = ("open", "close", "move", "stop", "rotate", "lift", "lower", "grip", "park", "charge")
_CODE = "\n".join(
    ["```python", "import arm", "", "LIMIT = 5", ""]
    + [
        line
        for name in _NAMES
        for line in (f"def {name}_arm(speed):", *[f"    arm.step({n})" for n in range(15)], "")
    ]
    + ["```"]
)


def _shorten(text: str, question: str) -> list[str]:
    return shorten_code(text, find_blocks(text), question).split("\n")


def test_long_code_has_its_first_lines_and_the_function_that_answers() -> None:
    lines = _shorten(f"Before.\n\n{_CODE}\n\nAfter.", "How do I rotate the arm?")
    assert lines[:4] == ["Before.", "", "```python", "import arm"]
    at = lines.index("def rotate_arm(speed):")
    assert lines[at + 15] == "    arm.step(14)"
    assert lines[-3:] == ["```", "", "After."]
    assert "..." in lines
    assert len(lines) <= MOST_CODE_LINES + 12


def test_a_long_list_of_values_is_cut_too() -> None:
    code = "\n".join(["```", *[f"limits[{number}] = {number * 7}" for number in range(300)], "```"])
    lines = _shorten(code, "What is limits[2]?")
    assert "limits[2] = 14" in lines
    assert len(lines) <= MOST_CODE_LINES + 12
    assert lines[-1] == "```"


def test_short_code_stays_whole() -> None:
    code = "```\n" + "x = 1\n" * (MOST_CODE_LINES - 2) + "```"
    assert "\n".join(_shorten(code, "x")) == code
