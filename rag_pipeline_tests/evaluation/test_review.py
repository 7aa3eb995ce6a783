"""Tests of the review of a book: its table, its lists and its file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import EvaluationFileError
from rag_pipeline.evaluation.records import dump_record
from rag_pipeline.evaluation.review import (
    AskedQuestion,
    BookReview,
    SearchFigures,
    load_review,
    render_review,
)

if TYPE_CHECKING:
    from pathlib import Path

FINDS_PAGE = "Questions whose page is in the first 5 results"
SEARCH = SearchFigures(
    "v1",
    questions={
        "q1": AskedQuestion("What is a servo?", finds_page=True, finds_section=True),
        "q2": AskedQuestion("What is a gait?", finds_page=True, finds_section=False),
    },
)
REVIEW = BookReview(1, pages=3, chunks=1200, addresses=9, search=SEARCH)


def read_rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table, by its first cell."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_without_an_earlier_review_there_is_one_column() -> None:
    text = render_review(REVIEW)
    assert read_rows(text) == {
        "": ["Now"],
        "---": ["---"],
        "Pages": ["3"],
        "Pages that cannot be indexed": ["0"],
        "Chunks": ["1,200"],
        "Broken cited addresses": ["0 of 9"],
        FINDS_PAGE: ["2 of 2 (100%)"],
        "Questions whose section is in the first 5 results": ["1 of 2 (50%)"],
    }
    assert "No problem was found." in text
    assert "```" not in text


def test_a_question_that_lost_its_page_is_listed() -> None:
    lost = replace(SEARCH.questions["q2"], finds_page=False)
    now = replace(REVIEW, search=replace(SEARCH, questions=SEARCH.questions | {"q2": lost}))
    text = render_review(now, REVIEW)
    row = read_rows(text)[FINDS_PAGE]
    assert row == ["2 of 2 (100%)", "1 of 2 (50%)"]
    assert (
        "**Questions whose page is no longer found** (1)\n\n```text\nWhat is a gait?\n```" in text
    )


def test_figures_of_another_golden_set_are_not_compared() -> None:
    before = replace(REVIEW, search=replace(SEARCH, golden_version="v0", questions={}))
    text = render_review(REVIEW, before)
    row = read_rows(text)[FINDS_PAGE]
    assert row == ["not known", "2 of 2 (100%)"]
    assert "The golden set has changed" in text
    assert "no longer found" not in text
    without = read_rows(render_review(REVIEW, replace(REVIEW, search=None)))
    assert without[FINDS_PAGE][0] == "not known"


def test_a_book_without_a_golden_set_has_no_rows_for_it() -> None:
    text = render_review(replace(REVIEW, search=None, addresses=None), REVIEW)
    assert not [name for name in read_rows(text) if name.startswith("Questions")]
    assert read_rows(text)["Broken cited addresses"] == ["0 of 9", "not checked"]


@pytest.mark.parametrize(
    ("problem", "title"),
    [
        ({"failed_pages": ("a.md: broken",)}, "Pages that cannot be indexed"),
        ({"broken_addresses": ("/docs/a#b: no such id",)}, "Broken cited addresses"),
        ({"problems": ("ids: 2 chunks have one id",)}, "Failed checks of the index"),
        ({"search": replace(SEARCH, failed_gates=("Success@5 is 0.8",))}, "Failed quality gates"),
    ],
)
def test_each_problem_is_listed_and_fails_the_review(
    problem: dict[str, object], title: str
) -> None:
    now = replace(REVIEW, **problem)  # type: ignore[arg-type]  # one field of any type
    assert REVIEW.passed
    assert not now.passed
    assert f"**{title}** (1)" in render_review(now)
    assert "There are problems." in render_review(now)


def test_text_of_pages_cannot_leave_its_block_or_fill_the_comment() -> None:
    lines = tuple(
        f"```\n@team ![x](https://e.org/{number}.png) {'y' * 5000}" for number in range(900)
    )
    text = render_review(replace(REVIEW, notes=lines, failed_pages=lines))
    assert text.count("```") == 4
    assert "and 880 more" in text
    assert len(text) < 30_000


def test_a_written_review_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "review.json"
    path.write_bytes(dump_record(REVIEW))
    assert load_review(path) == REVIEW


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read"),
        (b"{}", "review_version: Field required"),
        (b"\xff", "Invalid JSON"),
        (dump_record(replace(REVIEW, review_version=99)), "review_version: Input should be 1"),
    ],
)
def test_another_file_is_an_error(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "review.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EvaluationFileError, match=problem):
        load_review(path)
