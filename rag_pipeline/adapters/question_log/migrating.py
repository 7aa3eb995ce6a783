"""Creation and update of the question log's tables when a process opens the log."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from rag_pipeline.core.errors import QuestionLogError

if TYPE_CHECKING:
    from sqlalchemy import Engine

_FOLDER: Final = Path(__file__).with_name("migrations")
_POSTGRES_LOCK: Final = 7_206_511_018  # any number that other programs do not use
_IN_PROCESS: Final = Lock()  # alembic keeps its context in global variables


def migrate(engine: Engine) -> None:
    """Bring the tables to the newest version, in one transaction.

    A lock in the database lets several processes call this at the same time.

    Raises:
        QuestionLogError: A newer version of this package has changed the tables.
        SQLAlchemyError: The database cannot be read or written.
    """
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    writing = engine.execution_options(writes=True)
    with _IN_PROCESS, writing.begin() as connection:
        if engine.dialect.name == "postgresql":
            lock = text("SELECT pg_advisory_xact_lock(:key)")
            connection.execute(lock, {"key": _POSTGRES_LOCK})
        stored = set(MigrationContext.configure(connection).get_current_heads())
        if stored - known:
            raise QuestionLogError(
                "the question log was written by a newer version of rag-pipeline. Update this "
                "installation, or choose another database with QUESTION_LOG_URL"
            )
        if stored != set(scripts.get_heads()):
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
