"""Exclusion of other processes while a catalog creates, switches or deletes builds."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    TakeLock: TypeAlias = Callable[[], AbstractContextManager[None]]
    """Function that returns a context manager that holds the lock of one collection."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Self = TypeVar("_Self", bound="LockedCatalog")


class LockedCatalog:
    """The lock of a catalog, which its thread may take again while it holds it.

    Args:
        take: Function that returns the lock between processes.
    """

    def __init__(self, take: TakeLock) -> None:
        self._take = take
        self._of_threads = RLock()
        self._depth = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes from changing the set of builds during a `with` block.

        Raises:
            StoreLockedError: Another process changed it during the whole wait.
        """
        with self._of_threads, nullcontext() if self._depth else self._take():
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1


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
