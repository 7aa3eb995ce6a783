"""Tests of an ingestion run inside a command: its memory use, and the lock of its start."""

from __future__ import annotations

import gc
import shutil
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.adapters.database.vectors import SqlEmbeddingCache
from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.core.errors import StoreLockedError
from rag_pipeline.core.models import Stage
from rag_pipeline.definitions import build_defs
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.orchestration import instance
from rag_pipeline.orchestration.launch import run_ingest_job
from rag_pipeline.orchestration.resources import Ingestion
from rag_pipeline_tests.book import PAGES

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline_tests.book import Book


def test_a_run_keeps_no_events_of_finished_documents_in_memory(
    book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_history: Path
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    shutil.copytree(empty_history, tmp_path / "dagster")
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
    resource = Ingestion(build=lambda: context, listen=observe)
    assert run_ingest_job(build_defs({"ingestion": resource}), IngestionRequest())
    assert isinstance(context.services.cache, SqlEmbeddingCache)
    context.services.cache.close()
    assert len(done) == doc_count
    assert alive[1] - alive[0] < len(Stage)  # fewer events than one document has


def test_an_instance_that_another_process_opens_is_an_error_with_fitting_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(instance, "_OPENING_TIMEOUT_S", 0.1)
    with hold_lock(tmp_path / ".opening.lock", 0.0), pytest.raises(StoreLockedError) as caught:
        run_ingest_job(dg.Definitions(), IngestionRequest())
    message = str(caught.value)
    assert "has held the lock" in message
    assert "for 0.1 s" in message
    assert "opens Dagster's instance" in message
    assert "INGEST_LOCK_TIMEOUT_S" not in message
