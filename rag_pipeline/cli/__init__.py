"""The `rag-pipeline` command.

Only light modules are imported here, so that Ctrl-C is handled from the start.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from rag_pipeline.cli.output import INTERRUPTED, open_closed_streams, tell_failure


def main() -> None:
    """Import the commands and run the one that was asked for.

    Importing takes tenths of a second. A signal in that time ends the process at once, because an
    exception inside an import would be shown as a traceback.
    """
    open_closed_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop_at_once)
    gc.set_threshold(50_000)  # imports make no garbage: looking for it took a tenth of a query
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads for nothing
    from rag_pipeline.cli.app import run_command  # noqa: PLC0415  # the slow import described above

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        run_command()
    finally:
        gc.freeze()  # the same at the end: Python would look through every object once more


def _stop_at_once(_number: int, _frame: object) -> None:
    tell_failure("INTERRUPTED", "stopped", INTERRUPTED)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(INTERRUPTED)
