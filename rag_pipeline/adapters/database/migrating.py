"""Creation of the tables, with alembic. Only a process that finds no tables imports this module."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, event, pool, text

from rag_pipeline.adapters.database.connecting import (
    SCHEMA_VERSION,
    VERSION_TABLE,
)
from rag_pipeline.core.errors import NewerDatabaseError

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Connection, Engine

_IN_PROCESS: Final = Lock()  # alembic keeps its context in global variables
_ADVISORY_LOCK: Final = 7_206_511_020  # any number that other programs do not use


def migrate(engine: Engine, place: str) -> None:
    """Bring the tables to the newest version, in one transaction.

    A lock in the database lets several processes call this at the same time.

    Args:
        engine: The database.
        place: Name of the database for error messages, without a password.

    Raises:
        NewerDatabaseError: A newer version of this package has changed the tables.
        SQLAlchemyError: The database cannot be read or written.
    """
    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _IN_PROCESS, engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
        table = {"version_table": VERSION_TABLE}
        stored = MigrationContext.configure(connection, opts=table).get_current_revision()
        if stored is not None and stored > SCHEMA_VERSION:
            raise NewerDatabaseError(place, stored, SCHEMA_VERSION)
        if stored != SCHEMA_VERSION:
            config.attributes.update(connection=connection, **table)
            command.upgrade(config, "head")


def migrate_sqlite(connection: sqlite3.Connection, place: str) -> None:
    """Bring the tables of a SQLite file to the newest version; see `migrate`."""
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=pool.StaticPool)

    @event.listens_for(engine, "begin")
    def begin(started: Connection) -> None:  # the driver itself begins no transaction
        started.exec_driver_sql("BEGIN IMMEDIATE")

    migrate(engine, place)
