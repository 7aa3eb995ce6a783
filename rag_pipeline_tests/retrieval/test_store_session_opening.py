"""Opening the collection of a session while several threads wait for it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.errors import CollectionMissingError, StoreError, StoreLockedError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace
from rag_pipeline.retrieval.store_session import StoreSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.adapters.stores.edge_store import EdgeStore

SPACE = EmbeddingSpace(EmbeddingModel("hashing", "terms", 4, 100), 1)
CALLERS = 6


class GatedCatalog(EdgeCatalog):
    """A catalog whose openings begin only when the test allows it, and are recorded."""

    def __init__(self, root: Path, timeout_s: float) -> None:
        super().__init__(root, "book", timeout_s)
        self.waits_s: list[float | None] = []
        self.begun = threading.Event()
        self.gate = threading.Event()

    def open_current(
        self, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> EdgeStore:
        self.waits_s.append(wait_s)
        self.begun.set()
        assert self.gate.wait(30)
        return super().open_current(space, wait_s)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of an empty current collection."""
    catalog = EdgeCatalog(tmp_path, "book", 20.0)
    store = catalog.create(SPACE)
    store.close()
    catalog.switch_to(store.collection_id)
    return tmp_path


@contextmanager
def calling(session: StoreSession, found: list[int | StoreError]) -> Iterator[None]:
    """Use a session in several threads, which have ended when the block ends."""

    def use() -> None:
        try:
            with session.use() as store:
                found.append(store.count())
        except StoreError as error:
            found.append(error)

    callers = [threading.Thread(target=use) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        for caller in callers:
            caller.join(30)
        session.close()


def test_all_callers_of_a_locked_store_fail_at_their_own_deadline(root: Path) -> None:
    catalog = GatedCatalog(root, timeout_s=1.0)
    catalog.gate.set()
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    found: list[int | StoreError] = []
    other = EdgeCatalog(root, "book", 0.0).open_current()
    with calling(session, found):
        pass
    other.close()
    assert [type(entry) for entry in found] == [StoreLockedError] * CALLERS
    # Together they waited about as long as one: a later opening has only the rest of its time.
    waits_s = [wait_s for wait_s in catalog.waits_s if wait_s is not None]
    assert len(waits_s) == len(catalog.waits_s)
    assert sum(waits_s) < 3.0, waits_s


def test_callers_share_one_opening(root: Path) -> None:
    catalog = GatedCatalog(root, timeout_s=20.0)
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    found: list[int | StoreError] = []
    with calling(session, found):
        assert catalog.begun.wait(10)
        catalog.gate.set()
    assert found == [0] * CALLERS
    assert len(catalog.waits_s) == 1


def test_callers_share_a_failure_that_no_wait_can_change(tmp_path: Path) -> None:
    catalog = GatedCatalog(tmp_path, timeout_s=20.0)
    catalog.gate.set()
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    found: list[int | StoreError] = []
    with calling(session, found):
        pass
    assert [type(entry) for entry in found] == [CollectionMissingError] * CALLERS
    assert len({id(entry) for entry in found}) == CALLERS


def test_a_caller_opens_the_store_after_another_could_not(root: Path) -> None:
    catalog = GatedCatalog(root, timeout_s=20.0)
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    found: list[int | StoreError] = []
    opening = EdgeCatalog.open_current

    def fail_once(
        self: EdgeCatalog, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> EdgeStore:
        if len(catalog.waits_s) == 1:
            raise StoreLockedError("another process has the store open")
        return opening(self, space, wait_s)

    with pytest.MonkeyPatch.context() as patched, calling(session, found):
        patched.setattr(EdgeCatalog, "open_current", fail_once)
        assert catalog.begun.wait(10)
        catalog.gate.set()
    assert sum(entry == 0 for entry in found) == CALLERS - 1


def test_the_session_can_be_paused_and_closed_while_a_thread_opens_the_store(root: Path) -> None:
    catalog = GatedCatalog(root, timeout_s=20.0)
    session = StoreSession(catalog, SPACE, idle_s=60.0, is_exclusive=True)
    counts: list[int] = []

    def use() -> None:
        with session.use() as store:
            counts.append(store.count())

    caller = threading.Thread(target=use)
    caller.start()
    assert catalog.begun.wait(10)
    session.pause(0.0)  # the deadline has passed already, so it does not wait for the opening
    session.resume()
    session.close()
    catalog.gate.set()
    caller.join(10)
    assert counts == [0]
    EdgeCatalog(root, "book", 0.0).open_current().close()  # it is closed after its last use
