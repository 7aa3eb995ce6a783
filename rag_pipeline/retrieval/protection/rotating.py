"""A log file that several processes write, with a new file each week."""

from __future__ import annotations

import os
import time
from io import BufferedWriter, FileIO, TextIOWrapper
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path

from filelock import FileLock


class SharedRotatingHandler(TimedRotatingFileHandler):
    """A handler that lets only one process rename the file at the end of a week.

    The handler of the standard library would rename it in each process, and each time it would
    delete the file of the process before.
    """

    def _open(self) -> TextIOWrapper:
        """Open the file, which only this user may read."""
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return TextIOWrapper(BufferedWriter(FileIO(descriptor, "a")), encoding=self.encoding)

    def doRollover(self) -> None:  # noqa: N802  # the name in the standard library
        """Rename the file, or only open the new one if another process has renamed it."""
        path = Path(self.baseFilename)
        with FileLock(f"{path}.lock"):
            if path.exists() and path.stat().st_mtime < self.rolloverAt:
                super().doRollover()
                return
        if self.stream:
            self.stream.close()
            self.stream = None  # opened by the next line
        self.rolloverAt = self.computeRollover(int(time.time()))
