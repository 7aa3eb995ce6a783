"""The limit on how much of a shared book one run deletes, against a partial or old checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan

_ALWAYS_ALLOWED: Final = 5  # documents, so that a small book can be changed as one likes
_SETTING: Final = "MAX_DELETED_SHARE"


def check_deletes(context: IngestionContext, scan: Scan, gone: Collection[DocId]) -> None:
    """Check that a run does not delete too much of a book that several machines share.

    A book with its ledger in DATA_DIR belongs to one machine, whose docs folder is all there is. A
    document whose content is in the docs folder at another path has moved and does not count.

    Args:
        context: The settings and services.
        scan: A scan of all documents.
        gone: The documents that the run would delete.

    Raises:
        ConfigurationError: They are more than 5 documents and more than MAX_DELETED_SHARE of the
            documents in the ledger. Nothing was changed.
    """
    if not context.settings.database_url:
        return
    contents = {doc.sha256 for doc in scan.discovery.docs}
    entries = scan.entries
    lost = sum(doc_id in entries and entries[doc_id].sha256 not in contents for doc_id in gone)
    share = context.settings.max_deleted_share
    if lost <= _ALWAYS_ALLOWED or lost <= share * len(entries):
        return
    folder = context.settings.docs_dir
    problem = (
        f"the run would delete {lost} of {len(entries)} documents, because {folder} does not "
        f"contain them, and {share:g} is the largest share"
    )
    if entries.keys().isdisjoint(doc.doc_id for doc in scan.discovery.docs):
        problem += ". Another book may have the same QDRANT_COLLECTION or STATE_NAME"
    remedy = f"Complete the checkout, or run `{_SETTING}=1 rag-pipeline ingest` to delete them"
    raise ConfigurationError(_SETTING, problem, remedy)
