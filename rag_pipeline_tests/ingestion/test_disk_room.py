"""Tests of the check that the disk has room for the documents of an ingestion."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import StoreError
from rag_pipeline.ingestion import disk_room
from rag_pipeline_tests.book import make_book

if TYPE_CHECKING:
    from pathlib import Path


def test_an_ingestion_without_room_for_its_documents_ends_before_it_embeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = make_book(tmp_path)
    free = shutil.disk_usage(tmp_path).free
    size = sum(page.stat().st_size for page in book.docs.rglob("*.md"))
    monkeypatch.setattr(disk_room, "_WITH_WINDOWS", 2 * free // size)
    with pytest.raises(StoreError, match=r"MB are free.*3 new documents need about \d+ MB"):
        book.ingest()
    assert book.embedder.passages == []
    monkeypatch.undo()
    book.ingest()
    monkeypatch.setattr(disk_room, "_WITH_WINDOWS", 2 * free // size)
    book.write("intro.md", "# Start\n\nA page that the ledger lists needs no room of its own.\n")
    assert book.ingest().docs_processed == 1


def test_the_estimate_is_less_than_an_ingestion_takes(tmp_path: Path) -> None:
    book = make_book(tmp_path)
    book.ingest()
    files = [path for path in book.state.rglob("*") if path.is_file()]
    kept = [path for path in files if not re.match(r"cache\.sqlite", path.name)]
    taken = sum(path.stat().st_blocks * 512 for path in kept)
    size = sum(page.stat().st_size for page in book.docs.rglob("*.md"))
    assert disk_room._WITH_WINDOWS * size < taken  # noqa: SLF001  # the constant under test
