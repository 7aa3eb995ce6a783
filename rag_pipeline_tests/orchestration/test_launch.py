"""A run by a command, in its own process: what it leaves in memory while it goes on."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache
from rag_pipeline.core.models import Stage
from rag_pipeline.definitions import build_defs
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.orchestration.launch import run_ingest_job
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline_tests.book import PAGES

if TYPE_CHECKING:
    import pytest

    from rag_pipeline_tests.book import Book


def test_a_run_keeps_nothing_of_the_documents_it_is_done_with(
    book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    (tmp_path / "dagster").mkdir()
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", tmp_path / "dagster")
    for number in range(20):
        book.write(f"page-{number}.md", f"## Section\n\nText of page {number}.")
    doc_count = 20 + len(PAGES)
    done, alive = set[str](), []

    def observe(event: object) -> None:
        if isinstance(event, StageDone) and event.stage is Stage.POINTS:
            done.add(event.doc_id)
            if len(done) in {1, doc_count}:
                gc.collect()
                known = gc.get_objects()
                alive.append(sum(isinstance(found, dg.AssetMaterialization) for found in known))

    context = book.build_context()
    resource = IngestionResource(build=lambda: context, listen=observe)
    assert run_ingest_job(build_defs({"ingestion": resource}), IngestionRequest())
    assert isinstance(context.services.cache, SqliteEmbeddingCache)
    context.services.cache.close()
    assert len(done) == doc_count
    assert alive[1] - alive[0] < len(Stage)  # fewer than those of one document
