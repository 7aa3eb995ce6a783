"""Tests of the embedded store with other processes, kills and damaged files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.adapters.stores import edge_catalog
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.errors import (
    CollectionMissingError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import Channel, ChannelQuery
from rag_pipeline_tests.congruence.points import DIM, SPACE, build, make_point, read_ids

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROLOGUE = """
import os, sys
from pathlib import Path
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline_tests.congruence.points import SPACE, make_point
catalog = EdgeCatalog(Path(sys.argv[1]), "book", 1.0)
"""


def start_process(root: Path, body: str) -> subprocess.Popen[str]:
    """Start a process that runs this code with a catalog of the collection in `root`."""
    code = PROLOGUE + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of a collection whose current build has one point."""
    root = tmp_path / "store"
    build(EdgeCatalog(root, "book", 1.0), 1)
    return root


def test_a_store_open_in_another_process_is_an_error_after_the_timeout(root: Path) -> None:
    body = """
        store = catalog.open_current(SPACE)
        print("held", flush=True)
        sys.stdin.readline()
        store.close()
        print("free", flush=True)
        sys.stdin.readline()
    """
    with start_process(root, body) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreLockedError, match="STORE_LOCK_TIMEOUT_S") as caught:
            EdgeCatalog(root, "book", 0.3).open_current(SPACE)
        assert "open for 0.3 s" in str(caught.value)
        assert caught.value.transient
        assert "\n" not in str(caught.value)
        assert EdgeCatalog(root, "book", 0.0).current_id() is not None

        holder.stdin.write("go\n")
        holder.stdin.flush()
        # A waiting process gets the store as soon as the other process closes it.
        assert read_ids(EdgeCatalog(root, "book", 30.0)) == [1]
        holder.communicate("go\n", timeout=30)


def test_a_build_that_is_locked_without_a_wait_is_an_error_without_a_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_id = EdgeCatalog(root, "book", 0.0).current_id()
    monkeypatch.setattr(edge_catalog, "make_build_id", lambda _: build_id)
    with (
        closing(EdgeCatalog(root, "book", 30.0).open_current()),
        pytest.raises(StoreLockedError) as caught,
    ):
        EdgeCatalog(root, "book", 30.0).create(SPACE)
    lock = root / str(build_id) / "lock"
    assert (
        str(caught.value) == f"another process holds the lock {lock}. Wait until that process ends"
    )


@pytest.mark.slow
def test_attempts_to_open_a_store_do_not_damage_it_during_writes(root: Path) -> None:
    """The engine's own lock is not enough: loading changes files that are being written."""
    body = """
        from rag_pipeline.core.errors import StoreLockedError
        impatient = EdgeCatalog(Path(sys.argv[1]), "book", 0.0)
        print("begun", flush=True)
        while True:
            try:
                if not catalog.is_wanted():
                    impatient.open_current().close()
            except StoreLockedError:
                pass
    """
    catalog = EdgeCatalog(root, "book", 30.0)
    readers = [start_process(root, body) for _ in range(2)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "begun\n"
        for number in range(1, 9):
            store = catalog.open_current()
            store.upsert([make_point(number * 50 + place) for place in range(50)])
            store.delete([PointId(number * 50 + place) for place in range(0, 50, 2)])
            store.close()
        # Both processes still run: neither has met an error that it does not expect.
        assert [reader.poll() for reader in readers] == [None, None]
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    assert len(read_ids(catalog)) == 1 + 8 * 25


def test_points_survive_a_kill_right_after_the_write(root: Path) -> None:
    body = """
        store = catalog.open_current(SPACE)
        store.upsert([make_point(2**63 + number) for number in range(50)])
        store.set_payloads({1: {"module": "kept"}})
        store.delete([2**63])
        os._exit(9)
    """
    with start_process(root, body) as writer:
        assert writer.wait(timeout=60) == 9
    store = EdgeCatalog(root, "book", 5.0).open_current(SPACE)
    assert store.count() == 50
    assert store.fetch([make_point(1).point_id])[0].payload == {"module": "kept"}
    hits = store.search_many([ChannelQuery(Channel.DENSE, make_point(2**63 + 7).vectors.dense, 1)])
    assert hits[0][0][0] == 2**63 + 7
    store.close()


def test_points_that_are_written_together_survive_a_kill_after_the_block(root: Path) -> None:
    body = """
        store = catalog.open_current(SPACE)
        with store.write_together():
            for number in range(50):
                store.upsert([make_point(2**63 + number)])
            store.delete([2**63])
            assert store.count() == 50
        os._exit(9)
    """
    with start_process(root, body) as writer:
        assert writer.wait(timeout=60) == 9
    assert read_ids(EdgeCatalog(root, "book", 5.0)) == [1, *range(2**63 + 1, 2**63 + 50)]


def test_an_almost_full_disk_is_an_error_before_a_write(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = EdgeCatalog(root, "book", 1.0)
    monkeypatch.setattr("rag_pipeline.adapters.stores.edge_store._RESERVE_BYTES", 2**62)
    with closing(catalog.open_current(SPACE)) as store:
        with pytest.raises(StoreError, match="Free disk space"):
            store.upsert([make_point(2)])
        with pytest.raises(StoreError, match="MB are free"):
            store.set_payloads({PointId(1): {}})
    with pytest.raises(StoreError, match="MB are free"):
        catalog.create(SPACE)
    assert read_ids(catalog) == [1]


@pytest.fixture
def memory_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 100 MiB in memory, and yield its folder."""
    folder = tmp_path / "memory"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system, and not in every container")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S607  # the path of umount differs between systems


def leave_free(folder: Path, size_bytes: int) -> None:
    """Fill the file system of a folder until only this much space is free."""
    with (folder / "filling").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(folder).free - size_bytes)


REFUSAL = """
    from rag_pipeline.core.errors import StoreError
    try:
        {action}
    except StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("action", ["catalog.create(SPACE)", "catalog.open_current()"])
def test_a_store_without_room_in_memory_is_an_error_and_not_a_crash(
    memory_disk: Path, action: str
) -> None:
    """Loading reads holes in the engine's files, and SIGBUS follows if tmpfs has no space for them.

    The action runs in its own process, because the signal would end it.
    """
    root = memory_disk / "store"
    build(EdgeCatalog(root, "book", 1.0), 1)
    leave_free(memory_disk, 33_000_000)
    with start_process(root, REFUSAL.format(action=action)) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert re.search(rf"only 3\d MB are free in {root}.*needs [5-7]\d MB there", output)
    (memory_disk / "filling").unlink()
    assert read_ids(EdgeCatalog(root, "book", 1.0)) == [1]


def test_a_store_on_a_full_disk_can_still_be_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(root)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    monkeypatch.setattr("rag_pipeline.adapters.stores.edge_store._is_in_memory", lambda _: False)
    catalog = EdgeCatalog(root, "book", 1.0)
    assert read_ids(catalog) == [1]
    with pytest.raises(StoreError, match="DATA_DIR") as caught:
        catalog.create(SPACE)
    assert caught.value.exit_code == 1
    monkeypatch.setattr("rag_pipeline.adapters.stores.edge_store._is_in_memory", lambda _: True)
    with pytest.raises(StoreError, match="only 0 MB are free in"):
        catalog.open_current()


def test_a_kill_between_build_and_switch_keeps_the_current_build(root: Path) -> None:
    body = """
        catalog.create(SPACE).upsert([make_point(2)])
        os._exit(9)
    """
    with start_process(root, body) as writer:
        assert writer.wait(timeout=60) == 9
    catalog = EdgeCatalog(root, "book", 5.0)
    assert read_ids(catalog) == [1]
    build(catalog, 3)
    folders = [path for path in root.iterdir() if path.is_dir()]
    assert len(folders) == 2  # the next switch deleted the unfinished build


def test_a_sweep_calls_forget_and_then_deletes_each_unused_build(root: Path) -> None:
    forgotten: list[str] = []

    def forget(collection_id: str) -> None:
        assert (root / collection_id).exists()
        forgotten.append(collection_id)

    catalog = EdgeCatalog(root, "book", 1.0, forget)
    first = str(catalog.current_id())
    second = build(catalog, 2)
    whole = catalog.create(SPACE)
    whole.close()
    half = catalog.create(SPACE)
    half.close()
    (root / half.collection_id / "space.json").unlink()
    (root / "notes").mkdir()
    assert forgotten == []
    catalog.sweep()
    assert sorted(forgotten) == sorted([whole.collection_id, half.collection_id])
    assert {path.name for path in root.iterdir()} == {first, second, "notes", "in-use.json"}
    assert read_ids(catalog) == [2]
    assert catalog.roll_back() == first
    catalog.discard(second)
    assert forgotten[2:] == [second]


def test_a_build_that_a_process_has_open_is_deleted_after_it_is_closed(root: Path) -> None:
    catalog = EdgeCatalog(root, "book", 1.0)
    first = catalog.open_current()
    second, third = build(catalog, 2), build(catalog, 3)
    assert first.count() == 1
    assert {path.name for path in root.iterdir() if path.is_dir()} == {
        first.collection_id,
        second,
        third,
    }
    first.close()
    catalog.sweep()
    assert {path.name for path in root.iterdir() if path.is_dir()} == {second, third}


def test_drop_deletes_all_builds_except_an_open_one(tmp_path: Path) -> None:
    root, forgotten = tmp_path / "store" / "book", list[str]()
    catalog = EdgeCatalog(root, "book", 1.0, forgotten.append)
    first, second = build(catalog, 1), build(catalog, 2)
    with closing(catalog.open_current()):
        catalog.drop()
        assert forgotten == [first]
        assert catalog.current_id() == second
    catalog.drop()
    assert forgotten == [first, second]
    assert not root.exists()


def test_sweep_cells_are_found_beside_their_collection(tmp_path: Path) -> None:
    cell = name_cell("book", "0123abcd")
    for name in ("book", cell, f"{cell}x", "book-sweep-", name_cell("other", "0123abcd")):
        (tmp_path / name).mkdir()
    assert EdgeCatalog(tmp_path / "book", "book", 1.0).find_cells() == [cell]
    assert EdgeCatalog(tmp_path / cell, cell, 1.0).find_cells() == []
    assert EdgeCatalog(tmp_path / "none" / "book", "book", 1.0).find_cells() == []


def test_a_sweep_of_a_missing_collection_creates_nothing(tmp_path: Path) -> None:
    EdgeCatalog(tmp_path / "store", "book", 1.0).sweep()
    assert not (tmp_path / "store").exists()


def test_a_sweep_deletes_only_the_marker_files_of_killed_processes(root: Path) -> None:
    for name, age_s in ((".waiting-1-2", 60), (".waiting-3-4", 0)):
        then = time.time() - age_s
        (root / name).touch()
        os.utime(root / name, (then, then))
    catalog = EdgeCatalog(root, "book", 1.0)
    catalog.sweep()
    assert [path.name for path in root.glob(".waiting-*")] == [".waiting-3-4"]
    assert catalog.is_wanted()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"current": 5, "previous": null}', '{"current": "x"}', "\x00"],
)
def test_the_error_for_a_damaged_in_use_file_names_the_file(root: Path, text: str) -> None:
    (root / "in-use.json").write_text(text)
    catalog = EdgeCatalog(root, "book", 0.1)
    for action in (catalog.current_id, catalog.open_current, catalog.roll_back):
        with pytest.raises(StoreError, match=r"in-use\.json cannot be read") as caught:
            action()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "\x00", None])
def test_the_newest_builds_are_found_again_if_the_in_use_file_is_lost(
    root: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = EdgeCatalog(root, "book", 0.1)
    first = catalog.current_id()
    build(catalog, 4)
    (root / "in-use.json").unlink()
    if text is not None:
        (root / "in-use.json").write_text(text)
    catalog.recover()
    assert "in-use.json" in caplog.text
    assert read_ids(catalog) == [4]
    assert catalog.roll_back() == first
    catalog.recover()
    assert catalog.current_id() == first


def test_a_damaged_in_use_file_without_builds_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "in-use.json").write_text("{")
    EdgeCatalog(tmp_path, "book", 0.1).recover()
    assert not (tmp_path / "in-use.json").exists()


def test_a_folder_in_place_of_the_in_use_file_is_an_error(root: Path) -> None:
    (root / "in-use.json").unlink()
    (root / "in-use.json").mkdir()
    with pytest.raises(StoreError, match="DATA_DIR"):
        EdgeCatalog(root, "book", 0.1).current_id()


def test_a_root_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="DATA_DIR"):
        EdgeCatalog(tmp_path / "file" / "store", "book", 0.1).create(SPACE)


@pytest.mark.parametrize("text", ["", "{}", '{"format_version": "x"}', '{"format_version": 1}'])
def test_a_damaged_embedding_space_is_an_error(root: Path, text: str) -> None:
    catalog = EdgeCatalog(root, "book", 0.1)
    (root / str(catalog.current_id()) / "space.json").write_text(text)
    with pytest.raises(StoreError, match="--rebuild"):
        catalog.open_current(SPACE)


@pytest.mark.parametrize("name", ["edge_config.json", "segment.json", "status.dat"])
def test_damaged_files_of_the_engine_raise_a_store_error(root: Path, name: str) -> None:
    """The engine panics on some of these files, and users must not see a traceback."""
    catalog = EdgeCatalog(root, "book", 0.1)
    shard = root / str(catalog.current_id()) / "shard"
    damaged = [path for path in shard.rglob("*") if path.as_posix().endswith(f"/{name}")]
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:1])
    with pytest.raises(StoreError, match="--rebuild") as caught:
        catalog.open_current(SPACE)
    assert "\n" not in str(caught.value)


def test_the_error_about_a_limit_of_the_system_gives_its_own_advice(root: Path) -> None:
    process = start_process(
        root,
        """
        import resource
        from rag_pipeline.adapters.stores.edge_store import load_shard
        shard = Path(sys.argv[1], catalog.current_id(), "shard")
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, free + 1))  # one more file
        try:
            load_shard(shard)
        except Exception as error:
            print(error)
        """,
    )
    said = process.communicate()[0]
    assert "ulimit -n" in said
    assert "--rebuild" not in said


def test_a_deleted_build_counts_as_missing(root: Path) -> None:
    catalog = EdgeCatalog(root, "book", 0.1)
    current = str(catalog.current_id())
    (root / current / "space.json").unlink()
    with pytest.raises(StoreDamagedError, match=r"space\.json is missing"):
        catalog.open_current(SPACE)
    shutil.rmtree(root / current)
    assert catalog.current_id() is None
    with pytest.raises(CollectionMissingError):
        catalog.open_current(SPACE)


def test_a_switch_deletes_only_folders_of_builds(root: Path) -> None:
    (root / "notes").mkdir()
    catalog = EdgeCatalog(root, "book", 0.1)
    for point_id in range(2, 5):
        build(catalog, point_id)
    assert (root / "notes").is_dir()
    assert sum(path.name.startswith("book-") for path in root.iterdir()) == 2


def test_a_wrong_vector_and_a_closed_store_are_errors(root: Path) -> None:
    store = EdgeCatalog(root, "book", 0.1).open_current(SPACE)
    wrong = ChannelQuery(Channel.DENSE, np.ones(DIM + 1, dtype=np.float32), 1)
    with pytest.raises(StoreError, match="dim"):
        store.search_many([wrong])
    store.close()
    with pytest.raises(StoreError):
        store.count()
