"""The process from which the workers of `rag-pipeline ingest --workers` are forked.

It imports everything that a worker needs once, instead of once for each worker. This module does
not import Dagster, so that the process begins its imports before the command does.
"""

import multiprocessing
import platform
from collections.abc import Iterable
from multiprocessing import forkserver
from typing import Final

START_METHOD: Final = "forkserver" if platform.system() == "Linux" else "spawn"
"""How worker processes start. On macOS a fork is not safe after system libraries were loaded."""

_MODULES: Final = (
    "dagster._core.executor.multiprocess",  # Dagster's executor imports it first too
    "dagster._core.storage.sqlite_storage",
    "rag_pipeline.cli.app",  # each worker imports the main module of the command
    "rag_pipeline.definitions",
)


def start_imports(modules: Iterable[str]) -> None:
    """Start the process that workers are forked from; it imports `modules` and what all need.

    The workers see the environment variables as they are at the first call. A module that cannot be
    imported is skipped. With another start method than a fork, nothing happens.
    """
    if START_METHOD == "forkserver":
        multiprocessing.set_forkserver_preload([*_MODULES, *modules])
        forkserver.ensure_running()
