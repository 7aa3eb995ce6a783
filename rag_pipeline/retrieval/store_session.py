"""Holding the collection in use open between queries, and letting go of it when idle.

The embedded store admits one process at a time: a query must not keep an ingest out for longer than
it works. A rebuild that was switched to is seen by the next query.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.models import EmbeddingSpace
    from rag_pipeline.core.ports import CollectionCatalog, PointStore


_MAKE_WAY_S = 0.3  # a waiting process looks at least every 0.25 s
_LOOK_S = 0.25  # how often an idle holder looks whether another process waits


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
        _sessions.add(self)

    @contextmanager
    def use(self) -> Iterator[PointStore]:
        """The collection in use, open at least until the block ends.

        Raises:
            CollectionMissingError: Nothing has been ingested.
            SpaceMismatchError: It was built with another space.
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """
        held = self._enter()
        try:
            yield held.store
        finally:
            self._leave(held)

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
            _inherited.append(self._held)  # an end of its life would close it
        self._held, self._closer = None, None
        self._begin_locks()

    def _begin_locks(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # The closer waits by itself: to wake it at each use would cost every query a switch to it.
        self._dropped = threading.Condition(lock)

    def _enter(self) -> _Held:
        self._drop_if_replaced()
        with self._changed:
            self._make_way()
            if self._held is None:
                self._held = _Held(self._catalog.open_current(self._space))
                self._checked_at = time.monotonic()
            self._held.users += 1
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

    def _leave(self, held: _Held) -> None:
        with self._changed:
            held.users -= 1
            held.last_used = time.monotonic()
            if held.users > 0:
                return
            self._changed.notify_all()
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


def _close_all() -> None:
    for session in list(_sessions):
        session.close()


def _forget_all() -> None:
    for session in list(_sessions):
        session.forget()


os.register_at_fork(before=_close_all, after_in_child=_forget_all)
