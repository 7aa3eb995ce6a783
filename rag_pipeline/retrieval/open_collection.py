"""The open collection of a session, and its opening, which several threads can wait for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_pipeline.core.errors import StoreError
    from rag_pipeline.core.protocols.stores import PointStore


@dataclass(slots=True)
class OpenCollection:
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


@dataclass(slots=True)
class Opening:
    """The opening of the collection by one thread, for which the other threads wait.

    Attributes:
        error: The reason why it failed, if it has.
        closing: True if the last user must close the collection after the opening.
    """

    ended: threading.Event = field(default_factory=threading.Event)
    error: StoreError | None = None
    closing: bool = False
