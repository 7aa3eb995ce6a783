"""The database of a book: ledger, vectors, site, running ingestions and the question log.

This module has the interface of SQLite and Postgres. Statements are texts that both understand,
with values as `:name`. SQLite is used without SQLAlchemy, whose import would take half as long
again as a whole query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


Values: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]]"
"""The values of one execution of a statement, or of several."""

T = TypeVar("T")

SCHEMA_VERSION: Final = "0001"
"""The newest version of the tables, which is the last file in `migrations/versions`."""

VERSION_TABLE: Final = "rag_pipeline_version"
"""Name of the table with the version. Other programs can have tables in the same database."""


class Connection(Protocol):
    """A connection in a transaction."""

    def rows(self, statement: str, values: Mapping[str, Any] = ...) -> Iterable[Any]:
        """Yield the rows that a query finds, as tuples."""

    def change(self, statement: str, values: Values) -> int:
        """Execute a statement, once for each given set of values; return how many rows changed."""


class Database(Protocol):
    """A database. Several threads and processes can use it at the same time.

    The first use creates the tables. All methods raise a StoreError if the database cannot be used.
    """

    def read(self, action: Callable[[Connection], T]) -> T:
        """Return the result of a function that only reads. It may be called twice."""

    def write(self, action: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        """Return the result of a function, all of whose changes are made in one transaction.

        The function may be called twice, if the first transaction was undone.

        Args:
            action: The function.
            is_durable: Wait until the changes are on the disk, so that a power failure cannot undo
                them. A killed process never undoes them.
        """

    def erase(self) -> None:
        """Remove what was deleted from the files of the database, as far as that is possible."""

    def compact(self) -> None:
        """Give the room of deleted rows back to the disk."""

    def close(self) -> None:
        """Close the connections. The next use opens them again."""


def describe_cause(error: BaseException) -> str:
    """Return the first line of the message of a database's own error, which shows no password."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return (str(cause).splitlines() or [""])[0][:200]


def clean_text(text: str) -> str:
    """Return a text that every database can store: without NUL and halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
