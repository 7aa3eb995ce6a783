"""A Postgres server for the tests of ledgers and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline_tests.adapters.question_log.databases import run_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a Postgres server; the test is skipped if Postgres is not installed."""
    with run_postgres() as url:
        yield url


@pytest.fixture
def engine(address: str) -> Iterator[Engine]:
    """A database without tables."""
    engine = connect_postgres("LEDGER_URL", read_database_url("LEDGER_URL", address, "x"), "x")
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    yield engine
    engine.dispose()
