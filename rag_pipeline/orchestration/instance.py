"""Preparation of DAGSTER_HOME, the folder where Dagster keeps runs, events and its settings.

This module does not import Dagster, because the folder must be ready before Dagster is imported.
`python -m rag_pipeline.orchestration.instance COMMAND` prepares the folder and runs a command with
it, for `make dev`.
"""

import os
import signal
import sqlite3
import sys
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final

import dagster as dg

from rag_pipeline.adapters.local_files import (
    hold_lock,
    is_damage,
    move_aside,
    warn_once,
    write_text_atomically,
)
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.core.protocols import LedgerFailure
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.ingestion.planning import Scan, fails_itself

REQUEST_TAG: Final = "rag_pipeline/request"
"""Run tag: hash of the requested work, to count its failures."""

_FIRST_RETRY: Final = timedelta(seconds=60)
_LONGEST_RETRY: Final = timedelta(hours=1)
_MOST_DOUBLINGS: Final = 10  # gives more than the longest wait, and keeps the number small
_COUNTED_RUNS: Final = 12  # at this many failures in a row the wait has its maximum


def choose_due(scan: Scan, now: datetime) -> list[DiscoveredDoc]:
    """Return the documents to process that need not wait after a failure."""
    failures = scan.failures
    return [
        doc
        for doc in scan.plan.process
        if not fails_itself(failures.get(doc.doc_id), doc)
        and is_due(failures.get(doc.doc_id), doc.sha256, now)
    ]


def find_wait(instance: dg.DagsterInstance, digest: str, now: datetime) -> str | None:
    """Return a sentence on why a request must wait, for the UI, or None if it may run now.

    A request waits after a failed run of the same request, such as a run that could not reach the
    store. The wait grows with the number of such failures in a row.

    Args:
        instance: The Dagster instance with the earlier runs.
        digest: Hash of the request, which is the value of the tag REQUEST_TAG of its runs.
        now: The current time.
    """
    runs = dg.RunsFilter(tags={REQUEST_TAG: digest})
    records = instance.get_run_records(runs, limit=_COUNTED_RUNS)
    failed = list(takewhile(_has_failed, records))
    if not failed:
        return None
    ended = datetime.fromtimestamp(failed[0].end_time or failed[0].start_time or 0.0, UTC)
    again = find_next_try(ended, len(failed), now)
    if again is None:
        return None
    run_id = failed[0].dagster_run.run_id[:8]
    return f"run {run_id} failed; the next try is at {again:%H:%M:%S} UTC"


def is_due(failure: LedgerFailure | None, sha256: str, now: datetime) -> bool:
    """Return True if a document may be tried again after its last failure.

    The wait after a failure starts at one minute and doubles up to one hour. A document without a
    failure is due, and so is a file whose content has changed since its failure.

    Args:
        failure: The ledger's record of the document's last failure; None if there is none.
        sha256: Hash of the file's current content.
        now: The current time.
    """
    if failure is None or failure.sha256 != sha256:
        return True
    failed_at = datetime.fromisoformat(failure.failed_at)
    return find_next_try(failed_at, failure.attempts, now) is None


def find_next_try(failed_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """Return the time of the next try after `attempts` failures in a row; None if it has passed.

    None is also returned if `failed_at` lies in the future, which happens when the clock was set
    back. Otherwise the wait could be very long.
    """
    again = failed_at + compute_wait(attempts)
    return again if failed_at <= now < again else None


def compute_wait(attempts: int) -> timedelta:
    """Return the wait after `attempts` failures in a row: 1 min, doubled each time up to 1 h."""
    doublings = max(0, min(attempts - 1, _MOST_DOUBLINGS))
    return min(_FIRST_RETRY * (1 << doublings), _LONGEST_RETRY)


def _has_failed(record: dg.RunRecord) -> bool:
    """Return True if the Dagster run of a record has failed."""
    return record.dagster_run.status is dg.DagsterRunStatus.FAILURE


_PLACES = (
    Path(__file__).with_name("dagster.yaml"),  # in an installed package
    Path(__file__).parents[2] / "dagster.yaml",  # in a checkout
)
_LAST_TABLE: Final = "select 1 from sqlite_master where name = 'alembic_version'"
_OPENING_TIMEOUT_S: Final = 60.0
_OPENING_ADVICE: Final = (
    "That process opens Dagster's instance, which takes seconds. Try again, or end the process if "
    "it hangs"
)


def prepare_dagster_home(settings: Settings) -> Path:
    """Create Dagster's home folder and set the environment variable DAGSTER_HOME to it.

    If the setting DAGSTER_HOME names a folder, that folder is created if it is missing and is not
    changed otherwise. The default folder is `dagster` in the book's state folder. It gets a copy of
    this package's dagster.yaml, which replaces any other version of that file.

    A damaged SQLite database of Dagster is renamed with a warning, and Dagster begins a new one.
    Only the history of runs is in it.

    Returns:
        The absolute path of the folder.

    Raises:
        ConfigurationError: The folder cannot be created or written.
        StoreLockedError: A database is damaged, and another process opened the instance for 60 s.
    """
    named = Path(settings.dagster_home).absolute() if settings.dagster_home else None
    home = named or settings.state_dir / "dagster"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if named is None:
            _copy_instance_settings(home / "dagster.yaml")
        if _find_damaged(home):
            with lock_opening(home):  # another process may just create an empty database
                for path in _find_damaged(home):
                    warn_once(
                        f"Dagster's database {path} is damaged. It was renamed to "
                        f"{move_aside(path).name}. The history of earlier runs is in it"
                    )
    except OSError as error:
        setting = "DATA_DIR" if named is None else "DAGSTER_HOME"
        if home.is_file():
            problem = f"{home} is a file, and Dagster needs a folder there"
            raise ConfigurationError(setting, problem, "Move the file away") from error
        problem = f"{home} cannot be written ({error.strerror})"
        raise ConfigurationError(setting, problem, "Choose a folder that you can write") from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def lock_opening(home: Path) -> AbstractContextManager[None]:
    """Let only one process open the instance during the `with` block.

    Opening a new instance fails if two processes create its tables at the same time.

    Raises:
        StoreLockedError: Another process held the lock for 60 s.
    """
    return hold_lock(home / ".opening.lock", _OPENING_TIMEOUT_S, _OPENING_ADVICE)


def _copy_instance_settings(target: Path) -> None:
    """Write this package's dagster.yaml to `target`, unless `target` already has that content."""
    source = next(place for place in _PLACES if place.is_file())
    text = source.read_text(encoding="utf-8")
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        write_text_atomically(target, text)


def _find_damaged(home: Path) -> list[Path]:
    """Return the SQLite databases of Dagster that are damaged or incomplete."""
    return [path for path in (*home.glob("*.db"), *home.glob("*/*.db")) if _is_damaged(path)]


def _is_damaged(path: Path) -> bool:
    """Return True if a SQLite file is damaged or has only a part of its tables.

    Such a file is left if the process that created it was killed. In an event log, Dagster would
    not create the other tables.
    """
    try:
        if path.stat().st_size == 0:
            return True
        with closing(sqlite3.connect(path)) as connection:
            if connection.execute("pragma quick_check(1)").fetchone() != ("ok",):
                return True
            is_complete = connection.execute(_LAST_TABLE).fetchone() is not None
            return path.name == "event_log.db" and not is_complete
    except FileNotFoundError:  # another process has just renamed it
        return False
    except sqlite3.Error as error:
        return is_damage(error)


def run_command(command: list[str]) -> None:
    """Replace this process by a command that uses Dagster's home folder.

    A shell starts background processes with SIGINT ignored. Dagster treats SIGTERM like SIGINT, so
    it could then not be stopped. The command therefore gets the default of both signals.
    """
    home = prepare_dagster_home(load_settings())
    import dagster as dg  # noqa: PLC0415  # the folder must be ready before

    with lock_opening(home):  # the processes of `dagster dev` create no tables after this
        dg.DagsterInstance.get().dispose()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606  # the Makefile names the command


if __name__ == "__main__":
    try:
        run_command(sys.argv[1:])
    except RagPipelineError as failure:
        sys.exit(f"rag-pipeline: {failure}")
