"""The collection that an ingestion writes to: the one in use, or a new one beside it.

Belongs here: which it is, and when an old one gives way. Does not belong here: what is written, and
the switch after a rebuild (run).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import SpaceMismatchError

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.ingestion.run import IngestionEnvironment


def prepare_collection(environment: IngestionEnvironment, *, rebuild: bool) -> str:
    """Check the collection in use, or make a new one, in use at once where none was or the one
    before is of another space and empty; returns its id.

    Raises:
        SpaceMismatchError: The collection in use needs a rebuild; nothing was changed.
    """
    catalog = environment.catalog
    current = catalog.current_id()
    if current is not None and not rebuild and _fits(current, environment):
        return current
    store: PointStore = catalog.create(environment.space)
    store.close()
    if current is None or not rebuild:
        catalog.switch_to(store.collection_id)
    if current is not None and not rebuild:
        catalog.discard(current)  # nothing in it to roll back to
    return store.collection_id


def _fits(collection_id: str, environment: IngestionEnvironment) -> bool:
    """Whether the collection in use takes what the settings make; one in which nothing ever landed,
    such as where a service was down, need not be refused.
    """
    try:
        environment.catalog.open(collection_id, environment.space).close()
    except SpaceMismatchError:
        entries = environment.open_ledger(collection_id).entries().values()
        if any(entry.sha256 for entry in entries):  # the others were begun and not ended
            raise
        store = environment.catalog.open(collection_id)
        try:
            if store.count():
                raise
        finally:
            store.close()
        return False
    return True
