"""The ids of deleted answers and conversations, which all processes of the service share."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT: Final = 10_000


class Deletions:
    """The latest deletions. Several threads can share the object.

    A process writes answers to the question log some time after they were given. With these ids it
    recognizes answers that another process has deleted meanwhile.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, deleted_id: str) -> None:
        """Remember the id of a deleted answer or conversation. The oldest ids are forgotten."""
        with self._lock:
            self._ids[deleted_id] = None
            while len(self._ids) > _KEPT:
                self._ids.popitem(last=False)

    def find(self, ids: Sequence[tuple[str, str]]) -> list[str]:
        """Return which answers are deleted, given the ids of each answer and its conversation."""
        with self._lock:
            return [one for one, conversation in ids if {one, conversation} & self._ids.keys()]
