"""Tests of stage outputs in a local folder and on an object store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from upath import UPath

from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Stage

if TYPE_CHECKING:
    from pathlib import Path

KEPT = [Stage.PARSED, Stage.CHUNKS]


@pytest.fixture(params=["folder", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    """Return a folder that does not exist yet, on disk or on an object store."""
    if request.param == "folder":
        return UPath(tmp_path / "new" / "artifacts")
    return UPath(f"memory://{tmp_path.name}/artifacts")


@pytest.mark.parametrize("doc_id", ["a.md", "a b/größe.md", "x" * 1000, "50%,.md"])
def test_outputs_can_be_read_back_for_any_document_id(root: UPath, doc_id: str) -> None:
    store = UPathArtifactStore(root)
    for number, stage in enumerate(KEPT):
        store.write(stage, DocId(doc_id), bytes([number]))
        store.write(stage, DocId(doc_id), bytes([number, 255]))
    other = UPathArtifactStore(root)
    assert [other.read(stage, DocId(doc_id)) for stage in KEPT] == [
        bytes([number, 255]) for number in range(len(KEPT))
    ]


def test_a_missing_or_removed_output_is_none(root: UPath) -> None:
    store = UPathArtifactStore(root)
    assert store.read(Stage.CHUNKS, DocId("a.md")) is None
    store.remove(DocId("a.md"))
    store.write(Stage.CHUNKS, DocId("a.md"), b"a")
    store.write(Stage.CHUNKS, DocId("b.md"), b"b")
    store.remove(DocId("a.md"))
    assert store.read(Stage.CHUNKS, DocId("a.md")) is None
    assert store.read(Stage.CHUNKS, DocId("b.md")) == b"b"


def test_a_failed_write_leaves_the_previous_output(tmp_path: Path) -> None:
    store = UPathArtifactStore(UPath(tmp_path))
    store.write(Stage.CHUNKS, DocId("a.md"), b"before")
    with pytest.raises(TypeError):
        store.write(Stage.CHUNKS, DocId("a.md"), "no bytes")
    assert store.read(Stage.CHUNKS, DocId("a.md")) == b"before"
    assert len(list((tmp_path / "chunks").iterdir())) == 1


def test_keep_only_deletes_the_old_outputs_of_other_documents(tmp_path: Path) -> None:
    store = UPathArtifactStore(UPath(tmp_path))
    known, gone, young = DocId("known.md"), DocId("gone.md"), DocId("young.md")
    for doc_id in (known, gone):
        for stage in KEPT:
            store.write(stage, doc_id, b"old")
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (0.0, 0.0))
    store.write(Stage.PARSED, young, b"new")
    store.keep_only({known})
    assert [store.read(stage, known) for stage in KEPT] == [b"old"] * len(KEPT)
    assert [store.read(stage, gone) for stage in KEPT] == [None] * len(KEPT)
    assert store.read(Stage.PARSED, young) == b"new"


def test_keep_only_deletes_the_vectors_that_an_earlier_version_stored(tmp_path: Path) -> None:
    store, known = UPathArtifactStore(UPath(tmp_path)), DocId("known.md")
    store.write(Stage.CHUNKS, known, b"kept")
    for name in ("embeddings/1f.npz", "embeddings/1f.1.npz", "discovered_docs/1f.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"old")
    store.keep_only({known})
    assert [path.name for path in tmp_path.iterdir()] == ["chunks"]
    assert store.read(Stage.CHUNKS, known) == b"kept"
