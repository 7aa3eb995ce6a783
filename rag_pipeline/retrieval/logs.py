"""Structured logs of retrieval: one JSON object a line, to the console and a weekly file.

Never in a line: keys, text of the book, and the question itself unless LOG_QUESTIONS asks for it.
"""

from __future__ import annotations

import logging
from logging.handlers import TimedRotatingFileHandler
from typing import TYPE_CHECKING, Final

import structlog

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

LOGGER_NAME: Final = "rag_pipeline.retrieval"
_KEPT_WEEKS: Final = 1  # beside the current one: the validation plan keeps lines for seven days

_logger = logging.getLogger(LOGGER_NAME)
_logger.addHandler(logging.NullHandler())


def configure_logging(log_dir: Path | None, *, console: bool = True) -> None:
    """Send retrieval's log lines to the console (standard error) and to `retrieval.log`.

    A second call replaces the first. Without any call the lines go wherever the process sends its
    own logs.

    Args:
        log_dir: Folder of the file, made where missing; None for no file. A new file begins every
            Monday (UTC); the one before is kept.
        console: Whether lines go to standard error.

    Raises:
        ConfigurationError: The folder cannot be made.
    """
    for handler in list(_logger.handlers):
        if not isinstance(handler, logging.NullHandler):
            _logger.removeHandler(handler)
            handler.close()
    handlers: list[logging.Handler] = [logging.StreamHandler()] if console else []
    if log_dir is not None:
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{log_dir} cannot be made ({error.strerror})"
            mend = "Make it writable, or start the service with log_to_files=False"
            raise ConfigurationError("DATA_DIR", problem, mend) from error
        handlers.append(
            TimedRotatingFileHandler(
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


class RetrievalLog:
    """Writes one line an operation.

    Args:
        with_questions: Whether the question's text is logged, not only its length.
    """

    def __init__(self, *, with_questions: bool) -> None:
        self._with_questions = with_questions
        self._structured: structlog.stdlib.BoundLogger = structlog.wrap_logger(
            _logger,
            processors=[
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.EventRenamer("operation"),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
        )

    def write(
        self,
        operation: str,
        questions: list[str],
        *,
        status: str,
        result_count: int,
        timings_ms: dict[str, float],
        error: Exception | None = None,
    ) -> None:
        """Log an operation that ended.

        Args:
            operation: Such as `search`.
            questions: As asked.
            status: `success` or `error`.
            result_count: Over all questions.
            timings_ms: Such as embed, search, validate, total.
            error: What ended it; its class and code are logged, not its message.
        """
        fields: dict[str, object] = {
            "status": status,
            "questions": len(questions),
            "question_chars": sum(len(str(question)) for question in questions),
            "result_count": result_count,
            **{f"{name}_ms": round(value, 3) for name, value in timings_ms.items()},
        }
        if self._with_questions:
            fields["query"] = questions if len(questions) != 1 else questions[0]
        if error is None:
            self._structured.info(operation, **fields)
        else:
            code = getattr(error, "code", "INTERNAL_ERROR")
            self._structured.warning(
                operation, error=type(error).__name__, error_code=code, **fields
            )
