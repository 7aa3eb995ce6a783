"""Dagster's home: where runs, events and schedules are kept, and the instance settings there.

Belongs here: which folder that is, and bringing dagster.yaml into it. Does not belong here: what
needs Dagster itself, so that the home is ready before Dagster is imported. Run as a module it
prints the folder, for `make dev`.
"""

import os
import sys
from pathlib import Path

from rag_pipeline.adapters.state.files import write_text_atomically
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.settings import Settings, load_settings

_PLACES = (
    Path(__file__).with_name("dagster.yaml"),  # in an installed package
    Path(__file__).parents[2] / "dagster.yaml",  # in a checkout
)


def prepare_dagster_home(settings: Settings) -> Path:
    """Make Dagster's home ready and name it in DAGSTER_HOME, for this process and its children.

    A home that the settings name is made where it is missing and otherwise left alone. The default
    one, in this book's state folder, gets a copy of the dagster.yaml that comes with this package;
    a copy that differs is replaced.

    Returns:
        The folder, absolute.

    Raises:
        ConfigurationError: The folder cannot be made or written.
    """
    named = Path(settings.dagster_home).absolute() if settings.dagster_home else None
    home = named or settings.state_dir / "dagster"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if named is None:
            _copy_instance_settings(home / "dagster.yaml")
    except OSError as error:
        setting = "DATA_DIR" if named is None else "DAGSTER_HOME"
        problem = f"{home} cannot be written ({error.strerror})"
        raise ConfigurationError(setting, problem, "Name a folder that is yours") from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def _copy_instance_settings(target: Path) -> None:
    source = next(place for place in _PLACES if place.is_file())
    text = source.read_text(encoding="utf-8")
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        write_text_atomically(target, text)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{prepare_dagster_home(load_settings())}\n")
    except RagPipelineError as failure:
        sys.exit(f"rag-pipeline: {failure}")
