"""What is closed at the end of a `with` block, or by another thread than its reader's."""

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
    """Base of what holds a connection, a model's request or the like until it is closed."""

    @abstractmethod
    def close(self) -> None:
        """Let go; closing twice is fine."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close."""
        self.close()


class InterruptibleGenerator(Generator[_Step, None, _Result]):
    """A generator that any thread may close, also while another waits for its next step.

    The waiting thread then finds it ended, without a result.

    Args:
        steps: What is generated.
        interrupt: Makes a step under way end soon, by an error or otherwise; called at each close.
            One that can do so only between steps may raise ValueError, as generators do: the step
            under way is then the last.
    """

    def __init__(
        self, steps: Generator[_Step, None, _Result], interrupt: Callable[[], None]
    ) -> None:
        self._steps = steps
        self._interrupt = interrupt
        self._closed = False
        self._under_way = Lock()

    def send(self, value: None) -> _Step:
        """The next step."""
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
        """Raise an error where the generator stands."""
        step: _Step = self._steps.throw(*error)  # type: ignore[call-overload]  # as given
        return step

    def close(self) -> None:
        """End it; a step under way ends in its own thread."""
        self._closed = True
        with suppress(ValueError):
            self._interrupt()
        if self._under_way.acquire(blocking=False):
            try:
                self._steps.close()
            finally:
                self._under_way.release()
