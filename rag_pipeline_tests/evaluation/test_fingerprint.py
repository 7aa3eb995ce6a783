"""The fingerprint changes with everything that can change a result, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.core.vectors import EmbeddingModel
from rag_pipeline.evaluation.records import build_fingerprint
from rag_pipeline_tests.evaluation.generated_book import DOCUMENTS, GOLDEN

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import Fingerprint

MODEL = EmbeddingModel("local", "minilm", 384, 256)


def build(settings: Settings | None = None) -> Fingerprint:
    return build_fingerprint(DOCUMENTS, GOLDEN, settings or load_settings(), MODEL)


def test_document_order_and_file_locations_do_not_change_the_fingerprint(tmp_path: Path) -> None:
    moved = load_settings(data_dir=tmp_path, docs_dir=tmp_path)
    golden = replace(GOLDEN, path=tmp_path / "elsewhere.json")
    assert build_fingerprint(DOCUMENTS[::-1], golden, moved, MODEL) == build()


def test_facts_do_not_change_the_fingerprint_because_retrieval_does_not_use_them() -> None:
    queries = (replace(GOLDEN.queries[0], facts=("right",)), *GOLDEN.queries[1:])
    golden = replace(GOLDEN, queries=queries)
    assert build_fingerprint(DOCUMENTS, golden, load_settings(), MODEL) == build()


def test_a_changed_setting_page_or_question_changes_the_fingerprint() -> None:
    assert build(load_settings(chunk_max_tokens=700)) != build()
    edited = (replace(DOCUMENTS[0], source=DOCUMENTS[0].source + "x"), *DOCUMENTS[1:])
    fingerprint = build_fingerprint(edited, GOLDEN, load_settings(), MODEL)
    assert fingerprint.corpus_version != build().corpus_version
    golden = replace(GOLDEN, queries=GOLDEN.queries[1:])
    other = build_fingerprint(DOCUMENTS, golden, load_settings(), MODEL)
    assert other.golden_version != build().golden_version


def test_the_fingerprint_contains_no_secret_and_no_folder(tmp_path: Path) -> None:
    settings = load_settings(
        openai_api_key="sk-secret", qdrant_api_key="qd-secret", data_dir=tmp_path
    )
    text = repr(build(settings))
    assert "secret" not in text
    assert str(tmp_path) not in text
    assert "chunk_max_tokens" in text
