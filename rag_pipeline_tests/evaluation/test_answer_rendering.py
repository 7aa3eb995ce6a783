"""An evaluation of answers as text, as a part of the HTML page, and as a file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.evaluation.pages import to_text
from rag_pipeline.evaluation.records import AnswerResult, DefinitionAnswer, SelectionAnswer
from rag_pipeline.evaluation.rendering import render_html, write_report
from rag_pipeline_tests.evaluation.generated_book import (
    KnowingRetriever,
    evaluate_once,
)
from rag_pipeline_tests.evaluation.test_answers import run
from rag_pipeline_tests.evaluation.test_report import HOSTILE, read_page

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport


TITLE = "Answers without a model"


@pytest.fixture(scope="module")
def report() -> EvaluationReport:
    return evaluate_once(KnowingRetriever)


@pytest.fixture(scope="module")
def answers() -> AnswersReport:
    return run()


def test_the_text_shows_the_groups_the_goals_and_the_first_failures(answers: AnswersReport) -> None:
    text = to_text([answers.describe()])
    assert text.startswith(f"{TITLE}:\n  group ")
    assert re.search(r"\n  all +facts contained  ", text)
    assert re.search(r"\n  how-to +refused although answerable .+  at most 0\.05\n", text)
    assert re.search(r"\n  selected text +selections answered among those ", text)
    failed = tuple(replace(one, error=f"E: {one.query_id}\nmore") for one in answers.questions)
    hostile = replace(answers, questions=failed, model="m")
    lines = to_text([hostile.describe()]).splitlines()
    assert lines[0] == "Answers by m:"
    assert lines[-3:] == [f"  {name}: E: {name}" for name in ("balance", "plain", "wrongly")]


def test_the_page_shows_each_answer_with_its_facts(
    report: EvaluationReport, answers: AnswersReport
) -> None:
    page = read_page(render_html(report, [report], (), answers))
    assert TITLE in page.text
    assert "found: capture point" in page.text
    assert "missed: glue" in page.text
    assert "Answers: with a fault (2)" in page.text
    assert "Answers: right (2)" in page.text
    assert "Answers from selected text: with a fault (1)" in page.text
    assert "Main passages about terms: right (1)" in page.text
    assert "What is capture point?" in page.text
    assert all(one.text in page.text for one in answers.questions)


def test_the_page_without_answers_has_no_section_for_them(report: EvaluationReport) -> None:
    assert TITLE not in read_page(render_html(report, [report])).text


def test_the_page_escapes_the_texts_of_answers(
    report: EvaluationReport, answers: AnswersReport
) -> None:
    result = AnswerResult(
        query_id=HOSTILE,
        question=HOSTILE,
        category=HOSTILE,
        half=HOSTILE,
        answerable=True,
        kind=HOSTILE,
        text=HOSTILE,
        facts_found=(HOSTILE,),
        facts_missed=(HOSTILE,),
        sections=(HOSTILE,),
        broken_passages=(HOSTILE,),
        unsupported=(HOSTILE,),
        error=HOSTILE,
    )
    reply = {"question": HOSTILE, "kind": HOSTILE, "text": HOSTILE, "error": HOSTILE}
    selection = SelectionAnswer(
        case_id=HOSTILE, relation=HOSTILE, leaks=(HOSTILE,), broken_passages=(HOSTILE,), **reply
    )
    term = DefinitionAnswer(
        term=HOSTILE, passage=HOSTILE, place=HOSTILE, defined=False, flaw=HOSTILE, **reply
    )
    hostile = replace(
        answers,
        model=HOSTILE,
        questions=(result,),
        selections=(selection,),
        terms=(term,),
        halves={HOSTILE: answers.overall},
    )
    page = read_page(render_html(report, [report], (), hostile))
    assert page.tags.isdisjoint({"script", "img"})
    assert page.text.count("<script>") >= 24


def test_answers_are_written_beside_the_report(
    tmp_path: Path, report: EvaluationReport, answers: AnswersReport
) -> None:
    write_report(report, tmp_path, (), answers)
    written = json.loads((tmp_path / "answers.json").read_bytes())
    assert written["questions"][0]["facts_found"] == ["capture point"]
    assert "answers" not in json.loads((tmp_path / "report.json").read_bytes())
    write_report(report, tmp_path / "other")
    assert not (tmp_path / "other" / "answers.json").exists()
