"""The search service: error codes, time limits, breaker and logs, with real stores and sockets."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any, cast

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.adapters.embedders.openai import OpenAIEmbedder
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingServiceError,
    RagPipelineError,
)
from rag_pipeline.core.vectors import FORMAT_VERSION, ChunkVectors, EmbeddingSpace
from rag_pipeline.retrieval import (
    CollectionMissingError,
    QueryEmptyError,
    QueryError,
    QueryFilters,
    RetrievalService,
    Retriever,
    ServiceLimits,
    ValidationFailedError,
    open_retriever,
)
from rag_pipeline.retrieval import service as service_module
from rag_pipeline.retrieval.hits import RESULT_RULES, check_results
from rag_pipeline.retrieval.protection.logs import configure_logging
from rag_pipeline.retrieval.store_session import StoreSession
from rag_pipeline_tests.adapters.embedders.test_openai import KEY, answer_well
from rag_pipeline_tests.loopback import HANG, MALFORMED, RESET, Reply, find_closed_port, serve
from rag_pipeline_tests.retrieval.disturbances import FlakySession, watch_lines
from rag_pipeline_tests.retrieval.indexed_book import make_catalog, make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point

QUESTION = "How can a hand pick up an egg?"
QDRANT_KEY = "qdrant-secret-0123456789abcdef"
QUICK = ServiceLimits(query_s=8.0, batch_s=12.0, breaker_failures=2, breaker_reset_s=60.0)


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
    monkeypatch.setattr(service_module, "check_results", lambda _: {"urls": "no address"})
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


def test_a_service_can_be_used_in_a_with_block(
    book_settings: Settings, retriever: Retriever
) -> None:
    with RetrievalService(book_settings, retriever=retriever, log_to_files=False) as opened:
        assert opened.search(QUESTION)["status"] == "success"


def test_the_question_is_logged_if_the_settings_ask_for_it(
    book_settings: Settings, retriever: Retriever
) -> None:
    settings = book_settings.model_copy(update={"log_questions": True})
    talkative = RetrievalService(settings, retriever=retriever, log_to_files=False)
    with watch_lines() as lines:
        talkative.search(QUESTION)
    assert lines[0]["query"] == QUESTION


def test_logs_go_to_the_console_and_to_a_file_in_the_state_folder(
    book_settings: Settings, retriever: Retriever, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        logged = RetrievalService(book_settings, retriever=retriever)
        logged.search(QUESTION)
        written = (book_settings.state_dir / "logs" / "retrieval.log").read_text("utf-8")
        assert json.loads(written.splitlines()[-1])["operation"] == "search"
        assert json.loads(capsys.readouterr().err.splitlines()[-1])["operation"] == "search"
    finally:
        configure_logging(None, console=False)


def test_a_log_folder_that_cannot_be_created_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"DATA_DIR.*log_to_files"):
        configure_logging(tmp_path / "file" / "logs", console=False)


@pytest.fixture
def flaky(retriever: Retriever) -> FlakySession:
    """A session over the tiny book that can be made to fail or hang."""
    return FlakySession(retriever.session)


def make_service(
    settings: Settings, session: object, limits: ServiceLimits = QUICK
) -> RetrievalService:
    """Return a service with the local model over the given session."""
    store: Any = session
    retriever = Retriever(LocalEmbedder(), Bm25Encoder(), store)
    return RetrievalService(settings, retriever=retriever, limits=limits, log_to_files=False)


def expect_code(service: RetrievalService, code: str, status: int) -> RagPipelineError:
    """Check that a search fails with the error code and HTTP status, and return the error."""
    with pytest.raises(RagPipelineError) as caught:
        service.search(QUESTION)
    assert (caught.value.code, caught.value.http_status) == (code, status)
    return caught.value


def test_the_breaker_opens_after_failures_and_closes_after_a_successful_probe(
    book_settings: Settings, flaky: FlakySession
) -> None:
    service = make_service(book_settings, flaky)
    flaky.failing = True
    for _ in range(2):
        expect_code(service, "QDRANT_CONNECTION_ERROR", 503)
    uses = flaky.uses
    refused = expect_code(service, "QDRANT_CONNECTION_ERROR", 503)
    assert "calls are paused" in str(refused)
    assert refused.retry_after_s is not None
    assert flaky.uses == uses
    flaky.failing = False
    service.retriever.protection.store._clock = lambda: time.monotonic() + QUICK.breaker_reset_s  # noqa: SLF001  # moves the clock instead of waiting
    assert service.search(QUESTION)["total_results"] == 5
    assert service.search(QUESTION)["total_results"] == 5


@pytest.mark.slow
def test_a_search_times_out_when_the_store_hangs(
    book_settings: Settings, flaky: FlakySession
) -> None:
    service = make_service(book_settings, flaky, replace(QUICK, query_s=6.0))
    service.search(QUESTION)
    flaky.hang = Event()
    start = time.perf_counter()
    expect_code(service, "QDRANT_TIMEOUT", 504)
    assert time.perf_counter() - start < 25.0
    flaky.hang.set()


def test_callers_of_stats_do_not_wait_for_each_other(
    book_settings: Settings, flaky: FlakySession
) -> None:
    service = make_service(book_settings, flaky)
    flaky.hang = Barrier(3)  # the store answers when three callers are in it
    with ThreadPoolExecutor(3) as callers:
        assert len(list(callers.map(lambda _: service.get_stats(), range(3)))) == 3


def open_on_server(url: str, settings: Settings) -> RetrievalService:
    """Return a service whose store is a Qdrant server at the URL."""
    embedder = LocalEmbedder()
    connection = connect_server(url, api_key=QDRANT_KEY, timeout_s=0.3, sleep=lambda _: None)
    session = StoreSession(
        QdrantCatalog(connection, "textbook_chunks"),
        EmbeddingSpace(embedder.model, FORMAT_VERSION),
        1.0,
        is_exclusive=False,
    )
    return make_service(settings, session, replace(QUICK, query_s=20.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "code", "status"),
    [
        (HANG, "QDRANT_TIMEOUT", 504),
        (RESET, "QDRANT_CONNECTION_ERROR", 503),
        (Reply(500, {"status": {"error": f"key {QDRANT_KEY}"}}), "QDRANT_CONNECTION_ERROR", 503),
        (Reply(429, {"status": {"error": "slow down"}}), "QDRANT_CONNECTION_ERROR", 503),
        (None, "QDRANT_CONNECTION_ERROR", 503),
    ],
)
def test_each_failure_of_the_store_has_its_error_code_and_reveals_no_key(
    book_settings: Settings, reply: Reply | None, code: str, status: int
) -> None:
    with serve([reply or HANG]) as server, watch_lines() as lines:
        url = server.url if reply else f"http://127.0.0.1:{find_closed_port()}"
        start = time.perf_counter()
        with pytest.raises(RagPipelineError) as caught:
            open_on_server(url, book_settings)
        assert time.perf_counter() - start < 25.0
    assert (caught.value.code, caught.value.http_status) == (code, status)
    assert QDRANT_KEY not in str(caught.value) + json.dumps(lines)


def test_a_malformed_response_of_the_store_raises_an_error_of_this_package(
    book_settings: Settings,
) -> None:
    with serve([MALFORMED]) as server, pytest.raises(RagPipelineError) as caught:
        open_on_server(server.url, book_settings)
    assert caught.value.http_status >= 500


@pytest.fixture
def small_settings(tmp_path: Path, book_points: list[Point]) -> Settings:
    """Settings of a collection that was built with an OpenAI-compatible model of 8 dimensions."""
    settings = make_settings(tmp_path)
    with serve(answer_well) as server:
        embedder = make_openai(server.url)
        rows, _ = embedder.embed_passages([str(point.payload["text"]) for point in book_points])
        catalog = make_catalog(settings)
        store = catalog.create(EmbeddingSpace(embedder.model, FORMAT_VERSION))
        store.upsert(
            [
                replace(point, vectors=ChunkVectors(row, row.reshape(1, -1)))
                for point, row in zip(book_points, rows, strict=True)
            ]
        )
        store.close()
        catalog.switch_to(store.collection_id)
    return settings


def make_openai(url: str) -> OpenAIEmbedder:
    """Return an embedder of an OpenAI-compatible service at the URL, with 8 dimensions."""
    return OpenAIEmbedder(
        model="small-model", dim=8, api_key=KEY, base_url=url, batch_size=100, timeout_s=0.3,
        sleep=lambda _: None,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (HANG, 500),
        (RESET, 500),
        (MALFORMED, 500),
        (Reply(500, {"error": {"message": f"oops {KEY}"}}), 500),
        (Reply(429, {"error": {"message": "slow down"}}), 500),
        (Reply(200, {"object": "list", "data": [{"index": 0, "embedding": [1.0]}]}), 500),
        (Reply(200, {"object": "list", "data": []}), 500),
    ],
)
def test_each_failure_of_the_embedding_service_has_the_code_embedding_failed(
    small_settings: Settings, reply: Reply, status: int
) -> None:
    with serve([reply]) as server, watch_lines() as lines:
        embedder = make_openai(server.url)
        session = StoreSession(
            make_catalog(small_settings),
            EmbeddingSpace(embedder.model, FORMAT_VERSION),
            1.0,
            is_exclusive=True,
        )
        retriever = Retriever(embedder, Bm25Encoder(), session)
        service = RetrievalService(
            small_settings,
            retriever=retriever,
            limits=replace(QUICK, query_s=20.0),
            log_to_files=False,
        )
        error = expect_code(service, "EMBEDDING_FAILED", status)
        service.close()
    assert KEY not in str(error) + json.dumps(lines)
    assert lines[-1]["error_code"] == "EMBEDDING_FAILED"


def test_a_search_works_with_an_embedding_service(small_settings: Settings) -> None:
    with serve(answer_well) as server:
        embedder = make_openai(server.url)
        session = StoreSession(
            make_catalog(small_settings),
            EmbeddingSpace(embedder.model, FORMAT_VERSION),
            1.0,
            is_exclusive=True,
        )
        with Retriever(embedder, Bm25Encoder(), session) as retriever:
            service = RetrievalService(
                small_settings, retriever=retriever, limits=QUICK, log_to_files=False
            )
            batch = service.batch_search([QUESTION, "ranges", "battery"], k=2)
        assert [answer["total_results"] for answer in batch] == [2, 2, 2]


@pytest.mark.slow
def test_a_search_times_out_when_the_embedding_service_is_slow(
    book_settings: Settings, retriever: Retriever
) -> None:
    let_go = Event()

    class Slow(LocalEmbedder):
        def embed_question(self, text: str) -> Any:  # noqa: ANN401  # never returns in time
            let_go.wait(30)
            return super().embed_question(text)

    slow = Retriever(Slow(), Bm25Encoder(), retriever.session)
    service = RetrievalService(
        book_settings, retriever=slow, limits=replace(QUICK, query_s=6.0), log_to_files=False
    )
    start = time.perf_counter()
    expect_code(service, "EMBEDDING_FAILED", 500)
    assert time.perf_counter() - start < 25.0
    let_go.set()


def test_a_sub_question_that_cannot_be_embedded_fails_before_the_store_is_used(
    book_settings: Settings, flaky: FlakySession
) -> None:
    question = "What is the difference between a publisher and a service?"

    class Fails(LocalEmbedder):
        def embed_question(self, text: str) -> Any:  # noqa: ANN401  # a vector or an error
            if text != question:
                raise EmbeddingServiceError("the service refused")
            return super().embed_question(text)

    fails = Retriever(Fails(), Bm25Encoder(), cast("StoreSession", flaky))
    service = RetrievalService(
        book_settings, retriever=fails, limits=replace(QUICK, query_s=20.0), log_to_files=False
    )
    uses = flaky.uses
    with pytest.raises(RagPipelineError) as caught:
        service.search(question)
    assert (caught.value.code, flaky.uses) == ("EMBEDDING_FAILED", uses)


def test_a_service_opens_the_collection_that_its_settings_name(book_settings: Settings) -> None:
    service = RetrievalService(book_settings, log_to_files=False)
    try:
        assert service.search(QUESTION, k=1)["total_results"] == 1
    finally:
        service.close()
    with open_retriever(book_settings) as again:  # the service has released the store
        again.probe()
