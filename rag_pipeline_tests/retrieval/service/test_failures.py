"""Failures of the store and of the embedding service, as the service reports them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.adapters.embedders.openai import OpenAIEmbedder
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.core.errors import EmbeddingServiceError, RagPipelineError
from rag_pipeline.core.vectors import FORMAT_VERSION, ChunkVectors, EmbeddingSpace
from rag_pipeline.retrieval import RetrievalService, Retriever, ServiceLimits
from rag_pipeline.retrieval.store_session import StoreSession
from rag_pipeline_tests.adapters.embedders.test_openai import KEY, answer_well
from rag_pipeline_tests.loopback import HANG, MALFORMED, RESET, Reply, find_closed_port, serve
from rag_pipeline_tests.retrieval.disturbances import FlakySession, watch_lines
from rag_pipeline_tests.retrieval.indexed_book import make_catalog, make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.protocols import Embedder
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point


QUESTION = "How can a hand pick up an egg?"


QDRANT_KEY = "qdrant-secret-0123456789abcdef"


QUICK = ServiceLimits(query_s=8.0, batch_s=12.0, breaker_failures=2, breaker_reset_s=60.0)


def make_service(
    settings: Settings,
    session: object,
    limits: ServiceLimits = QUICK,
    embedder: Embedder | None = None,
) -> RetrievalService:
    """Return a service over the given session, with the local model if none is given."""
    store: Any = session
    retriever = Retriever(embedder or LocalEmbedder(), Bm25Encoder(), store)
    return RetrievalService(settings, retriever=retriever, limits=limits, log_to_files=False)


def open_small(
    settings: Settings, embedder: OpenAIEmbedder, limits: ServiceLimits
) -> RetrievalService:
    """Return a service over the collection of an OpenAI-compatible model."""
    space = EmbeddingSpace(embedder.model, FORMAT_VERSION)
    session = StoreSession(make_catalog(settings), space, 1.0, is_exclusive=True)
    return make_service(settings, session, limits, embedder)


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


def test_callers_of_stats_do_not_wait_for_each_other(
    book_settings: Settings, flaky: FlakySession
) -> None:
    service = make_service(book_settings, flaky)
    flaky.hang = Barrier(3)  # the store answers when three callers are in it
    with ThreadPoolExecutor(3) as callers:
        assert len(list(callers.map(lambda _: service.get_stats(), range(3)))) == 3


def open_on_server(url: str, settings: Settings) -> None:
    """Open a service whose store is a failing Qdrant server at the URL."""
    embedder = LocalEmbedder()
    connection = connect_server(url, api_key=QDRANT_KEY, timeout_s=0.3, sleep=lambda _: None)
    session = StoreSession(
        QdrantCatalog(connection, "textbook_chunks"),
        EmbeddingSpace(embedder.model, FORMAT_VERSION),
        1.0,
        is_exclusive=False,
    )
    with closing(connection._client):  # noqa: SLF001  # the error keeps its socket
        make_service(settings, session, replace(QUICK, query_s=20.0))


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
        limits = replace(QUICK, query_s=20.0)
        service = open_small(small_settings, make_openai(server.url), limits)
        error = expect_code(service, "EMBEDDING_FAILED", status)
        service.close()
    assert KEY not in str(error) + json.dumps(lines)
    assert lines[-1]["error_code"] == "EMBEDDING_FAILED"


def test_a_search_works_with_an_embedding_service(small_settings: Settings) -> None:
    with (
        serve(answer_well) as server,
        open_small(small_settings, make_openai(server.url), QUICK) as service,
    ):
        batch = service.batch_search([QUESTION, "ranges", "battery"], k=2)
        assert [answer["total_results"] for answer in batch] == [2, 2, 2]


def test_a_sub_question_that_cannot_be_embedded_fails_before_the_store_is_used(
    book_settings: Settings, flaky: FlakySession
) -> None:
    question = "What is the difference between a publisher and a service?"

    class Fails(LocalEmbedder):
        def embed_question(self, text: str) -> Any:  # noqa: ANN401  # a vector or an error
            if text != question:
                raise EmbeddingServiceError("the service refused")
            return super().embed_question(text)

    service = make_service(book_settings, flaky, replace(QUICK, query_s=20.0), Fails())
    uses = flaky.uses
    with pytest.raises(RagPipelineError) as caught:
        service.search(question)
    assert (caught.value.code, flaky.uses) == ("EMBEDDING_FAILED", uses)
