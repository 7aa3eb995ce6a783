"""Threads for work that a signal need not wait for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class LeavableThreads(ThreadPoolExecutor):
    """A pool of threads, whose `with` block a signal leaves at once.

    At its end, the block waits for the calls that have begun, and the others are cancelled. If a
    signal ends the block, it does not wait either: a call to a service that hangs can take minutes,
    and the process is about to end.
    """

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel what has not begun, and wait for the rest unless a signal ended the block."""
        is_signal = kind is not None and not issubclass(kind, (Exception, GeneratorExit))
        self.shutdown(wait=not is_signal, cancel_futures=True)
