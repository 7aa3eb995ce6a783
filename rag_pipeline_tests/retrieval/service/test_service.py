"""The search service: error codes, time limits, breaker and logs, with real stores and sockets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.retrieval import (
    CollectionMissingError,
    QueryEmptyError,
    QueryError,
    QueryFilters,
    RetrievalService,
    Retriever,
    ValidationFailedError,
    open_retriever,
)
from rag_pipeline.retrieval import service as service_module
from rag_pipeline.retrieval.hits import RESULT_RULES, check_results
from rag_pipeline.retrieval.logs import configure_logging
from rag_pipeline_tests.retrieval.disturbances import watch_lines
from rag_pipeline_tests.retrieval.indexed_book import make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings

QUESTION = "How can a hand pick up an egg?"


@pytest.fixture
def service(book_settings: Settings, retriever: Retriever) -> RetrievalService:
    """A service over the tiny book that writes no log files."""
    return RetrievalService(book_settings, retriever=retriever, log_to_files=False)


def test_a_search_response_has_the_field_names_of_the_validation_plan(
    service: RetrievalService,
) -> None:
    answer = service.search(QUESTION, k=3)
    assert json.loads(json.dumps(answer)) == answer
    assert (answer["query"], answer["status"], answer["total_results"]) == (QUESTION, "success", 3)
    assert set(answer["timings_ms"]) == {"embed", "search", "validate"}
    assert answer["latency_ms"] >= sum(answer["timings_ms"].values())
    shown = [result["similarity_score"] for result in answer["results"]]
    assert shown == sorted(shown, reverse=True)
    first = answer["results"][0]
    assert len(first["vector_id"]) == 16
    assert first["metadata"]["page_title"] == "Embodiment"
    assert first["metadata"]["url"].endswith("/embodiment#soft-grippers")
    assert first["metadata"]["chunk_index"] >= 0


def test_a_batch_returns_its_responses_in_order(service: RetrievalService) -> None:
    questions = [QUESTION, "Who receives the messages of a publisher?"]
    batch = service.batch_search(questions, k=2)
    assert [answer["query"] for answer in batch] == questions
    assert [answer["results"] for answer in batch] == [
        service.search(question, k=2)["results"] for question in questions
    ]
    assert service.batch_search([]) == []
    with pytest.raises(QueryError, match="at most 100 queries, not 101"):
        service.batch_search(["x"] * 101)
    with pytest.raises(QueryEmptyError, match="query 2: the question is empty"):
        service.batch_search([QUESTION, " "])
    for not_a_batch in ("one text, not a batch", None, 5):
        with pytest.raises(QueryError, match="list of questions"):
            service.batch_search(not_a_batch)  # type: ignore[arg-type]  # an invalid argument on purpose
    assert len(service.batch_search(question for question in questions)) == 2


def test_unpaired_surrogates_never_reach_a_response(service: RetrievalService) -> None:
    question = json.loads(r'"egg \ud83d"')
    for answer in (service.search(question), service.validate_retrieval(question)):
        assert json.loads(json.dumps(answer, ensure_ascii=False).encode())["query"] == "egg ?"


def test_filters_restrict_a_search(service: RetrievalService) -> None:
    answer = service.search("ranges", k=5, filters=QueryFilters(modules=["module-2"]))
    assert {result["metadata"]["module"] for result in answer["results"]} == {"module-2"}


@pytest.mark.parametrize(
    ("question", "k", "code"),
    [
        ("", 5, "QUERY_EMPTY"),
        (" \t", 5, "QUERY_EMPTY"),
        ("x" * 5001, 5, "QUERY_TOO_LONG"),
        ("x", 0, "INVALID_K"),
        ("x", 101, "INVALID_K"),
    ],
)
def test_each_kind_of_invalid_query_has_its_error_code(
    service: RetrievalService, question: str, k: int, code: str
) -> None:
    with watch_lines() as lines, pytest.raises(RagPipelineError) as caught:
        service.search(question, k=k)
    assert (caught.value.code, caught.value.http_status) == (code, 400)
    assert [line["error_code"] for line in lines] == [code]


def test_a_validation_report_lists_every_rule(service: RetrievalService) -> None:
    report = service.validate_retrieval(QUESTION)
    assert report["passed"]
    assert set(report["checks"]) == {
        "rank_order", "score_bounds", "unique_ids", "required_fields", "urls",
        "deterministic", "not_empty",
    }  # fmt: skip
    assert not any(report["checks"].values())


def test_strict_validation_raises_if_a_rule_is_broken(
    service: RetrievalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "check_results", lambda *_: {"urls": "no address"})
    assert service.validate_retrieval(QUESTION)["passed"] is False
    with pytest.raises(ValidationFailedError) as caught:
        service.validate_retrieval(QUESTION, strict=True)
    assert (caught.value.code, caught.value.http_status) == ("VALIDATION_FAILED", 422)
    with pytest.raises(RagPipelineError) as invalid:
        service.search(QUESTION)
    assert (invalid.value.code, invalid.value.http_status) == ("INVALID_RESULT", 500)


def test_the_rules_have_their_documented_names() -> None:
    assert [rule.name for rule in RESULT_RULES] == [
        "rank_order", "score_bounds", "unique_ids", "required_fields", "urls",
    ]  # fmt: skip


def test_each_rule_detects_results_that_break_it(retriever: Retriever) -> None:
    from rag_pipeline.retrieval import Query  # noqa: PLC0415  # used only here

    first, second = retriever.retrieve(Query(QUESTION)).chunks[:2]
    no_title = replace(first, metadata=replace(first.metadata, title=" "))
    no_url, half_url = (
        replace(first, citation=replace(first.citation, url=url))
        for url in ("javascript:alert(1)", "http://[::1")
    )
    broken = [
        ("rank_order", [second, replace(first, score=1.0)]),
        ("score_bounds", [replace(first, score=float("nan"))]),
        ("unique_ids", [first, first]),
        ("required_fields", [no_title]),
        ("urls", [no_url]),
        ("urls", [half_url]),
    ]
    for rule, chunks in broken:
        assert check_results(chunks)[rule], rule
    assert not any(check_results([first, second]).values())


def test_stats_are_counted_once_and_cached(service: RetrievalService) -> None:
    stats = service.get_stats()
    assert stats["vector_dimension"] == 384
    assert stats["total_vectors"] == stats["vector_count"] > 10
    assert stats["collection_name"] == "textbook_chunks"
    assert stats["memory_usage"].endswith(" MB")
    assert service.get_stats() is stats


def test_a_service_without_a_collection_says_to_run_ingest(tmp_path: Path) -> None:
    with pytest.raises(CollectionMissingError, match="rag-pipeline ingest"):
        RetrievalService(make_settings(tmp_path), log_to_files=False)


def test_ten_threads_can_share_a_service(service: RetrievalService) -> None:
    expected = service.search(QUESTION)["results"]
    with ThreadPoolExecutor(10) as callers:
        answers = list(callers.map(lambda _: service.search(QUESTION)["results"], range(20)))
    assert answers == [expected] * 20


def test_log_lines_are_json_without_the_question(service: RetrievalService) -> None:
    with watch_lines() as lines:
        service.search(QUESTION)
        service.batch_search([QUESTION, QUESTION])
    assert [line["operation"] for line in lines] == ["search", "batch_search"]
    for line in lines:
        assert line["status"] == "success"
        assert line["level"] == "info"
        assert line["timestamp"].endswith("Z")
        assert {"embed_ms", "search_ms", "validate_ms", "total_ms", "result_count"} <= set(line)
        assert "egg" not in json.dumps(line)
    assert lines[1]["questions"] == 2


def test_every_operation_refuses_and_logs_a_question_that_is_none(
    service: RetrievalService,
) -> None:
    nothing: Any = None
    with watch_lines() as lines:
        for operation in (service.search, service.validate_retrieval):
            with pytest.raises(QueryError) as caught:
                operation(nothing)
            assert caught.value.code == "QUERY_INVALID"
    assert [(line["operation"], line["error_code"]) for line in lines] == [
        ("search", "QUERY_INVALID"),
        ("validate_retrieval", "QUERY_INVALID"),
    ]


def test_logs_go_to_the_console_and_to_a_file_in_the_state_folder(
    book_settings: Settings, retriever: Retriever, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        logged = RetrievalService(book_settings, retriever=retriever)
        logged.search(QUESTION)
        file = book_settings.state_dir / "logs" / "retrieval.log"
        assert file.stat().st_mode & 0o777 == 0o600
        written = file.read_text("utf-8")
        assert json.loads(written.splitlines()[-1])["operation"] == "search"
        assert json.loads(capsys.readouterr().err.splitlines()[-1])["operation"] == "search"
    finally:
        configure_logging(None, console=False)


def test_a_log_folder_that_cannot_be_created_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"DATA_DIR.*log_to_files"):
        configure_logging(tmp_path / "file" / "logs", console=False)


def test_a_service_opens_the_collection_that_its_settings_name(book_settings: Settings) -> None:
    service = RetrievalService(book_settings, log_to_files=False)
    try:
        assert service.search(QUESTION, k=1)["total_results"] == 1
    finally:
        service.close()
    with open_retriever(book_settings) as again:  # the service has released the store
        again.probe()
