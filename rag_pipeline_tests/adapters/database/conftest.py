"""Databases for the tests: SQLite files and a Postgres server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.postgres import (
    PostgresDatabase,
    PostgresLocks,
    connect_postgres,
)
from rag_pipeline.adapters.database.sqlite import FileLocks, SqliteDatabase
from rag_pipeline_tests.adapters.database.databases import run_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    OpenState = Callable[..., BookState]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a Postgres server; the test is skipped if Postgres is not installed."""
    with run_postgres() as url:
        yield url


@pytest.fixture
def engine(address: str) -> Iterator[Engine]:
    """A database without tables."""
    engine = connect_postgres("DATABASE_URL", address)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def open_state(request: pytest.FixtureRequest, tmp_path: Path) -> OpenState:
    """Return a function that opens the state of a book as another process would."""
    if request.param == "postgres":
        engine = request.getfixturevalue("engine")

        def open_postgres(name: str = "book") -> BookState:
            database = PostgresDatabase(engine, "DATABASE_URL")
            return BookState(
                database, name, PostgresLocks(database, name), PostgresLocks(database, "")
            )

        return open_postgres

    def open_sqlite(name: str = "") -> BookState:
        folder = tmp_path / "state" / name
        locks = FileLocks(folder / "locks")
        return BookState(SqliteDatabase(folder / "state.sqlite"), name, locks, locks)

    return open_sqlite
