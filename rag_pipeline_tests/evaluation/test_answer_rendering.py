"""An evaluation of answers as text, as a part of the HTML page, and as a file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.evaluation.pages import Table, to_text
from rag_pipeline.evaluation.records import (
    AcceptedAnswer,
    AnswerResult,
    DefinitionAnswer,
    Latency,
    Memory,
    SelectionAnswer,
    Spread,
)
from rag_pipeline.evaluation.rendering import (
    describe_answers,
    fold_answers,
    list_goals,
    render_html,
    write_report,
)
from rag_pipeline_tests.evaluation.generated_book import KnowingRetriever, evaluate_generated_book
from rag_pipeline_tests.evaluation.test_answers import run
from rag_pipeline_tests.evaluation.test_report import HOSTILE, read_page

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport


TITLE = "Answers without a model"
LATENCY = Latency(12.4, None, 90.0)


@pytest.fixture(scope="module")
def report() -> EvaluationReport:
    return evaluate_generated_book(KnowingRetriever())


@pytest.fixture(scope="module")
def answers() -> AnswersReport:
    return run()


def test_the_text_shows_the_groups_the_goals_and_the_first_failures(answers: AnswersReport) -> None:
    text = to_text([describe_answers(answers, LATENCY)])
    assert text.startswith(f"{TITLE}:\n  measure  ")
    assert "\n  answerable questions refused  " in text
    assert re.search(r"\n  all +facts contained  ", text)
    assert re.search(r"\n  how-to +refused although answerable  ", text)
    assert "\n  words per answer: mean " in text
    failed = tuple(replace(one, error=f"E: {one.query_id}\nmore") for one in answers.questions)
    hostile = replace(answers, questions=failed, model="m")
    lines = to_text([describe_answers(hostile, LATENCY)]).splitlines()
    assert lines[0] == "Answers by m:"
    assert lines[-3:] == [f"  {name}: E: {name}" for name in ("balance", "plain", "wrongly")]


def read_goals(table: Table) -> dict[str, tuple[str, str]]:
    """Return the value and the goal of each measure."""
    return {str(measure): (str(value), str(goal)) for measure, value, goal in table.rows}


def test_goals_stand_beside_the_measured_values(answers: AnswersReport) -> None:
    slow = replace(answers, latency_ms={"all": Spread(1, 1, 1, 1), "generated": Spread(9, 8, 7, 1)})
    rows = read_goals(list_goals(slow, LATENCY))
    assert rows["time of generated answers"][0] == "mean 9 ms, median 8 ms, p95 7 ms, n=1"
    assert "time of extracted answers" not in rows
    empty = replace(answers, overall=replace(answers.overall, words=None))
    rows = read_goals(list_goals(empty, LATENCY))
    assert rows["words per answer"][0] == "not measured"


def test_times_and_memory_stand_beside_their_budgets(answers: AnswersReport) -> None:
    measured = replace(answers, memory=Memory(99.6, 300.2))
    rows = read_goals(list_goals(measured, LATENCY))
    assert rows["time of retrieval"][0] == "median 12 ms, p95 has no value (failures)"
    assert rows["time of retrieval"][1] == "p95 at most 500 ms"
    memory, goal = rows["growth of memory while answering"]
    assert memory == "100 MB (the whole process, with ingestion: at most 300 MB)"
    assert goal == "at most 256 MB"
    unknown = replace(answers, memory=Memory(None, 300.2))
    assert str(list_goals(unknown, LATENCY).rows[-1][1]).startswith("not measured (")


def test_each_answer_is_in_one_fold(answers: AnswersReport) -> None:
    lost, poor, unchecked, good = fold_answers(answers.questions).values()
    assert lost == []
    assert [one.query_id for one in poor] == ["balance", "wrongly"]
    assert [one.query_id for one in unchecked] == ["plain"]
    assert [one.query_id for one in good] == ["far"]
    accepted = AcceptedAnswer("Glue.", (), ("glue",))
    losing = [replace(one, accepted=accepted) for one in answers.questions[:1]]
    assert [len(fold) for fold in fold_answers(losing).values()] == [1, 0, 0, 0]


def test_the_page_shows_each_answer_with_its_facts(
    report: EvaluationReport, answers: AnswersReport
) -> None:
    page = read_page(render_html(report, [report], (), answers))
    assert TITLE in page.text
    assert "found: capture point" in page.text
    assert "missed: glue" in page.text
    assert "Answers from selected text (3)" in page.text
    assert "Main passages about the terms of the glossary (2)" in page.text
    assert "What is capture point?" in page.text
    assert all(one.text in page.text for one in answers.questions)


def test_the_page_shows_the_accepted_answers(
    report: EvaluationReport, answers: AnswersReport
) -> None:
    first = replace(
        answers.questions[0], accepted=AcceptedAnswer("Use glue.", ("capture point",), ("glue",))
    )
    same = replace(answers.questions[1], accepted=AcceptedAnswer(answers.questions[1].text, (), ()))
    compared = replace(answers, questions=(first, same))
    page = read_page(render_html(report, [report], (), compared)).text
    assert "Facts of the accepted answer lost (1)" in page
    assert "gained since: capture point" in page
    assert "lost since: glue" in page
    assert "Use glue." in page
    assert "the same" in page


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
        accepted=AcceptedAnswer(HOSTILE + HOSTILE, (HOSTILE,), (HOSTILE,)),
    )
    selection = SelectionAnswer(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), 1.0, HOSTILE, 1, (HOSTILE,)
    )
    term = DefinitionAnswer(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        defined=False,
        flaw=HOSTILE,
        latency_ms=1.0,
        error=HOSTILE,
    )
    hostile = replace(
        answers,
        model=HOSTILE,
        questions=(result,),
        selections=(selection,),
        terms=(term,),
        halves={HOSTILE: answers.overall},
        latency_ms={HOSTILE: Spread(1, 1, 1, 1)},
    )
    page = read_page(render_html(report, [report], (), hostile))
    assert page.tags.isdisjoint({"script", "img"})
    assert page.text.count("<script>") >= 31


def test_answers_are_written_beside_the_report(
    tmp_path: Path, report: EvaluationReport, answers: AnswersReport
) -> None:
    files = write_report(report, tmp_path, (), answers)
    assert files.answers_path is not None
    written = json.loads(files.answers_path.read_bytes())
    assert written["questions"][0]["facts_found"] == ["capture point"]
    assert written["latency_ms"]["all"]["count"] == 4
    assert "answers" not in json.loads(files.json_path.read_bytes())
    assert write_report(report, tmp_path / "other").answers_path is None
    assert not (tmp_path / "other" / "answers.json").exists()
