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
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.protocols.stores import CollectionCatalog, PointStore
    from rag_pipeline.core.vectors import EmbeddingSpace


_MAKE_WAY_S = 0.3  # seconds; a waiting process tries at least every 0.25 s
_LOOK_S = 0.25  # seconds between two checks of an idle session for a waiting process
_FORK_WAIT_S = 10.0  # seconds that a fork waits for running queries; only a hung query takes longer


@dataclass(slots=True)
class _OpenCollection:
    """An open collection and its users.

    Attributes:
        users: Number of `use` blocks that are running.
        last_used: The `time.monotonic()` at which a user last left.
        closing: True if the last user must close the collection.
    """

    store: PointStore
    users: int = 0
    last_used: float = 0.0
    closing: bool = False


class StoreSession:
    """The current collection, opened on demand, shared among threads and closed when idle.

    Args:
        catalog: Knows which collection is current, and opens it.
        space: The embedding space (model and format) that the collection must be built with.
        idle_s: Seconds that an unused collection stays open; 0 closes it after every use.
        is_exclusive: True if no other process can write the collection while it is open here.
        recheck_s: Seconds after a check during which the open collection is assumed to be the
            current one; 0 asks the catalog before each use.
    """

    def __init__(
        self,
        catalog: CollectionCatalog,
        space: EmbeddingSpace,
        idle_s: float,
        *,
        is_exclusive: bool,
        recheck_s: float = 0.0,
    ) -> None:
        self.is_exclusive = is_exclusive
        self._catalog = catalog
        self._space = space
        self._idle_s = idle_s
        self._recheck_s = recheck_s
        self._checked_at = -recheck_s
        self._begin_locks()
        self._opened: _OpenCollection | None = None
        self._closer: threading.Thread | None = None
        self._threads: list[int] = []  # ids of the users' threads, one entry for each running use
        self._is_paused = False
        with _forking:
            _watch_forks()
            _sessions.add(self)

    @contextmanager
    def use(self) -> Iterator[PointStore]:
        """Yield the current collection, which stays open at least until the block ends.

        Raises:
            CollectionMissingError: Nothing has been ingested yet.
            SpaceMismatchError: The collection was built with another embedding space.
            StoreUnavailableError: The store is unreachable, timed out or is locked by another
                process.
        """
        own = threading.get_ident()
        opened = self._enter(own)
        try:
            yield opened.store
        finally:
            self._leave(opened, own)

    def pause(self, deadline: float) -> None:
        """Block new uses of the collection until `resume`, and close it when its users are done.

        A handler calls this before the process forks. It waits for the users of an exclusive
        collection, except for the calling thread. It does not wait for the users of a server,
        because several processes can share a server. A collection that is still in use at the
        deadline stays open in the parent process.

        Args:
            deadline: The `time.monotonic()` at which the wait for users ends.
        """
        own = threading.get_ident()
        with self._changed:
            self._is_paused = True
            if self.is_exclusive:
                self._changed.wait_for(
                    lambda: all(thread == own for thread in self._threads),
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

        The child has none of the parent's other threads, and it must not use a store that the
        parent has open. The child's next query opens the collection itself.
        """
        if self._opened is not None:
            self._opened.users += 1  # so that no user in the child is the last one and closes it
            _inherited.append(self._opened)  # garbage collection would close it
        self._opened, self._closer = None, None
        own = threading.get_ident()
        self._threads = [thread for thread in self._threads if thread == own]
        self._is_paused = False
        self._begin_locks()

    def _begin_locks(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # A separate condition: waking the closing thread would cost each use a thread switch.
        self._dropped = threading.Condition(lock)

    def _enter(self, own: int) -> _OpenCollection:
        self._drop_if_replaced()
        with self._changed:
            self._make_way()
            # `pause` waits for threads that are already users, so they must not wait for `resume`.
            self._changed.wait_for(lambda: not self._is_paused or own in self._threads)
            if self._opened is None:
                self._opened = _OpenCollection(self._catalog.open_current(self._space))
                self._checked_at = time.monotonic()
            self._opened.users += 1
            self._threads.append(own)
            return self._opened

    def _drop_if_replaced(self) -> None:
        """Stop sharing the open collection if the catalog has switched to another collection.

        The catalog is asked at most once in `recheck_s` seconds. The lock is not held meanwhile, so
        that a lost request to a server delays only one caller.
        """
        with self._changed:
            opened, now = self._opened, time.monotonic()
            if opened is None or now - self._checked_at < self._recheck_s:
                return
            self._checked_at = now
        collection_id = self._catalog.current_id()
        with self._changed:
            if self._opened is opened and opened.store.collection_id != collection_id:
                self._drop()

    def _make_way(self) -> None:
        """Release the embedded store for a moment if another process is waiting to open it."""
        if not self.is_exclusive or not self._catalog.is_wanted():
            return
        self._changed.wait_for(lambda: self._opened is None or self._opened.users == 0, _MAKE_WAY_S)
        if self._opened is not None and self._opened.users == 0:
            self._drop()
        if self._opened is None:
            self._changed.wait(_MAKE_WAY_S)

    def _leave(self, opened: _OpenCollection, own: int) -> None:
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


_sessions: Final[WeakSet[StoreSession]] = WeakSet()
_inherited: Final[list[_OpenCollection]] = []
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
def _watch_forks() -> None:
    """Register the fork handlers once, when the first session is created.

    Handlers that are registered last run first. Ours must run before those of the file lock
    library, because no lock can be released after them. The catalog has already imported that
    library.
    """
    os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_forget_all)
