"""The base class of objects that must be closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class Closing(ABC):
    """Base class of objects that hold a connection or a request until they are closed.

    Use the object in a `with` block, or call `close`.
    """

    @abstractmethod
    def close(self) -> None:
        """Release the connection or request. A second call does nothing."""

    def __enter__(self) -> Self:
        """Return the object itself for use in the `with` block."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the object at the end of the `with` block, also after an exception."""
        self.close()
