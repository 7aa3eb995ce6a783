"""Preparation of DAGSTER_HOME, the folder where Dagster keeps runs, events and its settings.

This module does not import Dagster, because the folder must be ready before Dagster is imported.
`python -m rag_pipeline.orchestration.instance COMMAND` prepares the folder and runs a command with
it, for `make dev`.
"""

import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from rag_pipeline.adapters.state.damage import is_damage, move_aside, warn_once
from rag_pipeline.adapters.state.files import write_text_atomically
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.settings import Settings, load_settings

_PLACES = (
    Path(__file__).with_name("dagster.yaml"),  # in an installed package
    Path(__file__).parents[2] / "dagster.yaml",  # in a checkout
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
    """
    named = Path(settings.dagster_home).absolute() if settings.dagster_home else None
    home = named or settings.state_dir / "dagster"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if named is None:
            _copy_instance_settings(home / "dagster.yaml")
        for path in (*home.glob("*.db"), *home.glob("*/*.db")):
            if _is_damaged(path):
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


def _copy_instance_settings(target: Path) -> None:
    """Write this package's dagster.yaml to `target`, unless `target` already has that content."""
    source = next(place for place in _PLACES if place.is_file())
    text = source.read_text(encoding="utf-8")
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        write_text_atomically(target, text)


def _is_damaged(path: Path) -> bool:
    """Return True if a SQLite file is damaged or empty; Dagster adds no tables to an empty one."""
    if path.stat().st_size == 0:
        return True
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("pragma quick_check(1)").fetchone() != ("ok",))
    except sqlite3.Error as error:
        return is_damage(error)


def run_command(command: list[str]) -> None:
    """Replace this process by a command that uses Dagster's home folder.

    A shell starts background processes with SIGINT ignored. Dagster treats SIGTERM like SIGINT, so
    it could then not be stopped. The command therefore gets the default of both signals.
    """
    prepare_dagster_home(load_settings())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606  # the Makefile names the command


if __name__ == "__main__":
    try:
        run_command(sys.argv[1:])
    except RagPipelineError as failure:
        sys.exit(f"rag-pipeline: {failure}")
