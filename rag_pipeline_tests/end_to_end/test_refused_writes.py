"""Tests of a Qdrant node that answers reads and refuses writes: the message and the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import QdrantClient

from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection, connect_server
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline_tests.book import assert_same_state, make_book
from rag_pipeline_tests.end_to_end.kill_points import edit_pages
from rag_pipeline_tests.loopback import LoopbackServer, Reply, serve

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline_tests.book import Book

_WRITES = frozenset({"upsert", "batch_update_points", "delete"})
READ_ONLY = "Forbidden: Global manage access is required"
NO_SPACE = "Service internal error: No space left on device"
FULL = "Insufficient storage: the disk is full"


class _RefusingClient:
    """A client of an engine in memory that sends writes over HTTP to a server that refuses them.

    The engine and the server are those of Qdrant's own client, because no Qdrant server is at hand.
    """

    def __init__(self, memory: QdrantClient, refusing: QdrantClient) -> None:
        self._memory = memory
        self._refusing = refusing

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any method of the client
        return getattr(self._refusing if name in _WRITES else self._memory, name)


def refuse_writes(book: Book, server: LoopbackServer) -> QdrantCatalog:
    """Return a catalog of the book whose writes the server refuses."""
    connection = connect_server(server.url, api_key="", timeout_s=5, sleep=lambda _: None)
    client: Any = _RefusingClient(_find_client(book.catalog), _find_client(connection))
    connection = QdrantConnection(client, "node", sleep=lambda _: None)
    return QdrantCatalog(connection, "book", book.forget)


def _find_client(owner: Any) -> QdrantClient:  # noqa: ANN401  # a catalog or its connection
    client = getattr(owner, "_connection", owner)._client  # noqa: SLF001  # no test needs more
    assert isinstance(client, QdrantClient)
    return client


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book that is indexed and then edited."""
    book = make_book(tmp_path / "book", memory=True)
    book.ingest()
    edit_pages(book)
    return book


@pytest.mark.parametrize(("status", "said"), [(403, READ_ONLY), (500, NO_SPACE), (507, FULL)])
def test_a_run_says_why_and_the_next_one_converges(
    book: Book, tmp_path: Path, status: int, said: str
) -> None:
    working = book.catalog
    before = book.read_state()
    with serve([Reply(status, {"status": {"error": said}})]) as server:
        book.catalog = refuse_writes(book, server)
        try:
            messages = [failure.message for failure in book.ingest().failures]
        except RagPipelineError as error:
            messages = [str(error)]
        finally:
            book.catalog = working
    assert messages
    for message in messages:
        assert f"HTTP {status}" in message
        assert said in message
    assert_same_state(book.read_state(), before)
    report = book.ingest()
    assert not report.failures
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())
