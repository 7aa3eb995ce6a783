"""The services that an ingestion uses, as one object that the settings decide on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.protocols.embedding import Embedder, SparseEncoder
    from rag_pipeline.core.protocols.state import ArtifactStore, EmbeddingCache, Ledger, Lock
    from rag_pipeline.core.protocols.stores import CollectionCatalog


@dataclass(frozen=True, slots=True)
class Services:
    """Everything outside the domain that an ingestion uses.

    Attributes:
        open_artifacts: Returns the stage outputs of a collection by the collection's id.
        open_ledger: Returns the ledger of a collection by the collection's id.
        lock: Keeps other ingestions of the same book off.
        sweep: Deletes what killed ingestions left behind. The caller holds the lock.
    """

    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    catalog: CollectionCatalog
    open_artifacts: Callable[[str], ArtifactStore]
    open_ledger: Callable[[str], Ledger]
    lock: Lock
    sweep: Callable[[], None]
