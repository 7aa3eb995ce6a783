"""Suggestions for golden-set entries name real sections, load, and warn about copied wording."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.golden_set import load_golden_set, validate_against_corpus
from rag_pipeline.evaluation.suggestions import choose_half, read_section_texts, suggest_entry
from rag_pipeline_tests.evaluation.golden_pages import make_page

if TYPE_CHECKING:
    from pathlib import Path

PAGES = (
    make_page(
        "walk.md",
        "---\ntitle: Walking\n---\n\nLead.\n\n# Walking\n\nFeet.\n\n## Balance\n\nThe ankle "
        "holds the weight over the sole of the foot.\n\n#### Ankle\n\nSmall pushes.\n\n"
        "## Steps\n\nA step catches a larger push.\n",
    ),
    make_page("talk.md", "---\ntitle: Talking\n---\n\nSpeech needs a microphone.\n"),
)


def test_a_section_ends_at_the_next_heading_of_any_level() -> None:
    sections = read_section_texts(PAGES[0])
    assert list(sections) == ["Walking", "Balance", "Ankle", "Steps"]
    assert "Small pushes." in sections["Ankle"]
    assert "Small pushes." not in sections["Balance"]


def test_a_page_without_headings_is_one_section_without_its_front_matter() -> None:
    sections = read_section_texts(PAGES[1])
    assert sections["Talking"].strip() == "Speech needs a microphone."


def test_a_page_lists_its_sections_in_order() -> None:
    suggestion = suggest_entry(PAGES, "walk.md")
    assert [match.section_heading for match in suggestion.sections] == [
        "Walking",
        "Balance",
        "Ankle",
        "Steps",
    ]
    assert suggestion.warnings == ("the question is empty. Write it in a student's words",)


def test_words_find_the_sections_that_contain_them_best_first() -> None:
    suggestion = suggest_entry(PAGES, "ankle push")
    assert [(one.doc_path, one.section_heading) for one in suggestion.sections] == [
        ("walk.md", "Ankle"),
        ("walk.md", "Balance"),
        ("walk.md", "Steps"),
    ]
    assert [one.share for one in suggestion.sections] == [1.0, 0.5, 0.5]


def test_a_suggested_entry_loads_and_names_real_sections(tmp_path: Path) -> None:
    question = "Somebody shoves it hard: what does a foot have to do?"
    suggestion = suggest_entry(PAGES, "walk.md", question=question)
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"queries": [suggestion.entry]}), encoding="utf-8")
    golden = load_golden_set(path)
    assert validate_against_corpus(golden, [page.document for page in PAGES]) == golden
    assert golden.queries[0].question == question
    assert golden.queries[0].half == choose_half(golden.queries[0].id)
    assert suggestion.warnings == ()


def test_a_copied_question_gives_a_warning() -> None:
    question = "What holds the weight over the sole of the foot?"
    (warning,) = suggest_entry(PAGES, "walk.md", question=question).warnings
    assert warning.startswith("the question shares 9 words in a row")
    assert "walk.md (Balance)" in warning


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("walks.md", r"Did you mean walk\.md\?"),
        ("x/y/z.mdx", "Give a path below the docs folder"),
    ],
)
def test_an_unknown_path_is_refused_with_a_hint(path: str, hint: str) -> None:
    with pytest.raises(QueryError, match=rf"the docs folder has no page '{path}'\. {hint}"):
        suggest_entry(PAGES, path)


def test_words_that_no_section_contains_are_refused() -> None:
    with pytest.raises(QueryError, match="no section contains a word of 'zymurgy'"):
        suggest_entry(PAGES, "zymurgy")


def test_ids_are_divided_into_halves_of_similar_size() -> None:
    halves = [choose_half(f"query-{number}") for number in range(200)]
    assert 80 <= halves.count("tune") <= 120
