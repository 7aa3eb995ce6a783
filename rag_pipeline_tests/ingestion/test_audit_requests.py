"""How many requests upkeep sends to a Qdrant server for a book of many pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.ingestion.audit import audit_index, check_indexed
from rag_pipeline_tests.book import make_book
from rag_pipeline_tests.qdrant_engine import serve_qdrant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.ingestion.context import IngestionContext

PAGES = 30


def audit(context: IngestionContext) -> None:
    assert not audit_index(context).findings


def audit_gone(context: IngestionContext) -> None:
    """Audit pages whose files have changed, so that only the database describes them."""
    for path in context.settings.docs_dir.glob("*.md"):
        path.write_text(f"{path.read_text('utf-8')}\nMore.\n", "utf-8")
    assert not audit_index(context).findings


def check(context: IngestionContext) -> None:
    checked = dict(check_indexed(context))
    assert len(checked) == PAGES
    assert not any(checked.values())


@pytest.mark.parametrize("action", [audit, audit_gone, check])
def test_points_are_read_for_many_documents_at_once(
    tmp_path: Path, action: Callable[[IngestionContext], None]
) -> None:
    pages = {f"page-{number}.md": f"# Page {number}\n\nIts text.\n" for number in range(PAGES)}
    book = make_book(tmp_path / "book", pages)
    with serve_qdrant(tmp_path) as (server, _):
        connection = connect_server(server.url, api_key="", timeout_s=30)
        book.catalog = QdrantCatalog(connection, "book", book.forget)
        assert not book.ingest().failures
        before = len(server.received)
        action(book.build_context())
        assert len(server.received) - before < PAGES / 2
