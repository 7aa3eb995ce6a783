"""Tests of the golden set's conversations, and of how the right pages are counted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.answering import Turn
from rag_pipeline.answering.conversation import complete_question
from rag_pipeline.core.errors import GoldenSetError, StoreTimeoutError
from rag_pipeline.evaluation.gates import GateResult, check_gates
from rag_pipeline.evaluation.golden_set import (
    CONVERSATIONS_PATH,
    QUESTIONS_PATH,
    Conversation,
    ExpectedPage,
    GoldenSet,
    load_golden_set,
    validate_against_corpus,
)
from rag_pipeline.evaluation.report import search_follow_ups
from rag_pipeline_tests.answering.factories import make_chunk, make_result
from rag_pipeline_tests.evaluation.generated_book import (
    KnowingRetriever,
    evaluate_once,
)
from rag_pipeline_tests.evaluation.golden_pages import read_book

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.retrieval import Query, RetrievalResult

ENTRY: dict[str, Any] = {
    "id": "one",
    "first": "What is a gyroscope?",
    "question": "And why?",
    "kind": "follow_up",
    "split": "tune",
    "expected": [{"doc_path": "module-1/1.1-start/page.md"}],
}


CONVERSATIONS = load_golden_set(QUESTIONS_PATH, CONVERSATIONS_PATH).conversations


@dataclass(frozen=True, slots=True)
class GyroscopeRetriever:
    """A retriever that finds its only page for questions with the word gyroscope."""

    fails: bool = False

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the page or nothing.

        Raises:
            StoreTimeoutError: `fails` is true.
        """
        if self.fails:
            message = "the store did not answer"
            raise StoreTimeoutError(message)
        found = [make_chunk()] if "gyroscope" in query.question else []
        return make_result(query.question, found)


def make_conversation(**values: Any) -> Conversation:  # noqa: ANN401  # fields of any type
    fields: dict[str, Any] = {
        "id": "one",
        "first": "What is a gyroscope?",
        "question": "And why?",
        "kind": "follow_up",
        "expected": (ExpectedPage("module-1/1.1-start/page.md"),),  # type: ignore[arg-type]  # a checked path
        "half": "report",
    }
    return Conversation(**fields | values)


def test_the_golden_set_has_enough_conversations_in_both_halves() -> None:
    counts = Counter((one.kind, one.half) for one in CONVERSATIONS)
    assert counts["follow_up", "tune"] >= 20
    assert counts["follow_up", "report"] >= 20
    assert counts["new_topic", "tune"] + counts["new_topic", "report"] >= 15


def test_the_expected_pages_exist_in_the_book() -> None:
    documents = [page.document for page in read_book().values()]
    golden = GoldenSet(conversations=CONVERSATIONS)
    assert validate_against_corpus(golden, documents) == golden
    with pytest.raises(GoldenSetError, match=r"follow_up-01.: expected\[0\].doc_path .+ not exist"):
        validate_against_corpus(golden, [])


def test_a_change_of_topic_is_searched_as_asked() -> None:
    for one in CONVERSATIONS:
        if one.kind == "new_topic":
            assert complete_question(one.question, [Turn(one.first)]) == one.question


def test_no_question_of_the_golden_set_is_changed_by_an_earlier_turn() -> None:
    queries = load_golden_set().queries
    asked = [query.question for query in queries]
    asked += [query.paraphrase for query in queries if query.paraphrase]
    turns = [Turn("What is the zero moment point?")]
    assert [text for text in asked if complete_question(text, turns) != text] == []


def judge(found: Sequence[bool]) -> GateResult:
    """Return the result of the gate on follow-up questions."""
    gates = check_gates(evaluate_once(KnowingRetriever), None, found)
    return next(gate for gate in gates if gate.name == "follow_ups_found")


def test_a_follow_up_is_searched_together_with_the_first_question() -> None:
    assert search_follow_ups([make_conversation()], GyroscopeRetriever()) == [True]
    other = make_conversation(first="What is a camera?")
    assert search_follow_ups([other], GyroscopeRetriever()) == [False]


def test_a_search_that_fails_finds_no_page() -> None:
    assert search_follow_ups([make_conversation()], GyroscopeRetriever(fails=True)) == [False]


def test_the_gate_counts_only_follow_ups_of_the_report_half() -> None:
    conversations = [
        make_conversation(),
        make_conversation(first="What is a camera?"),
        make_conversation(first="What is a camera?", half="tune"),
        make_conversation(question="How do motors heat?", kind="new_topic"),
    ]
    gate = judge(search_follow_ups(conversations, GyroscopeRetriever()))
    assert (gate.value, gate.passed) == (0.5, False)


def test_the_gate_is_not_measured_without_conversations() -> None:
    assert judge(()).verdict == "not measured"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "other"}, "query 'one': kind"),
        ({"question": " "}, "query 'one': question"),
        ({"expected": []}, "query 'one': expected"),
        ({"expected": [{"doc_path": "../x.md"}]}, r"query 'one': expected\[0\].doc_path"),
        ({"split": "half"}, "query 'one': split"),
    ],
)
def test_an_invalid_conversation_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps({"conversations": [ENTRY | changes]}), "utf-8")
    with pytest.raises(GoldenSetError, match=message):
        load_golden_set(QUESTIONS_PATH, path)


def test_a_repeated_id_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps({"conversations": [ENTRY, ENTRY]}), "utf-8")
    with pytest.raises(GoldenSetError, match="'one': the id occurs 2 times"):
        load_golden_set(QUESTIONS_PATH, path)
    with pytest.raises(GoldenSetError, match="cannot be read"):
        load_golden_set(QUESTIONS_PATH, tmp_path / "missing.json")
