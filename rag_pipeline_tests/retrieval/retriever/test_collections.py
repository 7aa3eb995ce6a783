"""Queries of a collection that is missing, empty, rebuilt, idle, locked or of another model."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.vectors import (
    FORMAT_VERSION,
    EmbeddingModel,
    EmbeddingSpace,
    QuestionVectors,
)
from rag_pipeline.retrieval import (
    CollectionMissingError,
    Query,
    Retriever,
    SpaceMismatchError,
    StoreError,
    StoreLockedError,
    open_retriever,
)
from rag_pipeline_tests.retrieval.indexed_book import (
    build_collection,
    make_catalog,
    make_points,
    make_settings,
)
from rag_pipeline_tests.retrieval.retriever.questions import QUESTIONS, outline

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point


_HOLD_BUILD = """
import sys
from pathlib import Path
from rag_pipeline.adapters.stores.edge_catalog import lock_build
build = lock_build(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_query_before_the_first_ingest_says_to_run_ingest(tmp_path: Path) -> None:
    with (
        open_retriever(make_settings(tmp_path)) as fresh,
        pytest.raises(CollectionMissingError, match="rag-pipeline ingest"),
    ):
        fresh.retrieve(Query("anything"))


def test_a_query_of_an_empty_collection_is_an_error(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, [])
    with open_retriever(settings) as empty, pytest.raises(CollectionMissingError, match="empty"):
        empty.retrieve(Query("anything"))


def test_a_collection_of_another_model_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    catalog = make_catalog(settings)
    store = catalog.create(
        EmbeddingSpace(EmbeddingModel("openai", "other", 384, 100), FORMAT_VERSION)
    )
    store.close()
    catalog.switch_to(store.collection_id)
    with open_retriever(settings) as mismatched, pytest.raises(SpaceMismatchError, match="rebuild"):
        mismatched.retrieve(Query("anything"))


def test_the_next_query_uses_a_rebuilt_collection(tmp_path: Path, book_points: list[Point]) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, book_points)
    with open_retriever(settings) as reader:
        assert reader.retrieve(Query(QUESTIONS[0])).chunks[0].metadata.title == "Embodiment"
        page = "module-9/9.1-new/page.md"
        build_collection(settings, make_points({page: "# New\n\n## Eggs\n\nEggs are new here.\n"}))
        result = reader.retrieve(Query(QUESTIONS[0]))
        assert {hit.metadata.doc_path for hit in result.chunks} == {page}


def test_an_idle_store_is_closed_and_opened_again(tmp_path: Path, book_points: list[Point]) -> None:
    settings = make_settings(tmp_path, store_idle_s=0.05, store_lock_timeout_s=5.0)
    build_collection(settings, book_points)
    catalog = make_catalog(settings)
    with open_retriever(settings) as reader:
        for _ in range(2):
            first = reader.retrieve(Query(QUESTIONS[0]))
            writer = catalog.open_current()  # waits until the reader closes it
            writer.delete([PointId(1)])
            writer.close()
            assert outline(reader.retrieve(Query(QUESTIONS[0]))) == outline(first)


def test_a_store_that_another_process_has_locked_is_an_error_until_unlocked(
    tmp_path: Path, book_points: list[Point]
) -> None:
    settings = make_settings(tmp_path, store_lock_timeout_s=0.2)
    collection_id = build_collection(settings, book_points)
    build = settings.state_dir / "store" / settings.qdrant_collection / collection_id
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_BUILD, str(build)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with open_retriever(settings) as reader:
            with pytest.raises(StoreLockedError, match="another process has"):
                reader.retrieve(Query(QUESTIONS[0]))
            holder.communicate()
            assert reader.retrieve(Query(QUESTIONS[0])).chunks
    finally:
        holder.kill()
        holder.communicate()


class _WrongEmbedder(LocalEmbedder):
    """An embedder whose vectors have another length than its model declares."""

    def embed_question(self, text: str) -> QuestionVectors:
        del text
        return QuestionVectors(np.ones(7, dtype=np.float32), np.ones((1, 7), dtype=np.float32))


def test_a_query_vector_of_wrong_length_is_an_embedding_error(book_settings: Settings) -> None:
    with open_retriever(book_settings) as reader:
        wrong = Retriever(_WrongEmbedder(), reader._encoder, reader.session)  # noqa: SLF001  # the same store
        with pytest.raises(EmbeddingDimensionError):
            wrong.retrieve(Query("anything"))


def test_closing_a_retriever_does_not_disturb_running_queries(retriever: Retriever) -> None:
    expected = outline(retriever.retrieve(Query(QUESTIONS[0])))
    stop = threading.Event()

    def close_again_and_again() -> None:
        while not stop.is_set():
            retriever.close()
            time.sleep(0)

    closer = threading.Thread(target=close_again_and_again)
    closer.start()
    try:
        for _ in range(5):
            assert outline(retriever.retrieve(Query(QUESTIONS[0]))) == expected
    finally:
        stop.set()
        closer.join()


def test_a_probe_checks_the_payload_of_one_point(
    tmp_path: Path, book_points: list[Point], retriever: Retriever
) -> None:
    retriever.probe()
    damaged = [replace(point, payload={**point.payload, "url": 7}) for point in book_points[:1]]
    settings = make_settings(tmp_path)
    build_collection(settings, damaged)
    with open_retriever(settings) as other, pytest.raises(StoreError, match="field url"):
        other.probe()
