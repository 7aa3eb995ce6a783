"""Close the open collections of a process before it forks, and reset them in the child."""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from typing import Final, Protocol
from weakref import WeakSet


class PausableSession(Protocol):
    """A session that holds an open collection, such as a StoreSession."""

    def pause(self, deadline: float) -> None:
        """Close the collection before a fork, at the latest when the clock reaches a time."""

    def resume(self) -> None:
        """Allow uses again, in the parent process after the fork."""

    def forget(self) -> None:
        """Reset the session, in the child process after the fork."""


_FORK_WAIT_S: Final = 10.0
"""Seconds that a fork waits for running queries; only a hung query takes longer."""
_sessions: Final[WeakSet[PausableSession]] = WeakSet()
_inherited: Final[list[object]] = []
_forking: Final = threading.RLock()
"""A lock that is held during a fork, so that two forks do not resume each other's sessions."""


def watch_forks(session: PausableSession) -> None:
    """Pause a session before each fork, and resume or reset it after the fork.

    A session that is no longer used is forgotten.
    """
    with _forking:
        _register()
        _sessions.add(session)


def keep_inherited(opened: object) -> None:
    """Keep an open collection of the parent process in a child process for as long as it runs."""
    _inherited.append(opened)


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
