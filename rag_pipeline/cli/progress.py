"""Progress of an ingestion on standard error: a bar on a terminal, and lines about long waits."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.recorded_site import read_running_ingestion
from rag_pipeline.cli.output import tell
from rag_pipeline.ingestion.events import ends_document

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.progress import Progress, TaskID

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.events import IngestionEvent

_SILENT_S: Final = 10.0
_LOGGER: Final = logging.getLogger("rag_pipeline")


class IngestionProgress(logging.Handler):
    """A progress bar on standard error while documents are ingested.

    Beside the bar is what the ingestion is doing. If standard error is not a terminal, there is no
    bar. In both cases a line says what the ingestion is doing if it does the same for 10 s, and
    warnings of the package are shown.

    Args:
        total: Number of documents that the run will process.
    """

    def __init__(self, total: int) -> None:
        super().__init__(logging.INFO)
        self._total = total
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._activity = ""
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._level_before = _LOGGER.level

    def __enter__(self) -> Self:
        """Show the progress bar if standard error is a terminal, and begin to watch for waits."""
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  # takes 50 ms; not needed without a terminal
            from rich.progress import (  # noqa: PLC0415  # see the line above
                BarColumn,
                MofNCompleteColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
            )

            self._progress = Progress(
                SpinnerColumn(),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task("starting Dagster", total=self._total)
        _LOGGER.addHandler(self)
        _LOGGER.setLevel(logging.INFO)
        threading.Thread(target=self._watch, name="tell-waits", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the progress bar."""
        self._ended.set()
        _LOGGER.removeHandler(self)
        _LOGGER.setLevel(self._level_before)
        if self._progress is not None:
            self._progress.stop()

    def observe(self, event: IngestionEvent) -> None:
        """Advance the bar by one if the event says that a document is indexed or has failed."""
        if self._progress is not None and self._task is not None and ends_document(event):
            self._progress.advance(self._task)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning at once, and remember other records as what the ingestion is doing."""
        if record.levelno >= logging.WARNING:
            tell(record.getMessage())  # which begins with the name of the program
        else:
            self._activity, self._begun = record.getMessage(), time.monotonic()
            if self._progress is not None and self._task is not None:
                self._progress.update(self._task, description=self._activity)

    def _watch(self) -> None:
        while not self._ended.wait(_SILENT_S):
            waited_s = time.monotonic() - self._begun
            if self._activity and waited_s >= _SILENT_S:
                tell_note(f"{self._activity} ({waited_s:.0f} s so far)")


def tell_running_ingestion(settings: Settings) -> None:
    """Write a note to standard error if an ingestion of the book is still running."""
    running = read_running_ingestion(settings)
    if running is not None and running.done < running.total:
        tell_note(
            f"an ingestion is running: {running.done} of {running.total} documents are done, so "
            "results may be incomplete"
        )


def tell_note(text: str) -> None:
    """Write one line to standard error, after the name of the program."""
    tell(f"rag-pipeline: {text}")
