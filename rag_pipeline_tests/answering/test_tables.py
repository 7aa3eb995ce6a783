"""Tests of cutting long tables to the rows that answer a question."""

from __future__ import annotations

import pytest

from rag_pipeline.answering.tables import MOST_ROWS, cut_tables, find_blocks
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline_tests.growth import assert_linear

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
    texts = {count: _make_table(count) for count in (1_000, 4_000)}
    blocks = {count: find_blocks(text) for count, text in texts.items()}
    assert_linear(lambda count: cut_tables(texts[count], blocks[count], "seal limits"), 1_000)
