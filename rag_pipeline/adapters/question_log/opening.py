"""Opening of the question log that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.adapters.databases.postgres import (
    connect_postgres,
    read_database_url,
    require_packages,
)
from rag_pipeline.adapters.sqlite_wal import use_write_ahead_log

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

    from rag_pipeline.core.protocols.question_log import QuestionLog
    from rag_pipeline.core.settings import Settings

FILE_NAME: Final = "questions.sqlite"
"""Name of the SQLite file in the state folder of the book."""

_BUSY_TIMEOUT_S: Final = 2.0  # another process writes for some milliseconds
_SETTING: Final = "QUESTION_LOG_URL"


def open_question_log(settings: Settings) -> QuestionLog | None:
    """Return the question log, or None if QUESTION_LOG_DAYS is 0.

    The database is opened, and its tables are updated, when the log is first used. A database that
    is unreachable now can thus be used later.

    Raises:
        ConfigurationError: QUESTION_LOG_URL is not the address of a Postgres or SQLite database.
        MissingDependencyError: A package of the extra `serve` is not installed.
    """
    if not settings.question_log_days:
        return None
    require_packages("serve", "sqlalchemy", "alembic")
    from rag_pipeline.adapters.question_log.sql_log import (  # noqa: PLC0415  # needs an extra
        SqlQuestionLog,
    )

    if not settings.question_log_url:
        path = settings.state_dir / FILE_NAME
        from sqlalchemy import URL  # noqa: PLC0415  # needs an extra

        engine = _connect_sqlite(URL.create("sqlite", database=str(path)))
    else:
        engine = _connect_url(settings.question_log_url)
    return SqlQuestionLog(engine, settings.question_log_days)


def _connect_url(address: str) -> Engine:
    url = read_database_url(_SETTING, address, "serve")
    if url.get_backend_name() == "sqlite" and url.database:
        return _connect_sqlite(url.set(drivername="sqlite"))
    return connect_postgres(_SETTING, url, "serve", "Postgres and SQLite")


def _connect_sqlite(url: URL) -> Engine:
    from sqlalchemy import create_engine, event  # noqa: PLC0415  # needs an extra

    engine = create_engine(
        url, connect_args={"timeout": _BUSY_TIMEOUT_S}, pool_timeout=3, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # noqa: ANN401  # sqlite3's own
        connection.isolation_level = None  # transactions begin below
        use_write_ahead_log(connection, _BUSY_TIMEOUT_S)
        for pragma in ("foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:  # noqa: ANN401  # SQLAlchemy's own
        writes = connection.get_execution_options().get("writes")
        # A transaction that starts by reading cannot become a writing one while another writes.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
