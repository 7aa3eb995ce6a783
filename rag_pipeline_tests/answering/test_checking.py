"""Tests of the check of a model with questions about a book's own sections."""

from __future__ import annotations

import pytest

from rag_pipeline.answering import Assistant
from rag_pipeline.answering.checking import check_model, choose_questions
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.retrieval.open_index import ContentsPage, ContentsSection
from rag_pipeline_tests.answering.factories import FixedRetriever, ScriptedModel, make_chunk

QUESTION = "How does a walking robot keep its balance with the capture point?"
TRUE = "It places its foot on the capture point [1]."
FALSE = "A topic is a kind of chocolate cake."


def check(model: ScriptedModel) -> tuple[bool, str, float, float]:
    with Assistant(FixedRetriever([make_chunk()]), model) as assistant:  # type: ignore[arg-type]  # a fixed one
        found = check_model(assistant, [QUESTION] * 2)
    (outcome,) = {entry.outcome for entry in found.answers}
    return found.is_useful, outcome, found.grounded_share, found.cited_share


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (ScriptedModel([TRUE]), (True, "written", 1.0, 1.0)),
        (ScriptedModel([TRUE.replace(" [1]", "")]), (True, "written", 1.0, 0.0)),
        (ScriptedModel([f"{TRUE} {FALSE}"]), (False, "written", 0.5, 0.5)),
        (ScriptedModel([FALSE]), (False, "not_grounded", 0.0, 0.0)),
        (ScriptedModel(["NO_ANSWER_IN_SOURCES"]), (False, "declined", 0.0, 0.0)),
        (ScriptedModel([], error=AnswerServiceError("down")), (False, "failed", 0.0, 0.0)),
    ],
)
def test_a_model_is_useful_if_it_answers_with_grounded_sentences(
    model: ScriptedModel, expected: tuple[bool, str, float, float]
) -> None:
    assert check(model) == expected


def test_the_questions_are_about_sections_that_lie_far_apart() -> None:
    pages = [
        ContentsPage(
            title=f"Page {n}",
            url=f"/{n}",
            doc_path=f"{n}.md",
            module="m",
            chapter="c",
            sections=(ContentsSection("Overview", f"/{n}#a", 2),),
        )
        for n in range(60)
    ]
    questions = choose_questions(pages)
    assert len(set(questions)) == 6
    assert "Page 0" in questions[0]
    assert "Page 50" in questions[-1]
