"""Passages of an answer: whole blocks, defining places, and kinds that explain nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.answering import Answer, AnswerKind, Passage
from rag_pipeline.answering.models import GroundedResponse, Level, Reason
from rag_pipeline.evaluation.answers import (
    defines,
    find_broken_passages,
    find_broken_selections,
    name_flaw,
)
from rag_pipeline.evaluation.golden_set import DefinitionCase, ExpectedSection
from rag_pipeline.retrieval import Citation, Mode
from rag_pipeline_tests.evaluation.golden_pages import make_page

PLACE = Citation("Bread", "Dough", "/docs/bread", "", "")
SOURCE = """\
---
title: Bread
---

Bread needs time. It also needs
[flour](flour.md).

## Dough

Mix it like this:

```python
mix(flour, water)
rest(minutes=30)
```

- Fold it.

  Then wait.
- Bake it.

:::tip Steam

Use *steam*.

:::

> A crust
> is hard.

### What is rest?

Rest is the time without work.

## Why is salt late?

Is it the taste? Or the gluten?
"""
PAGES = {
    "bread.md": make_page("bread.md", SOURCE),
    "quizzes/quiz.md": make_page("quizzes/quiz.md", "# Quiz\n\nSalt is added last.\n"),
}


ANSWER = Answer(
    question="How?",
    text="",
    kind=AnswerKind.EXTRACTED,
    sentences=(),
    citations=(PLACE,),
    grounding=GroundedResponse("", "", (PLACE,), Mode.NORMAL, Level.ANSWERED, Reason.SUFFICIENT),
)


def make_passage(text: str, start: int, end: int, doc_path: str = "bread.md") -> Passage:
    return Passage(1, text, doc_path, start, end, PLACE)


def is_whole(passage: Passage, max_chunk_tokens: int = 800) -> bool:
    answer = replace(ANSWER, passages=(passage,))
    broken = find_broken_passages(answer, PAGES, max_chunk_tokens)
    assert broken in {(), (passage.text,)}
    return not broken


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param(
            "Bread needs time. It also needs\nflour.", 5, 6, id="paragraph without its link"
        ),
        pytest.param("Bread needs time. It also needs flour.", 5, 6, id="other line break"),
        pytest.param(
            "Mix it like this:\n\n```python\nmix(flour, water)\nrest(minutes=30)\n```",
            10,
            15,
            id="code",
        ),
        pytest.param("- Fold it.\n\n  Then wait.\n- Bake it.", 17, 20, id="list"),
        pytest.param("- Fold it.\n\n  Then wait.", 17, 19, id="item"),
        pytest.param("Steam\n\nUse *steam*.", 22, 26, id="admonition"),
        pytest.param("Steam\n\nUse *steam*.", 22, 24, id="admonition without its last line"),
        pytest.param("## Dough\n\nMix it like this:", 8, 10, id="heading and paragraph"),
    ],
)
def test_a_run_of_whole_blocks_is_whole(text: str, start: int, end: int) -> None:
    assert is_whole(make_passage(text, start, end))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param("Bread needs time.", 5, 6, id="first sentence"),
        pytest.param("Bread needs time. It also needs", 5, 5, id="first line of a paragraph"),
        pytest.param("mix(flour, water)\nrest(minutes=30)", 12, 15, id="code without its fence"),
        pytest.param("```python\nmix(flour, water)\n```", 12, 15, id="half of the code"),
        pytest.param("Bread needs time. It also needs\nwater.", 5, 6, id="changed word"),
        pytest.param("Mix it like this:\n\n- Fold it.", 10, 17, id="left out code"),
        pytest.param("Bread needs time. It also needs\nflour.", 10, 10, id="other lines"),
        pytest.param("Bread needs time. It also needs\nflour.", 5, 10, id="too many lines"),
        pytest.param("", 7, 7, id="nothing"),
        pytest.param("More.", 900, 901, id="after the end"),
    ],
)
def test_a_part_of_a_block_or_a_changed_text_is_not_whole(text: str, start: int, end: int) -> None:
    assert not is_whole(make_passage(text, start, end))


def test_a_passage_of_an_unknown_document_is_not_whole() -> None:
    assert not is_whole(make_passage("Bread needs time.", 5, 6, "other.md"))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Rest it now. Then\nbake it.", True),
        ("Rest it now. Then bake it.\n\n- One.\n- Two.", True),
        ("- Two.", True),
        ("- One.\n- Two.", True),
        ("Rest it now.", False),
        ("Then bake it.", False),
        ("- One. - Three.", False),
        ("", False),
    ],
)
def test_a_passage_of_a_selection_consists_of_its_blocks(text: str, *, whole: bool) -> None:
    selection = "  Rest it now. Then\n  bake it.\n\n- One.\n- Two.\n"
    answer = replace(ANSWER, passages=(make_passage(text, 1, 2, ""),))
    assert find_broken_selections(answer, selection) == (() if whole else (text,))


@pytest.mark.parametrize(
    ("text", "start", "end", "flaw"),
    [
        ("## Dough", 8, 8, "heading"),
        (
            "Mix it like this:\n\n```python\nmix(flour, water)\nrest(minutes=30)\n```",
            10,
            15,
            "code",
        ),
        ("Is it the taste? Or the gluten?", 37, 37, "quiz"),
        ("**Is it the taste?**", 37, 37, "quiz"),
        ("### What is rest?\n\nRest is the time without work.", 31, 33, None),
        ("Bread needs time. It also needs\nflour.", 5, 6, None),
    ],
)
def test_a_heading_code_or_question_explains_nothing(
    text: str, start: int, end: int, flaw: str | None
) -> None:
    assert name_flaw(make_passage(text, start, end), PAGES) == flaw


def test_a_page_of_a_quiz_explains_nothing() -> None:
    passage = make_passage("Salt is added last.", 3, 3, "quizzes/quiz.md")
    assert name_flaw(passage, PAGES) == "quiz"
    assert name_flaw(replace(passage, doc_path="other.md"), PAGES) is None


@pytest.mark.parametrize(
    ("heading", "start", "end", "right"),
    [
        pytest.param("Dough", 10, 15, True, id="own text"),
        pytest.param("Dough", 33, 33, True, id="subsection"),
        pytest.param("Dough", 37, 37, False, id="next section"),
        pytest.param("Dough", 5, 6, False, id="section before"),
        pytest.param("Dough", 33, 37, False, id="passage that goes on in the next section"),
        pytest.param("What is rest?", 33, 33, True, id="inner section"),
        pytest.param("What is rest?", 17, 20, False, id="outer section"),
        pytest.param("Bread", 5, 6, True, id="title"),
        pytest.param("Bread", 10, 10, False, id="title does not stand for the page"),
        pytest.param("Other", 10, 10, False, id="no such section"),
    ],
)
def test_a_passage_in_a_defining_section_defines_the_term(
    heading: str, start: int, end: int, *, right: bool
) -> None:
    case = DefinitionCase("Dough", "Flour and water.", (ExpectedSection("bread.md", heading),))
    assert defines(make_passage("Text.", start, end), case, PAGES) is right
    other = make_passage("Text.", start, end, "quizzes/quiz.md")
    assert not defines(other, case, PAGES)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("**Dough**: *flour*\nand water. It rests.", True),
        ("Dough is flour and watery.", False),
        ("Dough is wheatflour and water.", False),
        ("Flour.", False),
    ],
)
def test_a_passage_with_the_words_of_the_definition_defines_the_term(
    text: str, *, right: bool
) -> None:
    case = DefinitionCase("Dough", "Flour and water.", ())
    assert defines(make_passage(text, 1, 1, "other.md"), case, PAGES) is right


def test_the_title_of_a_page_with_a_level_1_heading_is_its_first_text() -> None:
    pages = {"a.md": make_page("a.md", "# Dough\n\nFlour.\n\n## More\n\nText.\n")}
    case = DefinitionCase("Dough", "Water.", (ExpectedSection("a.md", "Dough"),))
    assert defines(make_passage("Flour.", 3, 3, "a.md"), case, pages)
    assert not defines(make_passage("Text.", 7, 7, "a.md"), case, pages)


@pytest.mark.parametrize(
    ("text", "max_chunk_tokens", "whole"),
    [
        ("Bread needs time.", 5, True),
        ("It also needs flour.", 5, True),
        ("Bread needs time.", 800, False),
        ("Bread needs", 5, False),
        ("needs time. It also needs flour.", 5, False),
    ],
)
def test_a_block_longer_than_a_chunk_may_be_cut_between_sentences(
    text: str, max_chunk_tokens: int, *, whole: bool
) -> None:
    assert is_whole(make_passage(text, 5, 6), max_chunk_tokens) is whole
