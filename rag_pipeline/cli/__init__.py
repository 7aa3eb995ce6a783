"""The `rag-pipeline` command.

This module imports only light modules, so that Ctrl-C is handled before the slow imports begin.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from rag_pipeline.cli.output import INTERRUPTED, open_closed_streams, tell_failure


def main() -> None:
    """Import the commands and run the command that `sys.argv` names. Never returns.

    The process ends with exit code 0, 1, 2 or 130 (interrupted). The imports take some tenths of a
    second. SIGINT or SIGTERM during the imports ends the process immediately, because an exception
    inside an import would be shown as a traceback.
    """
    open_closed_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop_at_once)
    # Imports create no garbage, and collecting during them took a tenth of a query's time.
    gc.set_threshold(50_000)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start unused threads
    from rag_pipeline.cli.app import run_command  # noqa: PLC0415  # the slow import described above

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        run_command()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # a thread may still wait for a service
            _end_at_once()
        raise
    finally:
        gc.freeze()  # otherwise the interpreter scans every object once more at exit


def _stop_at_once(_number: int, _frame: object) -> None:
    """Handle a signal: report the interruption and end the process without any cleanup."""
    tell_failure("INTERRUPTED", "stopped", INTERRUPTED)
    _end_at_once()


def _end_at_once() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(INTERRUPTED)
