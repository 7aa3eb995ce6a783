"""Writing Dagster's events to SQLite in few transactions.

For each event Dagster's SQLite storage opens several connections, compiles its statements again and
commits twice. Storing events was the largest part of a rebuild with cached embeddings.
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
    """Store the events that this thread logs in a `with` block in one transaction.

    Other threads and other kinds of storage are not affected. If the block fails, or the process is
    killed in it, none of its events is stored.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, ConsolidatedSqliteEventLogStorage):
        yield
        return
    owner, connect = threading.get_ident(), storage._connect  # noqa: SLF001  # no public way
    write_asset_entry = storage._store_asset_event  # noqa: SLF001  # the same
    columns_known = storage.has_asset_key_col("last_materialization_timestamp")
    latest: dict[dg.AssetKey | None, tuple[dg.EventLogEntry, int]] = {}

    def reuse() -> AbstractContextManager[Connection]:
        return nullcontext(connection) if threading.get_ident() == owner else connect()

    def keep_latest(_: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        if event.dagster_event is not None:
            latest[event.dagster_event.asset_key] = (event, event_id)

    replacements = {
        "_connect": reuse,
        # An asset has one entry, which each of its events would overwrite.
        "_store_asset_event": keep_latest,
        # The storage would look up its tables and their columns again for each event.
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
    """Keep one connection to the event log open in a `with` block.

    SQLite writes its log back to the database whenever the last connection closes.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, ConsolidatedSqliteEventLogStorage):
        yield
        return
    with storage.index_connection() as connection:  # type: ignore[no-untyped-call]  # Dagster's own
        # The file is opened by the first look into a table; no transaction is left open.
        connection.exec_driver_sql("select 1 from event_logs where id = -1").close()
        yield
