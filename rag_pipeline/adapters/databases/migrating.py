"""Creation and update of tables in a database that a process opens."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sqlalchemy import Engine

    from rag_pipeline.core.errors import RagPipelineError

_IN_PROCESS: Final = Lock()  # alembic keeps its context in global variables


@dataclass(frozen=True, slots=True)
class Migrations:
    """The versions of a group of tables.

    Attributes:
        folder: Folder of the migrations, in the layout of alembic.
        version_table: Name of the table with the version. Each group needs a table of its own,
            because two groups can be in the same database.
        lock: Number of the advisory lock in Postgres, which no other group has.
        describe_newer: Function that returns the error if a newer version of this package has
            changed the tables, given the stored version and the newest known one.
    """

    folder: Path
    version_table: str
    lock: int
    describe_newer: Callable[[str, str], RagPipelineError]


def migrate(engine: Engine, migrations: Migrations) -> None:
    """Bring the tables to the newest version, in one transaction.

    A lock in the database lets several processes call this at the same time.

    Raises:
        RagPipelineError: A newer version of this package has changed the tables.
        SQLAlchemyError: The database cannot be read or written.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations.folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    writing = engine.execution_options(writes=True)
    table = {"version_table": migrations.version_table}
    with _IN_PROCESS, writing.begin() as connection:
        if engine.dialect.name == "postgresql":
            lock = text("SELECT pg_advisory_xact_lock(:key)")
            connection.execute(lock, {"key": migrations.lock})
        stored = set(MigrationContext.configure(connection, opts=table).get_current_heads())
        if stored - known:
            raise migrations.describe_newer(*map(_join, (stored - known, scripts.get_heads())))
        if stored != set(scripts.get_heads()):
            config.attributes.update(connection=connection, **table)
            command.upgrade(config, "head")


def _join(versions: Iterable[str]) -> str:
    return ", ".join(sorted(versions))
