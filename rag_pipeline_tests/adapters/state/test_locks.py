"""Tests of lock files between processes."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from rag_pipeline.adapters.state.locks import hold_lock
with hold_lock(Path(sys.argv[1]), 1.0):
    print("held", flush=True)
    sys.stdin.readline()
"""


def start_holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until it receives a line, and wait for its lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_lock_is_free_again_after_its_block_and_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lock"
    with hold_lock(path, 0.0):
        pass
    with pytest.raises(KeyError), hold_lock(path, 0.0):
        raise KeyError
    with hold_lock(path, 0.0):
        pass


def test_a_lock_held_by_another_process_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        start = time.monotonic()
        with (
            pytest.raises(StoreLockedError, match=r"held .*lock for 0\.2 s.*INGEST_LOCK_TIMEOUT_S"),
            hold_lock(path, 0.2),
        ):
            pass
        assert time.monotonic() - start >= 0.2
        holder.communicate("go\n")
    with hold_lock(path, 5.0):
        pass


def test_the_error_gives_the_advice_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path, 0.0):
        with pytest.raises(StoreLockedError) as caught, hold_lock(path, 0.0, "Try again later"):
            pass
        assert str(caught.value) == f"another process holds the lock {path}. Try again later"


def test_a_lock_is_released_when_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with start_holder(path) as holder:
        holder.kill()
        holder.wait()
        with hold_lock(path, 5.0):
            pass
