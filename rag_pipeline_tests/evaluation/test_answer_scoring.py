"""Scores of answers on plain data: facts, dangling starts, whole passages, and group figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.evaluation.answers import (
    find_facts,
)
from rag_pipeline.evaluation.measures import (
    compute,
    group_by,
    list_measures,
    tabulate,
)
from rag_pipeline.evaluation.records import (
    AnswerResult,
    AnswerScores,
    DefinitionAnswer,
    DefinitionScores,
    PassageScores,
    SelectionAnswer,
    SelectionScores,
)

RESULT = AnswerResult(
    query_id="q1",
    question="How fast?",
    category="fact",
    half="report",
    answerable=True,
    kind="extracted",
)
SELECTION = SelectionAnswer(
    case_id="c", question="Why?", relation="related", kind="extracted", leaks=(), passage_count=1
)


@pytest.mark.parametrize(
    ("facts", "text", "found"),
    [
        (["400 ?hz"], "It runs at 400\n  Hz. [1]", ["400 ?hz"]),
        (["400 ?hz", "gyro"], "It runs at 400Hz.", ["400 ?hz"]),
        ([r"\b2\b"], "It drifts [2].", []),
        ([r"at 400 Hz, then"], "It runs at 400 Hz [1], then stops.", ["at 400 Hz, then"]),
        ([r"values\[1\]"], "Read `values[1]` first. [1]", [r"values\[1\]"]),
        ([], "Anything.", []),
    ],
)
def test_facts_are_found_regardless_of_case_white_space_and_citations(
    facts: list[str], text: str, found: list[str]
) -> None:
    missed = tuple(fact for fact in facts if fact not in found)
    assert find_facts(facts, text) == (tuple(found), missed)


def test_the_figures_of_a_group_count_each_kind_of_case() -> None:
    right = replace(RESULT, facts_found=("a", "b"), sections=("A", "B"))
    half = replace(
        RESULT,
        facts_found=("a",),
        facts_missed=("b",),
        sections=("A",),
    )
    refused = replace(RESULT, kind="refused", facts_missed=("a",))
    failed = replace(RESULT, kind=None, facts_missed=("a",), error="AnswerError: no")
    rightly = replace(RESULT, kind="refused", answerable=False)
    plain = replace(RESULT, kind="generated", sentence_count=4, unsupported=("x",))
    scores = compute(AnswerScores, [right, half, refused, failed, rightly, plain])
    assert scores.question_count == 6
    assert (scores.facts.mean, scores.facts.count) == (0.25, 4)
    assert (scores.wrongly_refused.mean, scores.wrongly_refused.count) == (0.2, 5)
    assert (scores.rightly_refused.mean, scores.rightly_refused.count) == (1.0, 1)
    assert (scores.supported.mean, scores.supported.count) == (0.75, 4)


def test_a_group_without_cases_has_no_figures() -> None:
    scores = compute(AnswerScores, [])
    assert (scores.question_count, scores.facts, scores.supported) == (0, None, None)


def test_a_declared_measure_is_a_row_with_its_label_and_goal() -> None:
    rows = tabulate(compute(AnswerScores, [RESULT]))
    assert ("refused although answerable", "0.000 [0.000, 0.793] n=1", "at most 0.05") in rows
    assert "facts contained" not in {label for label, _, _ in rows}  # no question has facts
    assert "facts contained" in {one.label for one in list_measures(AnswerScores).values()}


def test_groups_are_sorted_by_name() -> None:
    results = [RESULT, replace(RESULT, half="tune"), RESULT]
    groups = group_by(results, lambda result: [result.half])
    assert [(name, len(group)) for name, group in groups.items()] == [("report", 2), ("tune", 1)]
    assert list(group_by(results[::-1], lambda result: [result.half])) == ["report", "tune"]


def test_selections_are_scored_by_relation() -> None:
    def answer(relation: str, kind: str | None, *leaks: str) -> SelectionAnswer:
        error = None if kind else "AnswerError: no"
        return replace(SELECTION, relation=relation, kind=kind, leaks=leaks, error=error)

    scores = compute(
        SelectionScores,
        [
            answer("related", "extracted"),
            answer("related", "refused"),
            answer("related", None),
            answer("related", "generated", "leaked"),
            answer("unrelated", "refused"),
            answer("unrelated", None),
            answer("injected", "extracted", "leaked", "twice"),
        ],
    )
    assert (scores.case_count, scores.leak_count, scores.failure_count) == (7, 2, 2)
    assert (scores.related_answered.mean, scores.related_answered.count) == (0.5, 4)
    assert (scores.unrelated_refused.mean, scores.unrelated_refused.count) == (0.5, 2)
    assert compute(SelectionScores, []).related_answered is None


def test_the_share_of_whole_passages_counts_questions_and_selections() -> None:
    two = replace(RESULT, passage_count=2)
    broken = replace(RESULT, passage_count=1, broken_passages=("x",))
    empty = replace(RESULT, passage_count=0)
    generated = replace(RESULT, kind="generated", passage_count=0)
    whole = compute(PassageScores, [two, broken, empty, generated, SELECTION]).whole
    assert (whole.mean, whole.count) == (3 / 5, 5)
    assert compute(PassageScores, [generated]).whole is None


def test_terms_are_scored_by_their_main_passage() -> None:
    term = DefinitionAnswer(
        question="What is rye?",
        kind="extracted",
        term="Rye",
        passage="A grain.",
        place="a.md:1",
        defined=True,
        flaw=None,
    )
    failed = replace(term, kind=None, defined=False, error="AnswerError: no")
    terms = [term, term, replace(term, defined=False, flaw="code"), failed]
    scores = compute(DefinitionScores, terms)
    assert (scores.defined.mean, scores.defined.count, scores.flawed) == (0.5, 4, 1)
    assert compute(DefinitionScores, []) == DefinitionScores(None, 0)
