"""Accepted answers: stored with the baseline, read back, and compared with new answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import BaselineRefusedError, EvaluationFileError
from rag_pipeline.evaluation.answers import compare_answers, make_baseline
from rag_pipeline.evaluation.book import BASELINE_PATH
from rag_pipeline.evaluation.golden_set import load_golden_set
from rag_pipeline.evaluation.records import AcceptedAnswer
from rag_pipeline.evaluation.rendering import accept, load_accepted_answers
from rag_pipeline_tests.evaluation.generated_book import KnowingRetriever, evaluate_generated_book
from rag_pipeline_tests.evaluation.test_answers import run

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import AnswersReport


@pytest.fixture(scope="module")
def answers() -> AnswersReport:
    return run()


def test_accepted_answers_are_stored_beside_the_baseline(
    tmp_path: Path, answers: AnswersReport
) -> None:
    path = tmp_path / "kept" / "baseline.json"
    assert load_accepted_answers(path) is None
    accept(evaluate_generated_book(KnowingRetriever()), path, answers)
    assert load_accepted_answers(path) == make_baseline(answers)
    assert (path.parent / "baseline_answers.json").is_file()


def test_a_failed_answer_cannot_become_the_baseline(tmp_path: Path, answers: AnswersReport) -> None:
    path = tmp_path / "baseline.json"
    term = replace(answers.terms[0], error="AnswerError: no")
    failed = replace(answers, terms=(term, *answers.terms[1:]))
    with pytest.raises(BaselineRefusedError, match="AnswerError: no"):
        accept(evaluate_generated_book(KnowingRetriever()), path, failed)
    assert not path.exists()


def test_a_damaged_file_of_answers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "baseline_answers.json"
    path.write_text('{"report_version": 99, "accepted_at": "", "model": null, "answers": {}}')
    with pytest.raises(EvaluationFileError, match="version 99, not 1"):
        load_accepted_answers(tmp_path / "baseline.json")
    path.write_text("{}")
    with pytest.raises(EvaluationFileError, match="baseline_answers"):
        load_accepted_answers(tmp_path / "baseline.json")


def test_each_answer_is_compared_with_the_accepted_one(answers: AnswersReport) -> None:
    baseline = make_baseline(answers)
    balance, plain, wrongly, far = answers.questions
    changed = {
        balance.query_id: replace(baseline.answers["balance"], text="Use glue [1]."),
        plain.query_id: replace(baseline.answers["plain"], question="Another wording?"),
        wrongly.query_id: baseline.answers["wrongly"],
    }
    compared = compare_answers(answers, replace(baseline, answers=changed)).questions
    assert compared[0].accepted == AcceptedAnswer("Use glue [1].", ("capture point",), ("glue",))
    assert compared[1].accepted is None
    # The refusal contains the word "sections", but a refusal contains no facts.
    assert compared[2].accepted == AcceptedAnswer(wrongly.text, (), ())
    assert compared[3] == far
    assert compare_answers(answers, None) == answers


def test_the_accepted_answers_of_the_textbook_are_about_its_questions() -> None:
    baseline = load_accepted_answers(BASELINE_PATH)
    assert baseline is not None
    known = {query.id for query in load_golden_set().queries}
    assert known.issuperset(baseline.answers)
    assert len(baseline.answers) >= 300
