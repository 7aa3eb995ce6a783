"""A check that a function takes linear time, which holds on slow and busy machines too."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS: Final = 3  # other work may slow any round, so the fastest of them counts
_LONGEST_S: Final = 0.1  # long enough to measure


def assert_linear(work: Callable[[int], object], size: int, least: int = 1) -> None:
    """Assert that four times the size takes less than ten times the processor time.

    Linear work takes 4 times the time, quadratic work 16 times.

    Args:
        work: A function that works on an input of the given size.
        size: The smaller size. It is halved until it takes less than a tenth of a second.
        least: Size below which it is not halved, because `work` may take longer there.
    """
    while _measure(work, size) > _LONGEST_S and size > least:  # the first call also loads modules
        size = max(size // 2, least)
    small = max(min(_measure(work, size) for _ in range(_ROUNDS)), 1e-3)
    large: list[float] = []
    while not large or (min(large) >= 10 * small and len(large) < _ROUNDS):
        large.append(_measure(work, 4 * size))
    assert min(large) < 10 * small, f"{size}: {small:.3f} s, {4 * size}: {min(large):.3f} s"


def _measure(work: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    work(size)
    return time.process_time() - start
