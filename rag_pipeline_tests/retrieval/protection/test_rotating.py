"""The weekly log file, written by several handlers as by several processes."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from rag_pipeline.retrieval.logs import SharedRotatingHandler

if TYPE_CHECKING:
    from pathlib import Path

WEEK_S = 7 * 24 * 3600


def write(handler: SharedRotatingHandler, text: str) -> None:
    handler.emit(logging.LogRecord("n", logging.INFO, "f", 1, text, (), None))


def test_each_line_is_kept_when_several_processes_begin_a_new_week(tmp_path: Path) -> None:
    path = tmp_path / "retrieval.log"
    handlers = [
        SharedRotatingHandler(path, when="W0", utc=True, backupCount=1, delay=True)
        for _ in range(3)
    ]
    for number, handler in enumerate(handlers[:2]):  # the third has no open file
        write(handler, f"old {number}")
    start = int(path.stat().st_mtime) - WEEK_S
    os.utime(path, (start, start))
    for handler in handlers:
        handler.rolloverAt = start + 60
    for number, handler in enumerate(handlers):
        write(handler, f"new {number}")
        handler.close()
    (earlier,) = (one for one in tmp_path.glob("retrieval.log.*") if one.suffix != ".lock")
    assert earlier.read_text().splitlines() == ["old 0", "old 1"]
    assert path.read_text().splitlines() == ["new 0", "new 1", "new 2"]
