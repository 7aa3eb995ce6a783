"""How many requests a question sends to a Qdrant server, and how large they are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.adapters.connect import connect_catalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingSpace
from rag_pipeline.retrieval import Query, QueryFilters, open_retriever
from rag_pipeline_tests.qdrant_engine import serve_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import Retriever
    from rag_pipeline_tests.loopback import LoopbackServer

QUESTIONS = (
    "How does a gripper with soft fingers pick up an egg without breaking it?",
    "What is simulated time?",
    "Why do ranges come out wrong when it rains?",
    "How does a publisher relate to a subscriber?",
)
MOST_REQUESTS = 3
MOST_BYTES = 40_000


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LoopbackServer]:
    with serve_qdrant(tmp_path) as (server, _):
        yield server


@pytest.fixture
def on_server(
    running: LoopbackServer,
    book_settings: Settings,
    book_points: list[Point],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Retriever]:
    """A retriever over the tiny book on a server, which does not look for changes meanwhile."""
    monkeypatch.setattr("rag_pipeline.retrieval.opening._SERVER_RECHECK_S", 3_600.0)
    monkeypatch.setattr("rag_pipeline.retrieval.open_index._FACTS_AGE_S", 3_600.0)
    settings = book_settings.model_copy(update={"qdrant_url": running.url})
    catalog = connect_catalog(settings)
    with open_retriever(book_settings) as embedded:
        space = EmbeddingSpace(embedded._embedder.model, FORMAT_VERSION)  # noqa: SLF001  # no other access
    store = catalog.create(space)
    store.upsert(book_points)
    catalog.switch_to(store.collection_id)
    with open_retriever(settings) as opened:
        yield opened


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_sends_few_and_small_requests(
    running: LoopbackServer, on_server: Retriever, question: str
) -> None:
    on_server.retrieve(Query("How is a wall measured?"))
    begun = len(running.received)
    on_server.retrieve(Query(question))
    sent = running.received[begun:]
    assert len(sent) <= MOST_REQUESTS
    assert sum(request.size_bytes for request in sent) <= MOST_BYTES
    assert not any(request.path.endswith("/count") for request in sent)


def test_a_repeated_filter_is_counted_once(running: LoopbackServer, on_server: Retriever) -> None:
    query = Query(QUESTIONS[0], filters=QueryFilters(modules=["module-1"]))
    for _ in range(3):
        on_server.retrieve(query)
    counts = [request for request in running.received if request.path.endswith("/count")]
    assert len(counts) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_server_gives_the_results_of_the_embedded_store(
    retriever: Retriever, on_server: Retriever, question: str
) -> None:
    near, far = retriever.retrieve(Query(question)), on_server.retrieve(Query(question))
    assert [hit.chunk_id for hit in far.chunks] == [hit.chunk_id for hit in near.chunks]
    assert [hit.score for hit in far.chunks] == pytest.approx(
        [hit.score for hit in near.chunks], abs=1e-3
    )
    assert far.evidence is not None
    assert near.evidence is not None
    assert [word.nearness for word in far.evidence.words] == pytest.approx(
        [word.nearness for word in near.evidence.words], abs=1e-3
    )


def test_no_request_waits_for_a_delayed_acknowledgement(running: LoopbackServer) -> None:
    """Compare requests that accept a compressed answer, which the server sends in two packets."""

    def measure(client: httpx.Client) -> float:
        client.get(f"{running.url}/collections")
        begun = time.perf_counter()
        for _ in range(20):
            client.get(f"{running.url}/collections")
        return time.perf_counter() - begun

    connection = connect_server(running.url, api_key="", timeout_s=30)
    ours = connection.call(lambda client: client.http.client._client)  # noqa: SLF001  # no other access
    with httpx.Client() as compressing:
        assert measure(ours) < measure(compressing) / 2
