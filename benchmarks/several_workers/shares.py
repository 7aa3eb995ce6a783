"""Worker processes that index a share of the book and can end or stop themselves at a write."""

from __future__ import annotations

import multiprocessing
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch
from several_workers.book import WORKERS, open_context

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping
    from multiprocessing.context import SpawnProcess
    from pathlib import Path

    from rag_pipeline.ingestion.parallel.planning import BucketWork

MOMENTS: Final = (
    "after cache.put_many",
    "after artifacts.write",
    "after ledger.record_begun",
    "during store.upsert",
    "after store.upsert",
    "after store.delete",
    "after ledger.record ",
    "after ledger.forget",
)
"""Beginnings of the names of moments at a write, in the order in which a document passes them."""


@dataclass(frozen=True, slots=True)
class Accident:
    """A signal that a worker sends to itself at a write.

    Attributes:
        number: The signal, SIGKILL or SIGSTOP.
        moment: Beginning of the name of the moment, one of `MOMENTS`.
        passed: Number of such moments that the worker passes before.
        log: File to which the worker adds a line with the name of the moment.
    """

    number: signal.Signals
    moment: str
    passed: int
    log: Path


def plan_shares(environment: Mapping[str, str]) -> tuple[BucketWork, ...]:
    """Plan an ingestion and divide it into a share for each worker."""
    from rag_pipeline.ingestion.parallel.planning import (  # noqa: PLC0415  # slow to import
        divide_work,
        plan_buckets,
        scan_collection,
    )

    context = open_context(environment)
    scan = scan_collection(context)
    return divide_work(context, scan, plan_buckets(context, scan), WORKERS)


def start_share(
    environment: Mapping[str, str],
    work: BucketWork,
    accident: Accident | None = None,
    *,
    clock: Mapping[str, str] | None = None,
    release: Path | None = None,
    said: Path | None = None,
) -> SpawnProcess:
    """Start a worker that indexes a share. It exits with code 1 if it is refused or fails.

    Args:
        environment: Settings of the worker.
        work: The share.
        accident: A signal that the worker sends to itself.
        clock: Environment variables that change the clock of the process.
        release: Folder of a copy of the package, which the worker uses.
        said: File to which a worker that is refused or fails writes its message.
    """
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_index_share, args=(dict(environment), work, accident, said))
    with _inherited(clock or {}, [str(release)] if release else []):
        process.start()
    return process


@contextmanager
def _inherited(variables: Mapping[str, str], folders: list[str]) -> Iterator[None]:
    """Set environment variables and folders of modules that a new process inherits."""
    os.environ.update(variables)
    sys.path[:0] = folders
    try:
        yield
    finally:
        del sys.path[: len(folders)]
        for name in variables:
            del os.environ[name]


def _index_share(
    environment: dict[str, str], work: BucketWork, accident: Accident | None, said: Path | None
) -> None:
    from rag_pipeline.core.errors import RagPipelineError  # noqa: PLC0415  # of the worker's release
    from rag_pipeline.ingestion.parallel.working import index_buckets  # noqa: PLC0415  # slow

    context = open_context(environment)
    if accident is not None:
        context = watch(context, _arrange(accident))
    try:
        list(index_buckets(context, work, f"worker-{os.getpid()}"))
    except RagPipelineError as error:
        if said is None:
            raise
        said.write_text(f"{error.code}: {error}", encoding="utf-8")
        sys.exit(1)


def _arrange(accident: Accident) -> Boundaries:
    """Return boundaries at which this process sends itself the signal of the accident."""
    left = accident.passed + 1

    def pass_moment(_: str) -> None:
        nonlocal left
        name = boundaries.names[-1]
        left -= name.startswith(accident.moment)
        if not left:
            left = -1  # only once
            with accident.log.open("a", encoding="utf-8") as log:
                log.write(f"{name}\n")
            os.kill(os.getpid(), accident.number)

    boundaries = Boundaries(pass_moment, "")
    return boundaries
