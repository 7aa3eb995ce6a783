"""Evidence about the terms and words of a question, from a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.answering import apply_grounding_policy
from rag_pipeline.core.protocols import ALL_POINTS
from rag_pipeline.retrieval import Query, QueryFilters, open_index
from rag_pipeline.retrieval.evidence import UNRELATED
from rag_pipeline.retrieval.open_index import OpenIndex
from rag_pipeline.retrieval.search import MAX_TERMS, prepare_searches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.protocols import ChannelQuery
    from rag_pipeline.retrieval import Evidence, Retriever


def find_evidence(retriever: Retriever, query: Query) -> Evidence:
    """Return the evidence of a query in normal mode."""
    evidence = retriever.retrieve(query).evidence
    assert evidence is not None
    return evidence


def test_each_term_has_its_word_its_weight_and_whether_the_book_contains_it(
    retriever: Retriever,
) -> None:
    evidence = find_evidence(retriever, Query("Which grippers use_sim_time on a Quadrotor?"))
    terms = {entry.term: entry for entry in evidence.terms}
    assert terms["gripper"].known
    assert terms["gripper"].word == "grippers"
    assert terms["use_sim_time"].known
    assert not terms["quadrotor"].known
    assert all(entry.weight > 0 for entry in evidence.terms)
    assert evidence.model.startswith("local/all-MiniLM")


def test_rarer_terms_weigh_more(retriever: Retriever) -> None:
    evidence = find_evidence(retriever, Query("scanner rubber"))
    scanner, rubber = evidence.terms
    assert rubber.weight > scanner.weight


def test_filters_change_the_chunk_count_but_not_the_term_weights(retriever: Retriever) -> None:
    question = "How does a gripper close?"
    whole = find_evidence(retriever, Query(question))
    part = find_evidence(retriever, Query(question, filters=QueryFilters(modules=["module-2"])))
    assert 0 < part.chunk_count < whole.chunk_count
    assert part.terms == whole.terms


def test_each_query_of_a_batch_has_its_own_evidence(retriever: Retriever) -> None:
    queries = [
        Query("soft gripper"),
        Query("what is it"),
        Query("lidar", filters=QueryFilters(tags=["none"])),
    ]
    together = [result.evidence for result in retriever.retrieve_many(queries)]
    assert together == [retriever.retrieve(query).evidence for query in queries]
    assert together[1] is not None
    assert together[1].terms == ()
    assert together[2] is not None
    assert together[2].chunk_count == 0


@pytest.mark.parametrize(
    ("lasting", "age_s", "looked_up"),
    [(True, -1.0, [2, 1]), (False, 30.0, [2, 1]), (False, -1.0, [2, 3])],
)
def test_a_term_is_looked_up_again_only_if_the_collection_can_change_and_the_weight_is_old(
    retriever: Retriever,
    monkeypatch: pytest.MonkeyPatch,
    age_s: float,
    looked_up: list[int],
    *,
    lasting: bool,
) -> None:
    monkeypatch.setattr(open_index, "_READ_AGE_S", age_s)
    asked: list[int] = []
    with retriever.session.use() as index:
        book = OpenIndex(index, Bm25Encoder(), lasting=lasting)
        search_many = index.search_many

        def count_queries(queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
            asked.append(len(queries))
            return search_many(queries)

        monkeypatch.setattr(index, "search_many", count_queries)
        first, second = (
            book.search_and_weigh([], {ALL_POINTS: terms})[1][ALL_POINTS]
            for terms in (["gripper", "quokka"], ["gripper", "quokka", "scanner"])
        )
    assert asked == looked_up
    assert set(first) == {"gripper"}
    assert {term: second[term] for term in first} == first
    assert "scanner" in second


def test_words_are_compared_with_the_best_passages(retriever: Retriever) -> None:
    result = retriever.retrieve(Query("How does a soft gripper pick up a quokka, gripper?"))
    assert result.evidence is not None
    nearness = {entry.word: entry.nearness for entry in result.evidence.words}
    assert list(nearness) == ["soft", "gripper", "pick", "quokka"]
    assert nearness["gripper"] > nearness["quokka"]
    assert all(-1 <= value <= 1 for value in nearness.values())
    weights = {entry.term: entry.weight for entry in result.evidence.terms}
    assert [entry.weight for entry in result.evidence.words] == list(weights.values())


def test_words_are_compared_with_five_passages_for_every_top_k(retriever: Retriever) -> None:
    question = "What do rain and glass do to a scanner?"
    five, seven = (retriever.retrieve(Query(question, top_k=count)) for count in (5, 7))
    assert five.evidence == seven.evidence


def test_without_a_passage_or_a_content_word_no_words_are_compared(retriever: Retriever) -> None:
    for query in (Query("lidar", filters=QueryFilters(tags=["none"])), Query("what is it?")):
        assert find_evidence(retriever, query).words == ()


def test_a_long_question_is_weighed_by_its_first_terms(retriever: Retriever) -> None:
    question = " ".join(f"word{number}x" for number in range(300))
    evidence = find_evidence(retriever, Query(question))
    assert len(evidence.terms) == MAX_TERMS


def test_a_book_answers_its_own_questions_and_refuses_unrelated_questions(
    retriever: Retriever,
) -> None:
    for question, held in {
        "How does a soft gripper pick up an egg?": True,
        "How do nodes follow the clock of the simulator?": True,
        "What do rain and glass do to ranges of a laser scanner?": True,
        "What is the capital of France?": False,
        "Who won the football World Cup in 1998?": False,
    }.items():
        grounded = apply_grounding_policy(retriever.retrieve(Query(question)), question)
        assert grounded.sufficient_context == held, (question, grounded.confidence)


def test_unrelated_questions_are_measured_once_per_collection(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [Query(text) for text in UNRELATED]
    searches = prepare_searches(LocalEmbedder(), Bm25Encoder(), queries)
    with retriever.session.use() as index:
        opened = OpenIndex(index, Bm25Encoder(), lasting=True)
        assert opened.measure_unrelated(()) is None
        measured = opened.measure_unrelated(searches)
        monkeypatch.setattr(index, "search_many", lambda _: pytest.fail("asked again"))
        assert opened.measure_unrelated(searches) == measured
    assert measured is not None
    mean, deviation = measured
    monkeypatch.undo()
    asked = retriever.retrieve(Query("How does a soft gripper hold an object?")).chunks[0].channels
    assert asked is not None
    assert asked.dense > mean + deviation > mean


def test_a_model_with_windows_needs_no_unrelated_questions(retriever: Retriever) -> None:
    evidence = find_evidence(retriever, Query("soft gripper"))
    assert evidence.unrelated is None


def test_an_identifier_weighs_no_more_than_its_heaviest_term(retriever: Retriever) -> None:
    evidence = find_evidence(retriever, Query("use_sim_time"))
    found = {entry.term: entry.weight for entry in evidence.terms}
    (alone,) = find_evidence(retriever, Query("sim")).terms
    assert found["sim"] < alone.weight
    assert sum(found.values()) < len(found) * alone.weight


def test_words_of_the_form_weigh_little_and_are_not_compared(retriever: Retriever) -> None:
    asked = find_evidence(retriever, Query("code of a gripper"))
    weights = {entry.term: entry.weight for entry in asked.terms}
    assert weights["code"] < min(entry.weight for entry in asked.terms if entry.term != "code")
    assert [word.word for word in asked.words] == ["gripper"]
