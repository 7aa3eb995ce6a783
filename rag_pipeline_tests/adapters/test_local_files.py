"""Tests of atomic writes, and of the cleanup after killed writes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.local_files import (
    hold_lock,
    remove_partial_files,
    write_bytes_atomically,
)
from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from pathlib import Path

KILLED_WRITE = """
import os, sys, pathlib
from rag_pipeline.adapters import local_files as files
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


def test_the_error_of_a_full_disk_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    path = tmp_path / "entry.json"
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_bytes_atomically(path, b"data")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_completely_and_is_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "entry"
    write_bytes_atomically(path, b"\x00data")
    assert path.read_bytes() == b"\x00data"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["entry"]


def test_the_error_about_a_held_lock_gives_the_advice_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path, 0.0):
        with pytest.raises(StoreLockedError) as caught, hold_lock(path, 0.0, "Try again later"):
            pass
        assert str(caught.value) == f"another process holds the lock {path}. Try again later"


def test_a_lock_file_that_its_holder_deletes_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path, 0.0):
        path.unlink()
        with hold_lock(path, 0.0):  # the file of the same name is another one
            assert path.exists()
