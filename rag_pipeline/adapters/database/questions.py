"""The question log in a database: given answers and their ratings."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rag_pipeline.adapters.database import Connection, Database, clean_text, describe_cause
from rag_pipeline.adapters.database.ledger import open_book_state
from rag_pipeline.adapters.database.sqlite import SqliteDatabase
from rag_pipeline.adapters.local_files import is_damage
from rag_pipeline.core.errors import QuestionLogError, StoreError, require_packages
from rag_pipeline.core.models import Closing
from rag_pipeline.core.protocols import LoggedAnswer, Rating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rag_pipeline.core.settings import Settings

    T = TypeVar("T")

_SETTING: Final = "QUESTION_LOG_URL"
_SQLITE: Final = "sqlite:///"
_BUSY_TIMEOUT_S: Final = 2.0  # a reader waits; another process writes for some milliseconds
_DAY: Final = timedelta(days=1)
_ANSWER: Final = tuple(field.name for field in dataclasses.fields(LoggedAnswer))
_RATING: Final = tuple(field.name for field in dataclasses.fields(Rating))
_ADD_ANSWER: Final = f"""
insert into answers (state_name, {", ".join(_ANSWER)})
values (:state_name, {", ".join(f":{name}" for name in _ANSWER)})
on conflict (answer_id) do update
set {", ".join(f"{name} = excluded.{name}" for name in _ANSWER[1:])}
"""
_ADD_RATING: Final = f"""
insert into ratings ({", ".join(_RATING)})
select {", ".join(f":{name}" for name in _RATING)} from answers
where answer_id = :answer_id and state_name = :state_name
on conflict (answer_id) do update
set {", ".join(f"{name} = excluded.{name}" for name in _RATING[1:])}
"""
_CHOSEN: Final = "state_name = :state_name order by asked_at, answer_id"
_READ_ANSWERS: Final = f"select {', '.join(_ANSWER)} from answers where {_CHOSEN}"
_READ_RATINGS: Final = f"""
select {", ".join(f"ratings.{name}" for name in _RATING)}
from ratings join answers on answers.answer_id = ratings.answer_id
where state_name = :state_name order by asked_at, answers.answer_id
"""


class SqlQuestionLog(Closing):
    """The log of answers and ratings in a database, which threads and processes can share.

    All methods may raise QuestionLogError.

    The first use deletes expired answers. After a failure, the next use tries again. Deleted texts
    are also removed from the files of a SQLite database.

    Args:
        database: The database.
        state_name: Name of the book's state in the database.
        days: Age in days after which answers are deleted, once a day.
    """

    def __init__(self, database: Database, state_name: str, days: int) -> None:
        self._database = database
        self._key = {"state_name": state_name}
        self._days = days
        self._expired_at: datetime | None = None
        self._expiring = RLock()

    def add_answers(self, answers: Sequence[LoggedAnswer]) -> None:
        """Store answers. An answer with an id that is stored already is replaced.

        An empty sequence only opens the log and deletes expired answers.
        """
        latest = {one.answer_id: one for one in answers}
        rows = [_make_row(one) | self._key for one in latest.values()]
        self._write(lambda used: used.change(_ADD_ANSWER, rows))

    def add_rating(self, rating: Rating) -> bool:
        """Store a rating and return True, or return False if the answer is not in the log.

        A later rating of the same answer replaces it.
        """
        row = _make_row(rating) | self._key
        return self._write(lambda used: used.change(_ADD_RATING, row)) > 0

    def read_answers(self) -> list[LoggedAnswer]:
        """Return all answers, oldest first."""
        return [LoggedAnswer(**_load_row(_ANSWER, row)) for row in self._read(_READ_ANSWERS)]

    def read_ratings(self) -> list[Rating]:
        """Return all ratings, oldest answer first."""
        return [Rating(**_load_row(_RATING, row)) for row in self._read(_READ_RATINGS)]

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Delete one answer or all answers of a conversation, with ratings; return their number.

        Raises:
            QuestionLogError: The log cannot be written.
            ValueError: Neither or both of the ids are given.
        """
        if (answer_id is None) == (conversation_id is None):
            raise ValueError("give either answer_id or conversation_id")
        column = "conversation_id" if answer_id is None else "answer_id"
        values = self._key | {"id": conversation_id if answer_id is None else answer_id}
        deleted = self._write(lambda used: _delete(used, f"{column} = :id", values))
        self._database.erase()
        return deleted

    def close(self) -> None:
        """Close the connections to the database. A second call does nothing."""
        self._database.close()

    def _read(self, query: str) -> list[Any]:
        with _translate("read"):
            self._expire()
            return self._database.read(lambda used: list(used.rows(query, self._key)))

    def _write(self, action: Callable[[Connection], T]) -> T:
        with _translate("written"):
            self._expire()
            return self._database.write(action)

    def _expire(self) -> None:
        """Delete expired answers, once a day."""
        with self._expiring:
            now = datetime.now(UTC)
            if self._expired_at is not None and now - self._expired_at < _DAY:
                return
            values = self._key | {"limit": _store(now - timedelta(days=self._days))}
            if self._database.write(lambda used: _delete(used, "asked_at < :limit", values)):
                self._database.erase()
            self._expired_at = now


def open_question_log(settings: Settings, *, begins_again: bool = True) -> SqlQuestionLog | None:
    """Return the question log, or None if QUESTION_LOG_DAYS is 0.

    The database is opened when the log is first used. A database that is unreachable now can thus
    be used later.

    Args:
        settings: Settings of the book.
        begins_again: Rename a damaged SQLite file and begin a new one. If False, reading a damaged
            log is an error, because its answers are missing.

    Raises:
        ConfigurationError: QUESTION_LOG_URL is not the address of a Postgres or SQLite database.
        MissingDependencyError: A package of the extra `serve` is not installed.
    """
    if not settings.question_log_days:
        return None
    require_packages("serve", "sqlalchemy", "alembic")
    address = settings.question_log_url.strip()
    database: Database
    if not address:
        state = open_book_state(settings, _BUSY_TIMEOUT_S, begins_again=begins_again)
        database = state.database
    elif address.startswith(_SQLITE) and len(address) > len(_SQLITE):
        path = Path(address.removeprefix(_SQLITE))
        database = SqliteDatabase(path, _BUSY_TIMEOUT_S, begins_again=begins_again)
    else:
        from rag_pipeline.adapters.database.postgres import (  # noqa: PLC0415  # imports SQLAlchemy
            PostgresDatabase,
            connect_postgres,
        )

        database = PostgresDatabase(connect_postgres(_SETTING, address), _SETTING)
    return SqlQuestionLog(database, settings.state_name, settings.question_log_days)


def _delete(connection: Connection, chosen: str, values: dict[str, Any]) -> int:
    chosen = f"state_name = :state_name and {chosen}"
    ids = f"select answer_id from answers where {chosen}"
    connection.change(f"delete from ratings where answer_id in ({ids})", values)
    return connection.change(f"delete from answers where {chosen}", values)


def _make_row(entry: LoggedAnswer | Rating) -> dict[str, Any]:
    return {field.name: _store(getattr(entry, field.name)) for field in dataclasses.fields(entry)}


def _load_row(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    for name in {"asked_at", "rated_at"} & values.keys():
        values[name] = datetime.fromisoformat(values[name])
    for name in {"sources", "tags"} & values.keys():
        values[name] = tuple(json.loads(values[name]))
    return values


def _store(value: Any) -> Any:  # noqa: ANN401  # any value of an answer or a rating
    """Return a value as every database stores it: times in UTC and lists as texts."""
    if isinstance(value, datetime):
        time = value if value.tzinfo else value.replace(tzinfo=UTC)
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, tuple):
        return json.dumps([clean_text(one) for one in value])
    return clean_text(value) if isinstance(value, str) else value


@contextmanager
def _translate(action: str) -> Iterator[None]:
    """Convert errors of the database to QuestionLogError. The message shows no path or password."""
    try:
        yield
    except StoreError as error:
        cause = error.__cause__ or error
        message = f"the question log cannot be {action}: {describe_cause(cause)}"
        if isinstance(cause, sqlite3.Error) and is_damage(cause):
            message += (
                ". Restore the file from a backup. Otherwise the service renames it and begins a "
                "new one with its next answer"
            )
        raise QuestionLogError(message) from error
