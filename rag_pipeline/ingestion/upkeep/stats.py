"""Statistics of the current collection, and deletion of unused entries in the embedding cache."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from rag_pipeline.core.models import ContentType
from rag_pipeline.core.protocols import PointFilter

if TYPE_CHECKING:
    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.ingestion.context import IngestionContext


def read_stats(context: IngestionContext) -> dict[str, JsonValue]:
    """Return statistics of the current collection as a JSON object.

    It contains the numbers of points, documents and failed documents, the points per content type,
    the embedding space, and the time at which a document was last indexed (None if none is).

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable, or another process has it open.
    """
    with closing(context.services.catalog.open_current()) as store:
        count = store.count()
        by_type: dict[str, JsonValue] = {
            kind.value: store.count(PointFilter.any_of(content_type=(kind.value,)))
            for kind in ContentType
        }
        space, collection_id = store.space, store.collection_id
    ledger = context.services.open_ledger(collection_id)
    entries = [entry for entry in ledger.entries().values() if entry.sha256]
    return {
        "collection_id": collection_id,
        "point_count": count,
        "doc_count": len(entries),
        "failed_doc_count": len(ledger.failures()),
        "content_types": by_type,
        "provider": space.model.provider,
        "model": space.model.model,
        "dim": space.model.dim,
        "format_version": space.format_version,
        "last_indexed_at": max((entry.indexed_at for entry in entries), default=None),
    }


def prune_embeddings(context: IngestionContext) -> int:
    """Delete cached embeddings that no chunk of the current collection uses.

    Entries of other embedding models are deleted too. Returns the number of deleted entries.
    """
    with closing(context.services.catalog.open_current()) as store:
        points = store.scroll_fields(["embedding_hash"])
        hashes = (str(payload.get("embedding_hash")) for _, payload in points)
        return context.services.cache.prune({store.space.model.fingerprint: hashes})
