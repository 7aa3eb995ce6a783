"""Queries that are valid or refused, and the filters of a query."""

from __future__ import annotations

from typing import Any

import pytest

from rag_pipeline.retrieval import (
    InvalidKError,
    Query,
    QueryEmptyError,
    QueryError,
    QueryFilters,
    QueryTooLongError,
    Retriever,
)
from rag_pipeline_tests.retrieval.retriever.questions import QUESTIONS, outline


@pytest.mark.parametrize(
    ("filters", "allowed"),
    [
        (QueryFilters(modules=["module-2"]), {"module-2"}),
        (QueryFilters(chapters=["1.2-ros2", "2.1-sensors"]), {"module-1", "module-2"}),
        (QueryFilters(modules=("module-1", "module-2")), {"module-1", "module-2"}),
        (QueryFilters(modules=["module-2"] * 50), {"module-2"}),
    ],
)
def test_filters_restrict_the_results(
    retriever: Retriever, filters: QueryFilters, allowed: set[str]
) -> None:
    result = retriever.retrieve(Query("How are things measured?", filters=filters, top_k=20))
    assert result.chunks
    assert {hit.metadata.module for hit in result.chunks} <= allowed
    if filters.chapters:
        assert {hit.metadata.chapter for hit in result.chunks} == set(filters.chapters)


def test_a_query_can_be_restricted_to_pages(retriever: Retriever) -> None:
    whole = retriever.retrieve(Query("How are things measured?", top_k=20))
    pages = {hit.metadata.doc_path for hit in whole.chunks}
    assert len(pages) > 2
    page, other, *_ = sorted(pages)
    for wanted in ([page], [page, other]):
        filters = QueryFilters(doc_paths=wanted)
        found = retriever.retrieve(Query("How are things measured?", filters=filters, top_k=20))
        assert {hit.metadata.doc_path for hit in found.chunks} == set(wanted)
    nothing = QueryFilters(doc_paths=[page], modules=["module-7"])
    assert retriever.retrieve(Query("x", filters=nothing)).chunks == ()


def test_the_message_of_a_bound_says_how_much_is_allowed(retriever: Retriever) -> None:
    with pytest.raises(QueryError, match=r"tags has 51 values, but the limit is 50"):
        retriever.retrieve(Query("x", filters=QueryFilters(tags=["ros2"] * 51)))
    with pytest.raises(QueryError, match=r"20,001 characters, but the limit is 20,000"):
        retriever.retrieve(Query("x", selected_text="x" * 20_001))


def test_all_filters_of_a_query_apply_together(retriever: Retriever) -> None:
    filters = QueryFilters(modules=["module-2"], content_types=["lab"], tags=["practice", "other"])
    result = retriever.retrieve(Query("noise of the scanner", filters=filters))
    assert {hit.metadata.doc_path for hit in result.chunks} == {
        "module-2/2.1-sensors/lab-exercises.md"
    }


def test_an_unknown_module_has_no_hits_and_an_unknown_content_type_is_an_error(
    retriever: Retriever,
) -> None:
    assert retriever.retrieve(Query("x", filters=QueryFilters(modules=["module-7"]))).chunks == ()
    with pytest.raises(QueryError, match="prose, code, table, lab, quiz, assessment"):
        retriever.retrieve(Query("x", filters=QueryFilters(content_types=["essay"])))


def test_a_filter_with_an_unpaired_surrogate_has_no_hits(retriever: Retriever) -> None:
    broken = QueryFilters(tags=["half a pair: \ud800"])
    assert retriever.retrieve(Query("x", filters=broken)).chunks == ()


def test_white_space_at_the_ends_of_a_question_does_not_count(retriever: Retriever) -> None:
    assert retriever.retrieve(Query("ranges".ljust(4_000) + "scanner" + "\n" * 2_000)).chunks


def test_an_empty_filter_does_not_restrict(retriever: Retriever) -> None:
    plain = retriever.retrieve(Query(QUESTIONS[5]))
    empty = retriever.retrieve(Query(QUESTIONS[5], filters=QueryFilters(modules=[], tags=())))
    assert outline(plain) == outline(empty)


def test_top_k_can_be_set_in_the_filters_or_in_the_query(retriever: Retriever) -> None:
    assert len(retriever.retrieve(Query("robot", filters=QueryFilters(top_k=2))).chunks) == 2
    both = Query("robot", filters=QueryFilters(top_k=2), top_k=3)
    assert len(retriever.retrieve(both).chunks) == 3


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(""), QueryEmptyError),
        (Query(" \n\t"), QueryEmptyError),
        (Query("\u200b\u3000\x00"), QueryEmptyError),  # no visible character
        (Query("x" * 5001), QueryTooLongError),
        (Query("x", top_k=0), InvalidKError),
        (Query("x", top_k=101), InvalidKError),
        (Query("x", top_k=True), InvalidKError),
        (Query("x", top_k=2.5), InvalidKError),  # type: ignore[arg-type]  # an invalid argument on purpose
        (Query("x", filters=QueryFilters(top_k=-1)), InvalidKError),
        (Query("x", filters=QueryFilters(modules="module-1")), QueryError),
        (Query("x", filters=QueryFilters(tags=[1])), QueryError),  # type: ignore[list-item]  # the same
        (Query("x", filters=QueryFilters(tags=7)), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", filters=QueryFilters(tags=["ros2"] * 51)), QueryError),
        (Query("x", filters=QueryFilters(doc_paths=list(map(str, range(50_000))))), QueryError),
        (Query("x", selected_text="x" * 20_001), QueryError),
        (Query("x", mode="all"), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", mode=["normal"]), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", filters={"modules": ["module-1"]}), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", selected_text=b"text"), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", source_doc_path=7), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", source_section=["A"]), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", expand_to_section_tokens=0), QueryError),
    ],
)
def test_invalid_queries_are_value_errors_with_http_status_400(
    retriever: Retriever, query: Query, error: type[QueryError]
) -> None:
    with pytest.raises(error) as caught:
        retriever.retrieve(query)
    assert isinstance(caught.value, ValueError)
    assert caught.value.http_status == 400


@pytest.mark.parametrize(
    "question",
    ["a", "123", "special@chars!", "???", "日本語のロボット", "\ud800 lone", "x\x00y", "w " * 2500],
)
def test_unusual_questions_have_results(retriever: Retriever, question: str) -> None:
    assert len(retriever.retrieve(Query(question)).chunks) == 5


def test_a_string_instead_of_a_query_is_refused(retriever: Retriever) -> None:
    text: Any = "How can a hand pick up an egg?"
    with pytest.raises(QueryError, match=r"Query\("):
        retriever.retrieve(text)
    with pytest.raises(QueryError, match="query 2: "):
        retriever.retrieve_many([Query(text), text])
