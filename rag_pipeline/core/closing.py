"""Base classes for objects that must be closed, some of them from any thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_Step = TypeVar("_Step")
_Result = TypeVar("_Result")


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


class InterruptibleGenerator(Generator[_Step, None, _Result]):
    """A generator that any thread may close, even while another thread waits for its next value.

    After `close`, the waiting thread gets StopIteration without a return value.

    Args:
        steps: The generator whose values and return value are passed on.
        interrupt: Function that `close` calls so that a value being computed by `steps` is given up
            soon, for example with an error. If that is not possible, the function may raise
            ValueError; `close` then returns, and `steps` ends after the value is computed.
    """

    def __init__(
        self, steps: Generator[_Step, None, _Result], interrupt: Callable[[], None]
    ) -> None:
        self._steps = steps
        self._interrupt = interrupt
        self._closed = False
        self._under_way = Lock()

    def send(self, value: None) -> _Step:
        """Return the next value of the wrapped generator.

        Raises:
            StopIteration: The generator has ended, or it was closed during this call.
        """
        with self._under_way:
            try:
                step = self._steps.send(value)
            except Exception:
                if self._closed:
                    raise StopIteration from None
                raise
            if self._closed:
                self._steps.close()
                raise StopIteration
            return step

    def throw(self, *error: object) -> _Step:
        """Raise an error inside the wrapped generator and return the next value that it yields."""
        step: _Step = self._steps.throw(*error)  # type: ignore[call-overload]  # passed on unchanged
        return step

    def close(self) -> None:
        """End the generator; may be called from any thread.

        If another thread is waiting for a value, that thread is interrupted and ends the generator.
        """
        self._closed = True
        with suppress(ValueError):
            self._interrupt()
        if self._under_way.acquire(blocking=False):
            try:
                self._steps.close()
            finally:
                self._under_way.release()
