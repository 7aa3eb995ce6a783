"""Machine-made questions name real sections, spread over the pages, and are labeled as such."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, cast

from rag_pipeline.evaluation.golden_places import validate_against_corpus
from rag_pipeline.evaluation.golden_set import MACHINE_MADE, GoldenSet, load_golden_set
from rag_pipeline.evaluation.golden_suggestions import suggest_questions
from rag_pipeline_tests.evaluation.golden_pages import make_page, read_book

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import ParsedDoc

WALK = make_page(
    "walk.md",
    "# Walking\n\n## Ankle strategies\n\nThe ankle motor catches small pushes before the whole "
    "body begins to lean forward.\n\n## Summary\n\nThe robot keeps its capture point inside the "
    "polygon of its feet.\n",
)
TALK = make_page(
    "talk.md",
    "# Talking\n\n## Summary\n\nA microphone array separates the voice of a visitor from the "
    "noise of the fans.\n",
)
QUIZ = make_page("quiz.md", "# Quiz\n\n## Ankle questions here\n\nWhich motor catches pushes?\n")


def load(pages: Sequence[ParsedDoc], tmp_path: Path, limit: int = 50) -> GoldenSet:
    path = tmp_path / "suggested.json"
    path.write_text(json.dumps({"queries": suggest_questions(pages, limit)}))
    golden = load_golden_set(path)
    return validate_against_corpus(golden, [page.document for page in pages])


def test_a_question_is_a_heading_or_the_rare_words_of_a_sentence(tmp_path: Path) -> None:
    asked = {query.question for query in load([WALK, TALK, QUIZ], tmp_path).queries}
    assert "Summary" not in asked
    assert not any("questions here" in question for question in asked)
    words = {word for question in asked for word in question.split()}
    assert words <= set(f"{WALK.source} {TALK.source}".replace(".", "").split())
    assert len(asked) == 3


def test_a_heading_longer_than_a_sentence_is_no_question() -> None:
    heading = "ankle strategies " * 500
    page = make_page("long.md", f"# Walking\n\n## {heading}\n\nShort.\n")
    assert all(len(str(entry["question"])) < 500 for entry in suggest_questions([page]))


def test_the_questions_of_the_book_fit_it_and_come_from_many_pages(tmp_path: Path) -> None:
    pages = list(read_book().values())
    golden = load(pages, tmp_path)
    assert len(golden.queries) == 50
    assert {query.category for query in golden.queries} == {MACHINE_MADE}
    assert golden.is_machine_made
    assert len({query.question for query in golden.queries}) == 50
    sources = Counter(query.expected[0].doc_path for query in golden.queries)
    assert max(sources.values()) == 1
    assert {query.half for query in golden.queries} == {"tune", "report"}


def test_the_same_book_gives_the_same_questions() -> None:
    pages = list(read_book().values())
    assert suggest_questions(pages) == suggest_questions(pages[::-1])


def test_the_number_of_questions_can_be_chosen(tmp_path: Path) -> None:
    pages = list(read_book().values())
    assert [len(suggest_questions(pages, limit)) for limit in (1, 7)] == [1, 7]
    many = load(pages, tmp_path, 1000)
    assert len(many.queries) > 300


def test_a_book_without_text_gives_no_questions() -> None:
    assert suggest_questions([make_page("a.md", "# Only a title\n")]) == []
    assert suggest_questions([]) == []


def test_one_word_of_code_or_a_formula_makes_no_question() -> None:
    page = make_page("a.md", "# A\n\n## B\n\n```python\nx = 1\n```\n\n$$\ny = 2\n$$\n")
    assert suggest_questions([page]) == []


def test_questions_are_text_in_any_language() -> None:
    page = make_page(
        "de.md",
        "# Gehen\n\n## Wie der Knöchel hilft\n\nDer Motor des Knöchels fängt kleine Stöße ab, "
        "bevor sich der Körper neigt.\n",
    )
    assert [cast("str", one["question"]) for one in suggest_questions([page])] == [
        "Wie der Knöchel hilft"
    ]
