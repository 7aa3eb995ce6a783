"""Short trials of a Qdrant server: what fails while a book is ingested, and the next ingestion.

The connection is cut or held in between, as it is when the server is killed or paused.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest
from qdrant_client import models

from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection, connect_server
from rag_pipeline.core.errors import (
    ConfigurationError,
    StoreNotWritableError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline.ingestion.audit import audit_index, repair_index
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import Book, assert_same_state, make_book
from rag_pipeline_tests.congruence.conftest import connect_to_server, delete_collections
from rag_pipeline_tests.hashing_embedder import HashingEmbedder
from rag_pipeline_tests.loopback import Received, Reply
from rag_pipeline_tests.qdrant_engine import QdrantEngine, serve_qdrant
from rag_pipeline_tests.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, Window

PAGES = {f"page-{number}.md": f"# Page {number}\n\nIts text {number}.\n" for number in range(6)}
NAME = "trial-" + secrets.token_hex(4)


@pytest.fixture(params=["loopback", pytest.param("server", marks=pytest.mark.qdrant)])
def relay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Relay]:
    """A relay to a server, whose collections of these tests are deleted afterwards."""
    if request.param == "loopback":
        with serve_qdrant(tmp_path / "engine") as (server, _), Relay(server.url) as opened:
            yield opened
        return
    server = connect_to_server()
    with Relay(os.environ["QDRANT_URL"]) as opened:
        try:
            yield opened
        finally:
            delete_collections(server, NAME)


def connect(url: str, timeout_s: float = 30.0) -> QdrantConnection:
    key = os.environ.get("QDRANT_API_KEY", "")
    return connect_server(url, api_key=key, timeout_s=timeout_s, sleep=lambda _: None)


@pytest.fixture
def book(relay: Relay, tmp_path: Path) -> Book:
    """A book that is indexed on the server and then edited."""
    book = make_book(tmp_path / "book", PAGES)
    book.catalog = QdrantCatalog(connect(relay.url), NAME, book.forget)
    assert not book.ingest().failures
    for page in PAGES:
        book.edit(page, "Its text", "Its new text")
    return book


class InterruptingEmbedder(HashingEmbedder):
    """An embedder that does something after the texts of a run were embedded."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        super().__init__()
        self._interrupt = interrupt

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed the texts, then interrupt the connection."""
        found = super().embed_passages(texts, windows)
        self._interrupt()
        return found


def check_next_run(book: Book, tmp_path: Path) -> None:
    """Check that the next ingestion leads to the points of a clean build, without findings."""
    book.embedder = HashingEmbedder()
    assert not book.ingest().failures
    clean = make_book(tmp_path / "clean", {page: (book.docs / page).read_text() for page in PAGES})
    clean.ingest()
    assert_same_state(book.read_state(), clean.read_state())
    assert not audit_index(book.build_context()).findings


def test_a_server_that_is_killed_ends_the_run_and_the_next_one_goes_on(
    relay: Relay, book: Book, tmp_path: Path
) -> None:
    book.catalog = QdrantCatalog(connect(relay.url, timeout_s=0.5), NAME, book.forget)
    book.embedder = InterruptingEmbedder(relay.cut)
    with pytest.raises(StoreUnavailableError, match="QDRANT_URL"):
        book.ingest()
    relay.restore()
    check_next_run(book, tmp_path)


def test_a_server_that_is_paused_ends_the_run_in_time_and_the_next_one_goes_on(
    relay: Relay, book: Book, tmp_path: Path
) -> None:
    normal = book.catalog
    book.catalog = QdrantCatalog(connect(relay.url, timeout_s=1.0), NAME, book.forget)
    book.embedder = InterruptingEmbedder(relay.hold)
    with pytest.raises(StoreTimeoutError, match="QDRANT_TIMEOUT_S"):
        book.ingest()
    relay.restore()
    book.catalog = normal
    check_next_run(book, tmp_path)


def test_a_lost_alias_is_set_again(relay: Relay, book: Book, tmp_path: Path) -> None:
    lost = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=NAME))
    connect(relay.url).call(lambda client: client.update_collection_aliases([lost]))
    check_next_run(book, tmp_path)


def test_deleted_points_are_found_and_repaired(book: Book, tmp_path: Path) -> None:
    book.ingest()
    store = book.build_context().services.catalog.open_current()
    store.delete([point.point_id for point in book.read_points()][:3])
    context = book.build_context()
    found = audit_index(context)
    assert {finding.kind for finding in found.findings} == {"missing"}
    left = repair_index(context, found, book.ingest)
    assert not left.findings
    check_next_run(book, tmp_path)


def test_a_strict_mode_that_forbids_necessary_requests_is_named(
    relay: Relay, book: Book, tmp_path: Path
) -> None:
    current = book.build_context().services.catalog.current_id()
    connection = connect(relay.url)

    def set_mode(*, allow_exact: bool) -> None:
        mode = models.StrictModeConfig(enabled=True, search_allow_exact=allow_exact)
        connection.call(
            lambda client: client.update_collection(str(current), strict_mode_config=mode)
        )

    set_mode(allow_exact=False)
    with pytest.raises(ConfigurationError, match="search_allow_exact"):
        book.ingest()
    set_mode(allow_exact=True)
    check_next_run(book, tmp_path)


# A server in CI has no small disk, no key that may only read and no second node. The answers are
# those of Qdrant 1.19.
REFUSALS = [
    (500, "Service internal error: No space left on device", StoreNotWritableError, "Free space"),
    (403, "Forbidden: Global manage access is required", ConfigurationError, "QDRANT_API_KEY"),
    (
        500,
        "Service internal error: Waiting for consensus operation commit failed",
        StoreUnavailableError,
        "consensus",
    ),
]


@pytest.mark.parametrize(("status", "said", "error", "named"), REFUSALS)
@pytest.mark.parametrize("rebuild", [False, True])
def test_a_server_that_refuses_changes_ends_the_run_with_one_line(
    tmp_path: Path, status: int, said: str, error: type[Exception], named: str, *, rebuild: bool
) -> None:
    with serve_qdrant(tmp_path / "engine") as (server, engine):
        book = make_book(tmp_path / "book", PAGES)
        book.catalog = QdrantCatalog(connect(server.url), NAME, book.forget)
        book.ingest()
        for page in PAGES:
            book.edit(page, "Its text", "Its new text")
        before = book.read_state()
        _refuse_changes(engine, Reply(status, {"status": {"error": said}}))
        with pytest.raises(error, match=named) as caught:
            book.ingest(IngestionRequest(rebuild=rebuild))
        assert "\n" not in str(caught.value)
        assert_same_state(book.read_state(), before)
        engine.refuse = lambda _: None
        calls = book.embedder.calls
        check_next_run(book, tmp_path)
        assert book.embedder.calls <= calls


def _refuse_changes(engine: QdrantEngine, reply: Reply) -> None:
    def refuse(request: Received) -> Reply | None:
        reads = ("/query/batch", "/scroll", "/count", "/points")
        is_read = request.method == "GET" or (
            request.method == "POST" and request.path.partition("?")[0].endswith(reads)
        )
        return None if is_read else reply

    engine.refuse = refuse
