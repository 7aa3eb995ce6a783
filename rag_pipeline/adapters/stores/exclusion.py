"""Exclusion of other processes while a catalog creates, switches or deletes builds."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    TakeLock: TypeAlias = Callable[[], AbstractContextManager[None]]
    """Function that returns a context manager that holds the lock of one collection."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Exclusion:
    """A lock between processes that its thread may take again while it holds it.

    Args:
        take: Function that returns the lock between processes.
    """

    def __init__(self, take: TakeLock) -> None:
        self._take = take
        self._of_threads = RLock()
        self._depth = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock during a `with` block, unless an outer block of the thread holds it."""
        with self._of_threads, nullcontext() if self._depth else self._take():
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1


class _Catalog(Protocol):
    def hold(self) -> AbstractContextManager[None]: ...


_Self = TypeVar("_Self", bound=_Catalog)


def alone(
    method: Callable[Concatenate[_Self, _Parameters], _Result],
) -> Callable[Concatenate[_Self, _Parameters], _Result]:
    """Run a method of a catalog while it holds the lock of its collection."""

    @wraps(method)
    def run(
        catalog: _Self, /, *arguments: _Parameters.args, **named: _Parameters.kwargs
    ) -> _Result:
        with catalog.hold():
            return method(catalog, *arguments, **named)

    return run
