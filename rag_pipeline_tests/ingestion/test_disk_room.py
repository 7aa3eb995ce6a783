"""Tests of the check that the disk has room for the documents of an ingestion."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.settings import Settings
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.ingestion import run
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline_tests.book import make_book

if TYPE_CHECKING:
    from pathlib import Path


def test_an_ingestion_without_room_for_its_documents_ends_before_it_embeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = make_book(tmp_path)
    free = shutil.disk_usage(tmp_path).free
    size = sum(page.stat().st_size for page in book.docs.rglob("*.md"))
    monkeypatch.setattr(run, "_WITH_WINDOWS", 2 * free // size)
    with pytest.raises(StoreError, match=r"MB are free.*3 new documents need about \d+ MB"):
        book.ingest()
    assert book.embedder.passages == []
    monkeypatch.undo()
    book.ingest()
    monkeypatch.setattr(run, "_WITH_WINDOWS", 2 * free // size)
    book.write("intro.md", "# Start\n\nA page that the ledger lists needs no room of its own.\n")
    assert book.ingest().docs_processed == 1


def test_the_estimate_is_less_than_an_ingestion_takes(tmp_path: Path) -> None:
    book = make_book(tmp_path)
    book.ingest()
    files = [path for path in book.state.rglob("*") if path.is_file()]
    kept = [path for path in files if not re.match(r"state\.sqlite", path.name)]
    taken = sum(path.stat().st_blocks * 512 for path in kept)
    size = sum(page.stat().st_size for page in book.docs.rglob("*.md"))
    assert run._WITH_WINDOWS * size < taken  # noqa: SLF001  # the constant under test


@pytest.mark.nightly
def test_the_estimate_is_less_than_the_store_and_the_cache_of_the_textbook(tmp_path: Path) -> None:
    settings = Settings(docs_dir=OWN_DOCS_DIR, data_dir=tmp_path, embedding_provider="local")
    settings = settings.fill_site(OWN_SITE)
    context = IngestionContext(settings, connect_services(settings))
    for _ in run_ingestion(context, IngestionRequest(), "run"):
        pass
    files = [settings.state_dir / "state.sqlite", *(settings.state_dir / "store").rglob("*")]
    taken = sum(path.stat().st_blocks * 512 for path in files if path.is_file())
    size = sum(page.stat().st_size for page in OWN_DOCS_DIR.rglob("*.md"))
    assert run._WITH_WINDOWS * size < taken  # noqa: SLF001  # the constant under test
