"""Check before an ingestion that the disk has room for the documents that are not indexed yet."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import StoreError

if TYPE_CHECKING:
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.events import RunPlanned

# Bytes in the embedded store and in the embedding cache per byte of Markdown. The textbook needs 59
# with the local model, and 16 with a service whose vectors have 256 numbers
# (docs/reference/state.md).
_WITH_WINDOWS: Final = 50
_WITHOUT_WINDOWS: Final = 15


def check_room(context: IngestionContext, planned: RunPlanned) -> None:
    """Check that DATA_DIR has room for the documents of a run that the ledger does not list yet.

    The need is a low estimate, so that no possible ingestion is refused. The store checks the room
    again before each write. A server is not checked.

    Raises:
        StoreError: The disk has too little room.
    """
    settings = context.settings
    if settings.qdrant_url:
        return
    sizes = {doc.doc_id: doc.size_bytes for doc in planned.scan.discovery.docs}
    new = [doc_id for doc_id in planned.doc_ids if doc_id not in planned.scan.entries]
    has_windows = context.services.embedder.model.window_words is not None
    factor = _WITH_WINDOWS if has_windows else _WITHOUT_WINDOWS
    needed = factor * sum(sizes[doc_id] for doc_id in new)
    data_dir = settings.data_dir.absolute()
    place = next(path for path in (data_dir, *data_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise StoreError(
            f"only {free // 1_000_000} MB are free in {settings.data_dir}, and {len(new)} new "
            f"documents need about {-(-needed // 1_000_000)} MB there. Free disk space, or set "
            "DATA_DIR to a folder with more space"
        )
