"""Tests of atomic writes, and of the cleanup after killed writes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from upath import UPath

from rag_pipeline.adapters.state.files import (
    remove_partial_files,
    remove_tree,
    write_bytes_atomically,
    write_text_atomically,
)
from rag_pipeline.adapters.state.shared import open_root

if TYPE_CHECKING:
    from pathlib import Path

KILLED_WRITE = """
import os, sys, pathlib
from rag_pipeline.adapters.state import files
os.fsync = lambda _: os._exit(9)
files.write_bytes_atomically(pathlib.Path(sys.argv[1]), b"new")
"""


def make_older(path: Path, seconds: float) -> None:
    """Set the modification time of a file to this many seconds ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_the_partial_file_of_a_killed_write_is_removed_after_an_hour(
    tmp_path: Path,
) -> None:
    path = tmp_path / "folder" / "entry.json"
    write_bytes_atomically(path, b"old")
    code = subprocess.run([sys.executable, "-c", KILLED_WRITE, str(path)], check=False).returncode
    assert code == 9
    assert path.read_bytes() == b"old"
    (partial,) = set(path.parent.iterdir()) - {path}
    remove_partial_files(tmp_path)
    assert partial.exists()  # another process may still be writing it
    make_older(partial, 4000)
    make_older(path, 4000)
    (path.parent / ".hidden").write_text("someone's")
    make_older(path.parent / ".hidden", 4000)
    remove_partial_files(tmp_path)
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".hidden", "entry.json"]
    remove_partial_files(tmp_path / "nowhere")


def test_an_object_store_is_opened_without_a_cache_of_its_listings(tmp_path: Path) -> None:
    root = open_root(f"memory://{tmp_path.name}/state")
    assert not root.fs.dircache.use_listings_cache
    assert not (root / "indexed").fs.dircache.use_listings_cache
    assert open_root(tmp_path.as_uri()) == tmp_path


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_written_completely_and_is_readable_by_others(
    tmp_path: Path, *, durable: bool
) -> None:
    path = tmp_path / "folder" / "entry"
    write_bytes_atomically(path, b"\x00data", durable=durable)
    assert path.read_bytes() == b"\x00data"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["entry"]


def test_a_folder_is_removed_from_a_disk_and_from_an_object_store(tmp_path: Path) -> None:
    roots: list[Path | UPath] = [tmp_path, UPath(f"memory://{tmp_path.name}")]
    for root in roots:
        for name in ("a/b/one.json", "a/two.json", "other/three.json"):
            write_text_atomically(root / name, "text")
        remove_tree(root / "a")
        remove_tree(root / "never")
        assert [path.name for path in root.iterdir()] == ["other"]
