"""Holding the collection in use open between queries, and letting go of it when idle.

The embedded store admits one process at a time: a query must not keep an ingest out for longer than
it works. A rebuild that was switched to is seen by the next query. A forked process would keep what
is open at the fork locked for as long as it lives, even from the one it comes from.
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


_MAKE_WAY_S = 0.3  # a waiting process looks at least every 0.25 s
_LOOK_S = 0.25  # how often an idle holder looks whether another process waits
_FORK_WAIT_S = 10.0  # how long a fork waits for callers: longer than any query that does not hang


@dataclass(slots=True)
class _Held:
    """An open collection, how many callers are in it, and whether the last closes it."""

    store: PointStore
    users: int = 0
    last_used: float = 0.0
    closing: bool = False


class StoreSession:
    """Opens the collection in use on demand, shares it among threads, closes it after a while.

    Args:
        catalog: Knows which collection is in use.
        space: What the collection must have been built with.
        idle_s: How long an unused collection stays open; 0 closes it after every use.
        is_exclusive: Whether nobody else can write the collection while it is open here.
        recheck_s: How long it is taken for granted that the open collection is the one in use; 0
            asks the catalog before each use.
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
        self._held: _Held | None = None
        self._closer: threading.Thread | None = None
        self._threads: list[int] = []  # of callers, each as often as it is in a collection
        self._is_paused = False
        with _forking:
            _watch_forks()
            _sessions.add(self)

    @contextmanager
    def use(self) -> Iterator[PointStore]:
        """The collection in use, open at least until the block ends.

        Raises:
            CollectionMissingError: Nothing has been ingested.
            SpaceMismatchError: It was built with another space.
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """
        own = threading.get_ident()
        held = self._enter(own)
        try:
            yield held.store
        finally:
            self._leave(held, own)

    def pause(self, deadline: float) -> None:
        """Let nobody in before `resume`, and let go of the collection once nobody is in it.

        The wait for callers ends at the deadline, a `time.monotonic()`. The calling thread's own
        use is not waited for, nor that of a server, which any number of processes may use. A
        collection that somebody is still in then stays open: opened anew after a fork it would be
        refused.
        """
        own = threading.get_ident()
        with self._changed:
            self._is_paused = True
            if self.is_exclusive:
                self._changed.wait_for(
                    lambda: all(thread == own for thread in self._threads),
                    max(deadline - time.monotonic(), 0.0),
                )
            if self._held is not None and self._held.users == 0:
                self._drop()

    def resume(self) -> None:
        """Let callers in again."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def close(self) -> None:
        """Let go of the collection, now or when its last caller is done; a later use reopens it."""
        with self._changed:
            if self._held is not None and self._held.users > 0:
                self._held.closing = True  # to open it beside itself, its own lock is in the way
            else:
                self._drop()

    def forget(self) -> None:
        """Begin anew in a forked process: it has none of the threads, and must not touch a store
        that the process it comes from had open.
        """
        if self._held is not None:
            self._held.users += 1  # a caller that leaves it here is not the last
            _inherited.append(self._held)  # an end of its life would close it
        self._held, self._closer = None, None
        own = threading.get_ident()
        self._threads = [thread for thread in self._threads if thread == own]
        self._is_paused = False
        self._begin_locks()

    def _begin_locks(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # The closer waits by itself: to wake it at each use would cost every query a switch to it.
        self._dropped = threading.Condition(lock)

    def _enter(self, own: int) -> _Held:
        self._drop_if_replaced()
        with self._changed:
            self._make_way()
            # Who is in it already is waited for: to keep it here would hold up both.
            self._changed.wait_for(lambda: not self._is_paused or own in self._threads)
            if self._held is None:
                self._held = _Held(self._catalog.open_current(self._space))
                self._checked_at = time.monotonic()
            self._held.users += 1
            self._threads.append(own)
            return self._held

    def _drop_if_replaced(self) -> None:
        """Ask the catalog where it is time to, without the lock: a request that is lost on the way
        to a server holds up one caller, not all of them.
        """
        with self._changed:
            held, now = self._held, time.monotonic()
            if held is None or now - self._checked_at < self._recheck_s:
                return
            self._checked_at = now
        collection_id = self._catalog.current_id()
        with self._changed:
            if self._held is held and held.store.collection_id != collection_id:
                self._drop()

    def _make_way(self) -> None:
        """Let a process that waits for the store have it once, before it is opened here again."""
        if not self.is_exclusive or not self._catalog.is_wanted():
            return
        self._changed.wait_for(lambda: self._held is None or self._held.users == 0, _MAKE_WAY_S)
        if self._held is not None and self._held.users == 0:
            self._drop()
        if self._held is None:
            self._changed.wait(_MAKE_WAY_S)

    def _leave(self, held: _Held, own: int) -> None:
        with self._changed:
            held.users -= 1
            held.last_used = time.monotonic()
            self._threads.remove(own)
            self._changed.notify_all()
            if held.users > 0:
                return
            if held is not self._held:
                held.store.close()
            elif (
                held.closing
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
        """Forget the open collection; whoever is still in it closes it on leaving."""
        held, self._held = self._held, None
        self._changed.notify_all()
        self._dropped.notify_all()
        if held is not None and held.users == 0:
            held.store.close()

    def _close_when_idle(self) -> None:
        with self._changed:
            while self._held is not None:
                wait_s = self._idle_s
                if self._held.users == 0:
                    wait_s = self._held.last_used + self._idle_s - time.monotonic()
                    if wait_s <= 0 or (self.is_exclusive and self._catalog.is_wanted()):
                        self._drop()
                        break
                self._dropped.wait(min(wait_s, _LOOK_S) if self.is_exclusive else wait_s)
            self._closer = None


_sessions: Final[WeakSet[StoreSession]] = WeakSet()
_inherited: Final[list[_Held]] = []
_forking: Final = threading.RLock()
"""Held over a fork: a second one at once would resume sessions that the first has paused."""


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
    """Register for forks behind all that the catalog of the first session has imported: the last
    registered goes first, and a library of file locks that went before us would let none go.
    """
    os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_forget_all)
