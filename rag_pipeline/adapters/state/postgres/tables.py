"""The tables of the ledger in Postgres, created and updated at the first use."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from rag_pipeline.adapters.databases.migrating import Migrations, migrate
from rag_pipeline.adapters.state.book_record import BookRecord
from rag_pipeline.core.errors import LedgerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Table

KEY: Final = ("state_name", "collection_id", "doc_id")
"""The columns that identify a document of a build."""

_METADATA: Final = sa.MetaData()


def _describe_newer(stored: str, known: str) -> LedgerUnavailableError:
    python = shlex.quote(sys.executable or "python")
    return LedgerUnavailableError(
        f"the tables at LEDGER_URL have version {stored}, which a newer release of rag-pipeline "
        f"made; this release knows versions up to {known}. Install the newer release on this "
        f"machine with `{python} -m pip install --upgrade 'rag-pipeline[postgres]'`, or choose "
        "another database"
    )


_MIGRATIONS: Final = Migrations(
    folder=Path(__file__).with_name("migrations"),
    version_table="ledger_version",
    lock=7_206_511_019,  # any number that other programs do not use
    describe_newer=_describe_newer,
)


def _declare(name: str, *extra: sa.Column[int]) -> Table:
    return sa.Table(
        name,
        _METADATA,
        *(sa.Column(column, sa.Text, primary_key=True) for column in KEY),
        sa.Column("bucket", sa.SmallInteger, nullable=False),
        *extra,
        sa.Column("record", sa.JSON, nullable=False),
    )


DOCUMENTS: Final = _declare("ledger_documents", sa.Column("version", sa.BigInteger, nullable=False))
FAILURES: Final = _declare("ledger_failures")
SITES: Final = sa.Table(
    "ledger_sites",
    _METADATA,
    *(sa.Column(column, sa.Text, primary_key=True) for column in KEY[:2]),
    sa.Column("site", sa.JSON, nullable=False),
)
_BOOKS: Final = sa.Table(
    "ledger_books",
    _METADATA,
    sa.Column("state_name", sa.Text, primary_key=True),
    sa.Column("bucket_count", sa.SmallInteger, nullable=False),
    sa.Column("collection", sa.Text, nullable=False),
)


class LedgerTables:
    """The tables of the ledger, which the first connection creates or updates.

    Args:
        engine: The Postgres database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_open = False
        self._opening = Lock()

    @contextmanager
    def connect(self, action: str) -> Iterator[Connection]:
        """Yield a connection in a transaction.

        Args:
            action: What is done with the ledger, such as `read`, for the error message.

        Raises:
            LedgerUnavailableError: The database cannot be used, or a newer release made its tables.
        """
        with describe_failures(f"the ledger at LEDGER_URL cannot be {action}"):
            with self._opening:
                if not self._is_open:
                    migrate(self._engine, _MIGRATIONS)
                    self._is_open = True
            with self._engine.begin() as connection:
                yield connection


class RecordRow:
    """The record of a book as a row of the table `ledger_books`.

    Args:
        engine: The Postgres database.
        state_name: Name of the book's state.
    """

    def __init__(self, engine: Engine, state_name: str) -> None:
        self._tables = LedgerTables(engine)
        self._state_name = state_name

    def read(self) -> BookRecord | None:
        """Return the record; None if there is none."""
        chosen = sa.select(_BOOKS.c.bucket_count, _BOOKS.c.collection)
        with self._tables.connect("read") as connection:
            row = connection.execute(chosen.filter_by(state_name=self._state_name)).first()
        return None if row is None else BookRecord(*row)

    def write(self, record: BookRecord) -> None:
        """Write the record, replacing the old one."""
        values = {"bucket_count": record.bucket_count, "collection": record.collection}
        written = insert(_BOOKS).values(state_name=self._state_name, **values)
        with self._tables.connect("written") as connection:
            connection.execute(
                written.on_conflict_do_update(index_elements=["state_name"], set_=values)
            )


@contextmanager
def describe_failures(problem: str) -> Iterator[None]:
    """Raise a LedgerUnavailableError in place of an error of the database in the block."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        first = (str(cause).splitlines() or [""])[0][:200]
        advice = "Check LEDGER_URL and that the server is running; the next ingest goes on"
        raise LedgerUnavailableError(f"{problem}: {first}. {advice}") from error
