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
from pathlib import Path
from typing import Final

from rag_pipeline.adapters.local_files import (
    hold_lock,
    is_damage,
    move_aside,
    write_text_atomically,
)
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.core.settings.file import warn_once

INSTANCE_SETTINGS: Final = Path(__file__).with_name("dagster.yaml")
"""Dagster's instance settings. In the root of the project, `dg` would warn about them."""

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
    home, is_named = locate_home(settings), bool(settings.dagster_home)
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not is_named:
            target, text = home / "dagster.yaml", INSTANCE_SETTINGS.read_text(encoding="utf-8")
            if not target.is_file() or target.read_text(encoding="utf-8") != text:
                write_text_atomically(target, text)
        if _find_damaged(home):
            with lock_opening(home):  # another process may just create an empty database
                for path in _find_damaged(home):
                    warn_once(
                        f"Dagster's database {path} is damaged. It was renamed to "
                        f"{move_aside(path).name}. The history of earlier runs is in it"
                    )
    except OSError as error:
        setting = "DAGSTER_HOME" if is_named else "DATA_DIR"
        if home.is_file():
            problem = f"{home} is a file, and Dagster needs a folder there"
            raise ConfigurationError(setting, problem, "Move the file away") from error
        problem = f"{home} cannot be written ({error.strerror})"
        raise ConfigurationError(setting, problem, "Choose a folder that you can write") from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def locate_home(settings: Settings) -> Path:
    """Return the absolute path of Dagster's home folder, which may be missing."""
    named = settings.dagster_home
    return Path(named).absolute() if named else settings.state_dir / "dagster"


def lock_opening(home: Path) -> AbstractContextManager[None]:
    """Let only one process open the instance during the `with` block.

    Opening a new instance fails if two processes create its tables at the same time.

    Raises:
        StoreLockedError: Another process held the lock for 60 s.
    """
    return hold_lock(home / ".opening.lock", _OPENING_TIMEOUT_S, _OPENING_ADVICE)


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
    """Run a command that uses Dagster's home folder: `dg` in this process, any other instead of it.

    A shell starts background processes with SIGINT ignored. Dagster treats SIGTERM like SIGINT, so
    it could then not be stopped. The command therefore gets the default of both signals.
    """
    home = prepare_dagster_home(load_settings())
    import dagster as dg  # noqa: PLC0415  # the folder must be ready before

    is_dg = Path(command[0]).name == "dg"
    with lock_opening(home):  # the processes of `dg dev` create no tables after this
        dg.DagsterInstance.get().dispose()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if is_dg else signal.SIG_DFL)
    if is_dg:  # in this process, which has imported Dagster already
        from dagster_dg_cli.cli import cli  # noqa: PLC0415  # only `make dev` needs it

        os.environ["VIRTUAL_ENV"] = sys.prefix
        sys.exit(cli(command[1:], prog_name="dg"))
    os.execvp(command[0], command)  # noqa: S606  # the Makefile names the command


if __name__ == "__main__":
    try:
        run_command(sys.argv[1:])
    except RagPipelineError as failure:
        sys.exit(f"rag-pipeline: {failure}")
