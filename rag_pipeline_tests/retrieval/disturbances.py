"""A store session that fails or hangs on demand, and a collector of log lines."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.errors import StoreUnavailableError
from rag_pipeline.retrieval.logs import LOGGER_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Barrier, Event

    from rag_pipeline.retrieval.store_session import StoreSession


@contextmanager
def watch_lines() -> Iterator[list[dict[str, Any]]]:
    """Yield a list that collects the log lines of retrieval, parsed from JSON, during the block."""
    lines: list[dict[str, Any]] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(record.getMessage()))

    logger, handler = logging.getLogger(LOGGER_NAME), Collect()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class FlakySession:
    """A wrapper of a real store session that can be made to fail or hang.

    Attributes:
        failing: True makes each use raise `StoreUnavailableError`.
        hang: Each use waits for this event or barrier, at most 30 s.
        uses: Number of uses so far.
    """

    is_exclusive = True

    def __init__(self, inner: StoreSession) -> None:
        self._inner = inner
        self.failing = False
        self.hang: Event | Barrier | None = None
        self.uses = 0

    @contextmanager
    def use(self) -> Iterator[object]:
        self.uses += 1
        if self.hang is not None:
            self.hang.wait(30)
        if self.failing:
            raise StoreUnavailableError("the store is gone")
        with self._inner.use() as index:
            yield index

    def close(self) -> None:
        self._inner.close()
