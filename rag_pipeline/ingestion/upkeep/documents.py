"""Check single indexed documents with the rules of `core.rules`, without indexing them again."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.core.rules import DOCUMENT_RULES, IndexedDocument, check_point, find_faults
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.planning import scan_docs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.rules import Fault
    from rag_pipeline.ingestion.context import IngestionContext


def check_documents(
    context: IngestionContext, doc_ids: Collection[DocId] | None = None
) -> Iterator[tuple[DocId, tuple[Fault, ...]]]:
    """Yield indexed documents with the rules that they break, read from the docs folder and store.

    A document whose file changed since it was indexed, or cannot be read any more, is left out.

    Args:
        context: The settings and services.
        doc_ids: The documents to check; None for all.

    Raises:
        StoreUnavailableError: The store is not reachable, or another process has it open.
    """
    scan = scan_docs(context)
    docs = [doc for doc in scan.plan.unchanged if doc_ids is None or doc.doc_id in doc_ids]
    limits, dim = context.settings.chunk_limits, context.space.model.dim
    if not docs:
        return
    with closing(context.services.catalog.open(scan.collection_id)) as store:
        for doc in docs:
            try:
                parsed = parse_doc(doc, context.settings.site)
            except (RagPipelineError, OSError):
                continue
            where = PointFilter.any_of(doc_path=(doc.doc_id,))
            points = [check_point(it, dim) for it in store.scroll(where, with_vectors=True)]
            document = IndexedDocument(chunk_doc(parsed, limits), points, limits)
            yield doc.doc_id, tuple(find_faults(DOCUMENT_RULES, document))
