"""Tests of the deletion of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from rag_pipeline.adapters.state.objects import delete_object
from rag_pipeline.core.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def test_an_object_is_deleted_and_a_missing_one_is_no_error(tmp_path: Path) -> None:
    path = UPath(tmp_path / "object")
    path.write_bytes(b"1")
    delete_object(path)
    delete_object(path)
    assert not path.exists()


def test_a_storage_that_denies_deletions_is_named_with_the_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deny(_: MemoryFileSystem, path: str) -> None:
        raise PermissionError(path)

    path = UPath("memory://books/object")
    path.write_bytes(b"1")
    monkeypatch.setattr(MemoryFileSystem, "rm_file", deny)
    with pytest.raises(StoreError, match=r"does not allow the deletion of memory://.*books/object"):
        delete_object(path)
