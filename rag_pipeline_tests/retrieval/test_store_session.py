"""A process that reads lets one that wants to write have the embedded store in between."""

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
    catalog = EdgeCatalog(tmp_path, "book", 20.0)
    build(catalog)
    return catalog


def build(catalog: EdgeCatalog) -> None:
    store = catalog.create(SPACE)
    store.close()
    catalog.switch_to(store.collection_id)


def test_a_writer_gets_the_store_while_four_callers_query_without_a_pause(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
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
        session.close()
    assert done.stdout == "opened\n", done.stderr
    assert errors == []
    assert not list(tmp_path.glob(".waiting-*"))


def test_a_writer_gets_the_store_from_a_session_that_idles_for_long(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=600.0, is_exclusive=True)
    with session.use() as store:
        assert store.count() == 0
    writer = EdgeCatalog(tmp_path, "book", 20.0).open_current()
    writer.close()
    with session.use() as store:  # and opens it again when asked
        assert store.count() == 0
    session.close()


def test_a_session_closed_under_one_caller_serves_the_next_at_once(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    counts: list[int] = []

    def query() -> None:
        with session.use() as store:
            counts.append(store.count())

    with session.use():
        session.close()
        other = threading.Thread(target=query)
        other.start()
        other.join(5)
        assert counts == [0]  # it once waited for a lock that only its own process could let go of
    EdgeCatalog(tmp_path, "book", 0.0).open_current().close()  # the last caller closed it


class _LosesOne(EdgeCatalog):
    """A catalog that answers the next caller only when told to, as when a request is lost."""

    lost: threading.Event | None = None

    def current_id(self) -> str | None:
        lost, self.lost = self.lost, None
        if lost is not None:
            lost.wait(30)
        return super().current_id()


def test_a_lost_request_holds_up_no_caller_but_its_own(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    del catalog  # made the collection
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
        assert all(served.acquire(timeout=10) for _ in range(4))  # one before, three now
    finally:
        answered.set()
        for caller in callers:
            caller.join()
        session.close()


def test_a_process_forked_from_one_that_queried_can_query(catalog: EdgeCatalog) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    with session.use() as store:
        store.count()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that waits for a thread it has not
        with session.use() as store:
            os._exit(store.count())
    _, status = os.waitpid(child, 0)
    assert status == 0
    with session.use() as store:
        assert store.count() == 0
    session.close()


def fork_until_told() -> tuple[int, int]:
    """Fork a process that touches nothing; it ends once the descriptor returned is closed."""
    waits, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tells)
        signal.alarm(60)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    return child, tells


def test_a_caller_goes_on_while_a_process_lives_that_was_forked_meanwhile(tmp_path: Path) -> None:
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
                    for _ in range(200):  # all but always under way when the fork comes
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


def test_a_paused_session_lets_go_once_its_callers_are_done_and_lets_in_no_others(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    entered, leave, served = threading.Event(), threading.Event(), threading.Event()

    def stay() -> None:
        with session.use():
            entered.set()
            leave.wait(30)
            with session.use():  # inside its own: to wait for the pause's end would be for itself
                pass

    def query() -> None:
        with session.use():
            served.set()

    staying = threading.Thread(target=stay)
    staying.start()
    assert entered.wait(10)
    session.pause(time.monotonic())  # given up on at once
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
    session.close()


def test_a_fork_inside_a_use_does_not_wait_for_it_and_leaves_it_open(catalog: EdgeCatalog) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    with session.use() as store:
        start = time.monotonic()
        child, tells = fork_until_told()
        assert time.monotonic() - start < 10.0
        assert store.count() == 0
    with session.use() as store:
        assert store.count() == 0
    os.close(tells)
    os.waitpid(child, 0)
    session.close()


def test_a_process_forked_inside_a_use_leaves_it_without_unlocking_the_store(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    with session.use():
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreLockedError):
        EdgeCatalog(tmp_path, "book", 0.0).open_current()
    session.close()


def test_a_mark_that_a_killed_process_left_stops_counting(
    catalog: EdgeCatalog, tmp_path: Path
) -> None:
    mark = tmp_path / ".waiting-1"
    mark.touch()
    assert catalog.is_wanted()
    old = time.time() - 60

    os.utime(mark, (old, old))
    assert not catalog.is_wanted()
