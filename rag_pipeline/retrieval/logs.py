"""Structured log lines of searches and answers: one JSON object for each operation.

A line never contains API keys, text of the book, or questions. Only the question log may keep
questions.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from io import BufferedWriter, FileIO, TextIOWrapper
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from structlog.stdlib import BoundLogger


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


LOGGER_NAME: Final = "rag_pipeline.retrieval"
_KEPT_WEEKS: Final = 1  # besides the current week; the validation plan asks for seven days

_logger = logging.getLogger(LOGGER_NAME)
_logger.addHandler(logging.NullHandler())


@dataclass(slots=True)
class Operation:
    """A running call of the library, such as a search, and the content of its log line.

    Attributes:
        name: Name of the call in the log, such as `search`.
        questions: The questions as they were asked.
        limit_s: Time limit in seconds for embedding and search together.
        status: `success`, `error` or `aborted`.
        result_count: Number of passages found for all questions together.
        timings_ms: Milliseconds of each completed step, by the name of the step. A step that runs
            twice has the sum.
        details: Further fields of the log line.
        started: The `time.perf_counter()` at which the call began.
    """

    name: str
    questions: list[str]
    limit_s: float
    status: str = "success"
    result_count: int = 0
    timings_ms: dict[str, float] = field(default_factory=dict)
    details: dict[str, object] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed_ms(self) -> float:
        """The number of milliseconds since the operation began."""
        return (time.perf_counter() - self.started) * 1000

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Add the milliseconds of the `with` block to `timings_ms[step]`, unless it fails."""
        start = time.perf_counter()
        yield
        spent_ms = (time.perf_counter() - start) * 1000
        self.timings_ms[step] = self.timings_ms.get(step, 0.0) + spent_ms


def configure_logging(log_dir: Path | None, *, console: bool = True) -> None:
    """Send log lines to the console (standard error) and to the file `retrieval.log`.

    A second call replaces the outputs of the first. Without a call, log lines go to the logging
    that the application has configured.

    Args:
        log_dir: Folder of the log file, created if missing; None writes no file. A new file begins
            every Monday (UTC), and the file of the previous week is kept. Several processes can
            write the same file.
        console: True writes to standard error as well.

    Raises:
        ConfigurationError: The folder cannot be created or written.
    """
    for handler in list(_logger.handlers):
        if not isinstance(handler, logging.NullHandler):
            _logger.removeHandler(handler)
            handler.close()
    handlers: list[logging.Handler] = [logging.StreamHandler()] if console else []
    if log_dir is not None:
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            reason = "" if os.access(log_dir, os.W_OK) else "it is read-only"
        except OSError as error:
            reason = error.strerror or str(error)
        if reason:
            problem = f"the log folder {log_dir} in it cannot be written ({reason})"
            remedy = "Set DATA_DIR to a folder that you can write, or pass log_to_files=False"
            raise ConfigurationError("DATA_DIR", problem, remedy)
        handlers.append(
            SharedRotatingHandler(
                log_dir / "retrieval.log",
                when="W0",
                utc=True,
                backupCount=_KEPT_WEEKS,
                encoding="utf-8",
                delay=True,
            )
        )
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(message)s"))
        _logger.addHandler(handler)
    _logger.setLevel(logging.INFO)
    _logger.propagate = not handlers


def write_line(operation: Operation, error: Exception | None = None) -> None:
    """Log one line for an operation that has ended.

    Args:
        operation: The operation.
        error: The error that ended the operation, or None. Its class and code are logged, but not
            its message.
    """
    level = logging.INFO if error is None else logging.WARNING
    if not _logger.isEnabledFor(level):
        return  # structlog is not imported when nothing is logged
    questions = operation.questions
    timings_ms = {**operation.timings_ms, "total": operation.elapsed_ms}
    fields: dict[str, object] = {
        "status": operation.status if error is None else "error",
        "questions": len(questions),
        "question_chars": sum(len(str(question)) for question in questions),
        "result_count": operation.result_count if error is None else 0,
        **operation.details,
        **{f"{name}_ms": round(value, 3) for name, value in timings_ms.items()},
    }
    if error is None:
        write_json(_logger).info(operation.name, **fields)
    else:
        code = getattr(error, "code", "INTERNAL_ERROR")
        kind = type(error).__name__
        write_json(_logger).warning(operation.name, error=kind, error_code=code, **fields)


@cache
def write_json(logger: logging.Logger, event_field: str = "operation") -> BoundLogger:
    """Return a logger that writes each record as a JSON object through another logger.

    Args:
        logger: The other logger. structlog's own would print to standard output, which belongs to
            the user.
        event_field: Name of the field with the event of a record.
    """
    import structlog  # noqa: PLC0415  # needed only by a process that logs

    wrapped: BoundLogger = structlog.wrap_logger(
        logger,
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.EventRenamer(event_field),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return wrapped
