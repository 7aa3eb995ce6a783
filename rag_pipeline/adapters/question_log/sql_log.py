"""The question log in a database that SQLAlchemy connects to: SQLite or Postgres."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as insert_postgres
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from rag_pipeline.adapters.databases.migrating import Migrations, migrate
from rag_pipeline.adapters.question_log.tables import (
    ANSWERS,
    RATINGS,
    make_row,
    read_answer,
    read_rating,
    store_time,
)
from rag_pipeline.core.closing import Closing
from rag_pipeline.core.errors import QuestionLogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Engine, Table

    from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating

_DAY: Final = timedelta(days=1)
_MIGRATIONS: Final = Migrations(
    folder=Path(__file__).with_name("migrations"),
    version_table="alembic_version",
    lock=7_206_511_018,  # any number that other programs do not use
    describe_newer=lambda stored, known: QuestionLogError(
        f"the question log has version {stored} of a newer release of rag-pipeline; this release "
        f"knows versions up to {known}. Update this installation, or choose another database with "
        "QUESTION_LOG_URL"
    ),
)


class SqlQuestionLog(Closing):
    """A `QuestionLog` in an SQL database. Several threads and processes can share it.

    The first use creates the tables and deletes expired answers. After a failure, the next use
    tries again.

    Args:
        engine: The database.
        days: Age in days after which answers are deleted, once a day.
    """

    def __init__(self, engine: Engine, days: int) -> None:
        self._engine = engine
        self._days = days
        self._is_open = False
        self._file: tuple[int, int] | None = None
        self._expired_at: datetime | None = None
        self._opening = RLock()

    def add_answers(self, answers: Sequence[LoggedAnswer]) -> None:
        """Store answers. An empty sequence only opens the log and deletes expired answers."""
        rows = list({one.answer_id: make_row(one) for one in answers}.values())
        with self._write() as connection:
            if rows:
                connection.execute(self._upsert(ANSWERS), rows)

    def add_rating(self, rating: Rating) -> bool:
        """Store a rating and return True, or return False if the answer is not in the log."""
        found = sa.select(ANSWERS.c.answer_id).where(ANSWERS.c.answer_id == rating.answer_id)
        try:
            with self._write() as connection:
                if connection.execute(found).first() is None:
                    return False
                connection.execute(self._upsert(RATINGS), make_row(rating))
        except QuestionLogError as error:
            if isinstance(error.__cause__, IntegrityError):  # deleted meanwhile
                return False
            raise
        return True

    def read_answers(self, since: datetime | None = None) -> list[LoggedAnswer]:
        """Return the answers asked at or after a time, oldest first; None returns all."""
        chosen = sa.select(ANSWERS).order_by(ANSWERS.c.asked_at, ANSWERS.c.answer_id)
        if since is not None:
            chosen = chosen.where(ANSWERS.c.asked_at >= store_time(since))
        with self._read() as connection:
            return [read_answer(row) for row in connection.execute(chosen).mappings()]

    def read_ratings(self, since: datetime | None = None) -> list[Rating]:
        """Return the ratings of the answers asked at or after a time, oldest answer first."""
        chosen = sa.select(RATINGS).join(ANSWERS)
        chosen = chosen.order_by(ANSWERS.c.asked_at, ANSWERS.c.answer_id)
        if since is not None:
            chosen = chosen.where(ANSWERS.c.asked_at >= store_time(since))
        with self._read() as connection:
            return [read_rating(row) for row in connection.execute(chosen).mappings()]

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Delete one answer or all answers of a conversation, with ratings; return their number.

        Raises:
            QuestionLogError: The log cannot be written.
            ValueError: Neither or both of the ids are given.
        """
        if (answer_id is None) == (conversation_id is None):
            raise ValueError("give either answer_id or conversation_id")
        if answer_id is not None:
            return self._delete(ANSWERS.c.answer_id == answer_id)
        return self._delete(ANSWERS.c.conversation_id == conversation_id)

    def close(self) -> None:
        """Close the connections to the database. A second call does nothing."""
        self._engine.dispose()

    def _delete(self, chosen: sa.ColumnElement[bool]) -> int:
        with self._write() as connection:
            return _delete_answers(connection, chosen)

    def _upsert(self, table: Table) -> sa.Executable:
        is_postgres = self._engine.dialect.name == "postgresql"
        statement: Any = insert_postgres(table) if is_postgres else insert_sqlite(table)
        key = [column.name for column in table.primary_key]
        new = {column.name: statement.excluded[column.name] for column in table.columns}
        changed = {name: value for name, value in new.items() if name not in key}
        updated: sa.Executable = statement.on_conflict_do_update(index_elements=key, set_=changed)
        return updated

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with _translate("read"):
            self._prepare()
            with self._engine.connect() as connection:
                yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with _translate("written"):
            self._prepare()
            with self._engine.execution_options(writes=True).begin() as connection:
                yield connection

    def _prepare(self) -> None:
        """Create the tables on first use, and delete expired answers once a day.

        An SQLite file that was deleted or replaced is opened again, because its open connections
        would write to the file that is gone.
        """
        database = self._engine.url.database
        path = Path(database) if self._engine.dialect.name == "sqlite" and database else None
        with self._opening:
            if self._is_open and path and _identify(path) != self._file:
                self._engine.dispose()
                self._is_open = False
            if not self._is_open:
                if path:
                    if self._file is None:  # a folder that was moved away later stays away
                        path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch(mode=0o600)  # questions are personal data
                migrate(self._engine, _MIGRATIONS)
                self._file = _identify(path) if path else None
                self._is_open = True
            now = datetime.now(UTC)
            if self._expired_at is None or now - self._expired_at >= _DAY:
                with self._engine.execution_options(writes=True).begin() as connection:
                    limit = store_time(now - timedelta(days=self._days))
                    _delete_answers(connection, ANSWERS.c.asked_at < limit)
                self._expired_at = now


def _delete_answers(connection: Connection, chosen: sa.ColumnElement[bool]) -> int:
    ids = sa.select(ANSWERS.c.answer_id).where(chosen)
    connection.execute(sa.delete(RATINGS).where(RATINGS.c.answer_id.in_(ids)))
    return connection.execute(sa.delete(ANSWERS).where(chosen)).rowcount


def _identify(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of a file; None if the file is missing."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino


@contextmanager
def _translate(action: str) -> Iterator[None]:
    """Convert errors of the database to QuestionLogError. The message shows no path or password."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        first = (str(cause).splitlines() or [""])[0][:200]
        raise QuestionLogError(f"the question log cannot be {action}: {first}") from error
    except OSError as error:
        problem = error.strerror or str(error)
        raise QuestionLogError(f"the question log cannot be {action}: {problem}") from error
