"""Tests of commands on a DATA_DIR that cannot be written."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters import local_files
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.errors import StoreLockedError
from rag_pipeline_tests.congruence.points import SPACE, make_point
from rag_pipeline_tests.end_to_end.command import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_pipeline_tests.end_to_end.command import Command, Outcome

IN_NEW_NAMESPACE = ["unshare", "--mount", "--"]
MOUNT = 'mount --bind "$DATA_DIR" "$DATA_DIR" && mount -o remount,ro,bind "$DATA_DIR" && '
COMMANDS = """
import sys
from rag_pipeline import cli

for line in ("query xylophone", "search motor", "stats", "audit", "ingest"):
    sys.argv = ["rag-pipeline", *line.split()]
    try:
        cli.main()
    except SystemExit as ended:
        assert not ended.code, line
"""
"""Runs several commands in one process, which saves the time for imports."""


@pytest.fixture
def catalog(tmp_path: Path) -> EdgeCatalog:
    """A catalog of a collection with one point, whose files were written before."""
    catalog = EdgeCatalog(tmp_path / "store", "book", 0.1)
    with closing(catalog.create(SPACE)) as store:
        store.upsert([make_point(1)])
    catalog.switch_to(store.collection_id)
    return catalog


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """An empty folder on a disk, because in memory a read fills the holes of a file."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert gettempdir() == str(folder)
    return folder


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let the system refuse to open lock files for writing, but not for reading.

    Root may write to files of any mode, so the error is raised in place of the system.
    """
    opened: list[Path] = []

    def refuse(path: Path, kind: int) -> int | None:
        opened.append(path)
        return _refuse_writing(path, kind)

    monkeypatch.setattr(local_files, "_try_lock", refuse)
    return opened


def find_files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_store_that_cannot_be_locked_is_read_from_a_copy_that_is_deleted(
    catalog: EdgeCatalog, refused: list[Path], temporary: Path, tmp_path: Path
) -> None:
    before = find_files(tmp_path / "store")
    with closing(catalog.open_current(SPACE)) as store:
        assert [point.point_id for point in store.scroll()] == [1]
        (copy,) = temporary.iterdir()
        copied = [path for path in copy.rglob("*") if path.is_file()]
        assert sum(path.stat().st_blocks * 512 for path in copied) < 5_000_000
        assert sum(path.stat().st_size for path in copied) > 50_000_000  # the holes
        assert not catalog.is_wanted()
    assert list(temporary.iterdir()) == []
    assert find_files(tmp_path / "store") == before
    assert refused


def test_a_copy_is_outdated_when_the_store_has_changed(
    catalog: EdgeCatalog, tmp_path: Path, temporary: Path
) -> None:
    reader = EdgeCatalog(tmp_path / "store", "book", 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_files, "_try_lock", _refuse_writing)
        copy = reader.open_current(SPACE)
    with closing(catalog.open_current(SPACE)) as store:
        store.upsert([make_point(2)])
    assert reader.is_wanted()
    assert copy.count() == 1
    copy.close()
    with pytest.MonkeyPatch.context() as patch, closing(catalog.open_current(SPACE)):
        patch.setattr(local_files, "_try_lock", _refuse_writing)
        with pytest.raises(StoreLockedError, match="another process has"):
            reader.open_current(SPACE)
    assert list(temporary.iterdir()) == []


_try_lock = local_files._try_lock  # noqa: SLF001  # opens a lock file


def _refuse_writing(path: Path, kind: int) -> int | None:
    if kind != fcntl.LOCK_SH:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
    return _try_lock(path, kind)


def test_questions_and_audits_work_on_a_read_only_mount(
    command: Command, call: Callable[..., Outcome]
) -> None:
    probe = [*IN_NEW_NAMESPACE, "sh", "-c", MOUNT + "true"]
    data = command.root / "data"
    data.mkdir()
    tried = os.environ | {"DATA_DIR": str(data)}
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("only Linux has mount namespaces")
    if subprocess.run(probe, env=tried, check=False, capture_output=True).returncode:
        pytest.skip("mounting needs rights that this user or container does not have")
    assert call("ingest").code == 0
    script = f'{MOUNT} "$0" -c "$1"; touch "$DATA_DIR/x"'
    told = finish(
        subprocess.Popen(
            [*IN_NEW_NAMESPACE, "sh", "-c", script, sys.executable, COMMANDS],
            env=command.environment,
            cwd=command.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    assert "Read-only file system" in told.err
    assert "rag-pipeline:" not in told.err, told
    assert "3 documents, 9 points: 0 problems found" in told.out
    assert "3 unchanged" in told.out
    assert not (data / "x").exists()
