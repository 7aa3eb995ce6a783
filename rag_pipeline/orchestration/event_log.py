"""Faster storage of Dagster events in SQLite, with one transaction for many events.

For each event, Dagster's SQLite storage opens several connections, compiles its statements again
and commits twice. Without this module, storing events was the slowest part of a rebuild with cached
embeddings.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import dagster as dg
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from sqlalchemy import Connection


@contextmanager
def store_together(instance: dg.DagsterInstance) -> Iterator[None]:
    """Store all events that this thread logs in the `with` block in one transaction.

    Other threads are not affected. If the block raises an error or the process is killed in it,
    none of the block's events are stored. Only works with `ConsolidatedSqliteEventLogStorage`, the
    storage that dagster.yaml sets; with any other storage the block changes nothing.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, ConsolidatedSqliteEventLogStorage):
        yield
        return
    owner, connect = threading.get_ident(), storage._connect  # noqa: SLF001  # Dagster has no public way
    write_asset_entry = storage._store_asset_event  # noqa: SLF001  # no public way either
    columns_known = storage.has_asset_key_col("last_materialization_timestamp")
    latest: dict[dg.AssetKey | None, tuple[dg.EventLogEntry, int]] = {}

    def reuse() -> AbstractContextManager[Connection]:
        return nullcontext(connection) if threading.get_ident() == owner else connect()

    def keep_latest(_: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        if event.dagster_event is not None:
            latest[event.dagster_event.asset_key] = (event, event_id)

    replacements = {
        "_connect": reuse,
        # Each asset has one row, which each of its events would overwrite; the last one is enough.
        "_store_asset_event": keep_latest,
        # The storage would look up its tables and columns again for each event.
        "has_table": cache(storage.has_table),
        "_has_asset_key_index_cols_on_connection": lambda _: columns_known,
    }
    with storage.index_connection() as connection:  # type: ignore[no-untyped-call]  # Dagster's own
        vars(storage).update(replacements)
        try:
            yield
            for event, event_id in latest.values():
                write_asset_entry(connection, event, event_id)
        finally:
            for name in replacements:
                del vars(storage)[name]


@contextmanager
def hold_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Keep one connection to the SQLite event log open during the `with` block.

    SQLite copies its write-ahead log into the database each time the last connection is closed, and
    that is slow. With another kind of storage the block changes nothing.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, ConsolidatedSqliteEventLogStorage):
        yield
        return
    with storage.index_connection() as connection:  # type: ignore[no-untyped-call]  # Dagster's own
        # SQLite opens the file only when a table is read. No transaction stays open.
        connection.exec_driver_sql("select 1 from event_logs where id = -1").close()
        yield
