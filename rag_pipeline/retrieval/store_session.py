"""A session that keeps the current collection open between queries and closes it when idle.

Only one process at a time can open the embedded store, so a session releases it when another
process waits for it. After a rebuild, the next query uses the new collection. Before a fork, the
collection is closed, because the child process would keep the store locked as long as it runs.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from rag_pipeline.core.errors import (
    CollectionMissingError,
    IngestionRunningError,
    StoreError,
    StoreLockedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_pipeline.core.protocols import CollectionCatalog, IngestionProgress, PointStore
    from rag_pipeline.core.vectors import EmbeddingSpace


_FORK_WAIT_S: Final = 10.0
"""Seconds that a fork waits for running queries; only a hung query takes longer."""
_sessions: Final[WeakSet[StoreSession]] = WeakSet()
_inherited: Final[list[OpenCollection]] = []
"""The open collections of the parent of this process, because garbage collection closes them."""
_forking: Final = threading.RLock()
"""A lock that is held during a fork, so that two forks do not resume each other's sessions."""


def _pause_all() -> None:
    _forking.acquire()
    deadline = time.monotonic() + _FORK_WAIT_S
    for session in list(_sessions):
        session.pause(deadline)


def _resume_all() -> None:
    for session in list(_sessions):
        session.resume()
    _forking.release()


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()
    _forking.release()


@cache
def _register() -> None:
    """Register the fork handlers once, when the first session is created.

    Handlers that are registered last run first. Ours must run before those of the file lock
    library, because no lock can be released after them. The catalog has already imported that
    library.
    """
    os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_forget_all)


@dataclass(slots=True)
class OpenCollection:
    """A collection that is open or that a thread is opening, and its users.

    Attributes:
        store: The collection; unset until the opening has ended.
        ended: Set when the opening has ended; other threads wait for it.
        error: The reason why it could not be opened, if it is known.
        users: Number of `use` blocks that are running, with the one that opens the collection.
        last_used: The `time.monotonic()` at which a user last left.
        closing: True if the last user must close the collection.
    """

    store: PointStore = field(init=False)
    ended: threading.Event = field(default_factory=threading.Event)
    error: StoreError | None = None
    users: int = 0
    last_used: float = 0.0
    closing: bool = False


_MAKE_WAY_S = 0.3  # seconds; a waiting process tries at least every 0.25 s
_LOOK_S = 0.25  # seconds between two checks of an idle session for a waiting process


class StoreSession:
    """The current collection, opened on demand, shared among threads and closed when idle.

    Args:
        catalog: Knows which collection is current, and opens it.
        space: The embedding space (model and format) that the collection must be built with.
        idle_s: Seconds that an unused collection stays open; 0 closes it after every use.
        is_exclusive: True if no other process can write the collection while it is open here.
        recheck_s: Seconds after a check during which the open collection is assumed to be the
            current one; 0 asks the catalog before each use.
        find_running: Returns how far the running ingestion of the book is, or None.
    """

    def __init__(
        self,
        catalog: CollectionCatalog,
        space: EmbeddingSpace,
        idle_s: float,
        *,
        is_exclusive: bool,
        recheck_s: float = 0.0,
        find_running: Callable[[], IngestionProgress | None] = lambda: None,
    ) -> None:
        self.is_exclusive = is_exclusive
        self._catalog = catalog
        self._space = space
        self._idle_s = idle_s
        self._recheck_s = recheck_s
        self._find_running = find_running
        self._checked_at = -recheck_s
        self._begin_locks()
        self._opened: OpenCollection | None = None
        self._closer: threading.Thread | None = None
        self._threads: list[int] = []  # ids of the users' threads, one entry for each running use
        self._is_paused = False
        with _forking:
            _register()
            _sessions.add(self)

    @contextmanager
    def use(self) -> Iterator[PointStore]:
        """Yield the current collection, which stays open at least until the block ends.

        If another process has locked the store, each caller waits at most the catalog's
        `timeout_s`, whatever other callers do.

        Raises:
            CollectionMissingError: Nothing has been ingested yet.
            IngestionRunningError: The first ingestion is running.
            SpaceMismatchError: The collection was built with another embedding space.
            StoreUnavailableError: The store is unreachable, timed out or is locked by another
                process.
        """
        own = threading.get_ident()
        try:
            opened = self._enter(own)
            try:
                yield opened.store
            finally:
                self._leave(opened, own)
        except CollectionMissingError as error:
            running = self._find_running()
            if running is None:
                raise
            raise IngestionRunningError(
                error.collection, error.where, running.done, running.total
            ) from error

    def pause(self, deadline: float) -> None:
        """Block new uses of the collection until `resume`, and close it when its users are done.

        A handler calls this before the process forks. It waits for the users of an exclusive
        collection, except for the calling thread, and for a thread that is opening it. It does not
        wait for the users of a server, because several processes can share a server. A collection
        that is still in use at the deadline stays open in the parent process.

        Args:
            deadline: The `time.monotonic()` at which the wait for users ends.
        """
        own = threading.get_ident()
        with self._changed:
            self._is_paused = True
            if self.is_exclusive:
                self._changed.wait_for(
                    lambda: all(user == own for user in self._threads),
                    max(deadline - time.monotonic(), 0.0),
                )
            if self._opened is not None and self._opened.users == 0:
                self._drop()

    def resume(self) -> None:
        """Allow new uses of the collection again; called in the parent process after a fork."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def close(self) -> None:
        """Close the collection, now or when its last user is done; a later use opens it again."""
        with self._changed:
            if self._opened is not None and self._opened.users > 0:
                self._opened.closing = True  # its lock would prevent a second opening now
            else:
                self._drop()

    def forget(self) -> None:
        """Reset the session in a child process, directly after the fork that created it.

        The child has none of the parent's other threads, and must not use the parent's open store.
        """
        if self._opened is not None:
            self._opened.users += 1  # so that no user in the child is the last one and closes it
            _inherited.append(self._opened)
        self._opened = self._closer = None
        own = threading.get_ident()
        self._threads = [thread for thread in self._threads if thread == own]
        self._is_paused = False
        self._begin_locks()

    def _begin_locks(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # A separate condition: waking the closing thread would cost each use a thread switch.
        self._dropped = threading.Condition(lock)

    def _enter(self, own: int) -> OpenCollection:
        deadline = time.monotonic() + self._catalog.timeout_s
        self._drop_if_replaced()
        with self._changed:
            self._make_way()
            self._wait_to_enter(own, deadline)
            opened = self._opened or OpenCollection()
            must_open = self._opened is None
            self._opened = opened
            opened.users += 1
            self._threads.append(own)
        if must_open:
            self._open(opened, own, deadline)
        return opened

    def _wait_to_enter(self, own: int, deadline: float) -> None:
        """Wait until the collection is open or this thread may open it.

        If the opening of another thread fails because of a lock, this thread may try it until its
        own deadline.

        Raises:
            StoreError: The opening of another thread failed, and this thread may not try it.
        """
        failure: StoreError | None = None
        while True:
            # `pause` waits for threads that are already users, so they must not wait for `resume`.
            self._changed.wait_for(lambda: not self._is_paused or own in self._threads)
            opened = self._opened
            if opened is not None and opened.ended.is_set():
                return
            is_late = time.monotonic() >= deadline
            if failure and (is_late or not isinstance(failure, StoreLockedError)):
                raise copy(failure) from failure
            if opened is None:
                return
            left_s = deadline - time.monotonic() if failure else None
            self._changed.wait_for(opened.ended.is_set, left_s)
            failure = opened.error or failure

    def _open(self, opened: OpenCollection, own: int, deadline: float) -> None:
        """Open the collection without holding the lock."""
        is_open = False
        try:
            left_s = max(deadline - time.monotonic(), 0.0)
            opened.store = self._catalog.open_current(self._space, left_s)
            is_open = True
        except StoreError as error:
            opened.error = error
            raise
        finally:
            with self._changed:
                opened.ended.set()
                self._checked_at = time.monotonic()
                if not is_open:
                    self._opened = None
                    self._threads.remove(own)
                self._changed.notify_all()

    def _drop_if_replaced(self) -> None:
        """Stop sharing the open collection if the catalog has switched to another collection.

        The catalog is asked at most once in `recheck_s` seconds. The lock is not held meanwhile, so
        that a lost request to a server delays only one caller.
        """
        with self._changed:
            opened, now = self._opened, time.monotonic()
            is_checked = now - self._checked_at < self._recheck_s
            if opened is None or not opened.ended.is_set() or is_checked:
                return
            self._checked_at = now
        collection_id = self._catalog.current_id()
        with self._changed:
            if self._opened is opened and opened.store.collection_id != collection_id:
                self._drop()

    def _make_way(self) -> None:
        """Release the embedded store for a moment if another process is waiting to open it."""
        is_opening = self._opened is not None and not self._opened.ended.is_set()
        if not self.is_exclusive or is_opening or not self._catalog.is_wanted():
            return
        self._changed.wait_for(lambda: self._opened is None or self._opened.users == 0, _MAKE_WAY_S)
        if self._opened is not None and self._opened.users == 0:
            self._drop()
        if self._opened is None:
            self._changed.wait(_MAKE_WAY_S)

    def _leave(self, opened: OpenCollection, own: int) -> None:
        with self._changed:
            opened.users -= 1
            opened.last_used = time.monotonic()
            self._threads.remove(own)
            self._changed.notify_all()
            if opened.users > 0:
                return
            if opened is not self._opened:
                opened.store.close()
            elif (
                opened.closing
                or self._idle_s == 0
                or (self.is_exclusive and self._catalog.is_wanted())
            ):
                self._drop()
            elif self._closer is None:
                self._closer = threading.Thread(
                    target=self._close_when_idle, name="store-session", daemon=True
                )
                self._closer.start()

    def _drop(self) -> None:
        """Stop sharing the open collection, and close it now or when its last user leaves."""
        opened, self._opened = self._opened, None
        self._changed.notify_all()
        self._dropped.notify_all()
        if opened is not None and opened.users == 0:
            opened.store.close()

    def _close_when_idle(self) -> None:
        with self._changed:
            while self._opened is not None:
                wait_s = self._idle_s
                if self._opened.users == 0:
                    wait_s = self._opened.last_used + self._idle_s - time.monotonic()
                    if wait_s <= 0 or (self.is_exclusive and self._catalog.is_wanted()):
                        self._drop()
                        break
                self._dropped.wait(min(wait_s, _LOOK_S) if self.is_exclusive else wait_s)
            self._closer = None
