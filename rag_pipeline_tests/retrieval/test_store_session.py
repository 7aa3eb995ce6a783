"""Store sessions: sharing the embedded store with other processes, and forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.errors import StoreLockedError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace
from rag_pipeline.retrieval.store_session import StoreSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPACE = EmbeddingSpace(EmbeddingModel("hashing", "terms", 4, 100), 1)
WRITER = """
import sys, pathlib
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
store = EdgeCatalog(pathlib.Path(sys.argv[1]), "book", 20.0).open_current()
print("opened", flush=True)
store.close()
"""


@pytest.fixture
def catalog(tmp_path: Path) -> EdgeCatalog:
    """A catalog with an empty current collection."""
    catalog = EdgeCatalog(tmp_path, "book", 20.0)
    build(catalog)
    return catalog


@pytest.fixture
def session(catalog: EdgeCatalog) -> Iterator[StoreSession]:
    """A session over the collection, which stays open between its uses."""
    opened = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    yield opened
    opened.close()


def build(catalog: EdgeCatalog) -> None:
    """Create an empty collection and make it the current one."""
    store = catalog.create(SPACE)
    store.close()
    catalog.switch_to(store.collection_id)


def test_a_writer_can_open_the_store_while_four_threads_query_without_a_break(
    session: StoreSession, tmp_path: Path
) -> None:
    stop = threading.Event()
    errors: list[Exception] = []

    def query() -> None:
        while not stop.is_set():
            try:
                with session.use() as store:
                    store.count()
            except Exception as error:  # noqa: BLE001  # shown by the assertion below
                errors.append(error)
                return

    readers = [threading.Thread(target=query) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        done = subprocess.run(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert done.stdout == "opened\n", done.stderr
    assert errors == []
    assert not list(tmp_path.glob(".waiting-*"))


def test_a_writer_can_open_the_store_that_an_idle_session_has_open(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=600.0, is_exclusive=True)
    with session.use() as store:
        assert store.count() == 0
    writer = EdgeCatalog(tmp_path, "book", 20.0).open_current()
    writer.close()
    with session.use() as store:  # the session opens the store again
        assert store.count() == 0
    session.close()


def test_a_session_that_is_closed_during_a_use_serves_the_next_caller_at_once(
    session: StoreSession, tmp_path: Path
) -> None:
    counts: list[int] = []

    def query() -> None:
        with session.use() as store:
            counts.append(store.count())

    with session.use():
        session.close()
        other = threading.Thread(target=query)
        other.start()
        other.join(5)
        assert counts == [0]  # before a fix, it waited for a lock of its own process
    # Opening succeeds because the last user has closed the store.
    EdgeCatalog(tmp_path, "book", 0.0).open_current().close()


class _LosesOne(EdgeCatalog):
    """A catalog that delays one answer until the event `lost` is set, like a lost request."""

    lost: threading.Event | None = None

    def current_id(self) -> str | None:
        lost, self.lost = self.lost, None
        if lost is not None:
            lost.wait(30)
        return super().current_id()


def test_a_lost_request_delays_only_its_own_caller(catalog: EdgeCatalog, tmp_path: Path) -> None:
    del catalog  # the fixture is needed only to create the collection
    losing = _LosesOne(tmp_path, "book", 20.0)
    session = StoreSession(losing, SPACE, idle_s=60.0, is_exclusive=False)
    served = threading.Semaphore(0)

    def query() -> None:
        with session.use():
            served.release()

    query()
    answered = losing.lost = threading.Event()
    callers = [threading.Thread(target=query) for _ in range(4)]
    for caller in callers:
        caller.start()
    try:
        # One query was served before, and three of the four callers now.
        assert all(served.acquire(timeout=10) for _ in range(4))
    finally:
        answered.set()
        for caller in callers:
            caller.join()
        session.close()


def test_a_child_process_can_query_after_its_parent_has_queried(session: StoreSession) -> None:
    with session.use() as store:
        store.count()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that waits for a thread that it does not have
        with session.use() as store:
            os._exit(store.count())
    _, status = os.waitpid(child, 0)
    assert status == 0
    with session.use() as store:
        assert store.count() == 0


def fork_until_told() -> tuple[int, int]:
    """Fork an idle child process and return its id and a descriptor.

    Closing the descriptor ends the child.
    """
    waits, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tells)
        signal.alarm(60)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    return child, tells


def test_queries_continue_while_a_child_forked_during_a_query_is_alive(tmp_path: Path) -> None:
    catalog = EdgeCatalog(tmp_path, "book", timeout_s=0.5)
    build(catalog)
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    begun, stop = threading.Semaphore(0), threading.Event()
    errors: list[Exception] = []

    def query() -> None:
        try:
            while not stop.is_set():
                with session.use() as store:
                    begun.release()
                    for _ in range(200):  # makes it likely that a use is running at the fork
                        store.count()
        except Exception as error:  # noqa: BLE001  # shown by the assertion below
            errors.append(error)

    reader = threading.Thread(target=query)
    reader.start()
    assert all(begun.acquire(timeout=10) for _ in range(5))
    child, tells = fork_until_told()
    try:
        while begun.acquire(blocking=False):
            pass
        assert all(begun.acquire(timeout=10) for _ in range(5)), errors
    finally:
        stop.set()
        os.close(tells)
        os.waitpid(child, 0)
        reader.join()
        session.close()
    assert errors == []


def test_a_paused_session_closes_when_its_users_are_done_and_blocks_new_users(
    session: StoreSession, tmp_path: Path
) -> None:
    entered, leave, served = threading.Event(), threading.Event(), threading.Event()

    def stay() -> None:
        with session.use():
            entered.set()
            leave.wait(30)
            with session.use():  # a nested use must not wait for the end of the pause
                pass

    def query() -> None:
        with session.use():
            served.set()

    staying = threading.Thread(target=stay)
    staying.start()
    assert entered.wait(10)
    session.pause(time.monotonic())  # the deadline has passed already
    coming = threading.Thread(target=query)
    coming.start()
    leave.set()
    session.pause(time.monotonic() + 10)
    staying.join(10)
    EdgeCatalog(tmp_path, "book", 0.0).open_current().close()
    assert not served.is_set()
    session.resume()
    assert served.wait(10)
    coming.join()


def test_a_fork_inside_a_use_does_not_wait_and_leaves_the_store_open(session: StoreSession) -> None:
    with session.use() as store:
        child, tells = fork_until_told()
        assert store.count() == 0
    with session.use() as store:
        assert store.count() == 0
    os.close(tells)
    os.waitpid(child, 0)


def test_a_child_forked_inside_a_use_exits_without_unlocking_the_store(
    session: StoreSession, tmp_path: Path
) -> None:
    with session.use():
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreLockedError):
        EdgeCatalog(tmp_path, "book", 0.0).open_current()


def test_the_waiting_mark_of_a_killed_process_expires(catalog: EdgeCatalog, tmp_path: Path) -> None:
    mark = tmp_path / ".waiting-1"
    mark.touch()
    assert catalog.is_wanted()
    old = time.time() - 60

    os.utime(mark, (old, old))
    assert not catalog.is_wanted()
