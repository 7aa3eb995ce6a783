"""The models, stores and files that ingestion uses, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from rag_pipeline.core.protocols.embedding import Embedder, SparseEncoder
    from rag_pipeline.core.protocols.state import (
        Announce,
        EmbeddingCache,
        Ledger,
        Lock,
        RunLocks,
    )
    from rag_pipeline.core.protocols.stores import CollectionCatalog


@dataclass(frozen=True, slots=True)
class Services:
    """The models, stores and files that an ingestion uses. The settings decide which they are.

    Attributes:
        embedder: Embedding model.
        sparse: Encoder of BM25 term weights.
        cache: Vectors of texts that were embedded before.
        catalog: Vector store with all builds (versions) of the book's collection.
        open_ledger: Function that takes the id of a build and returns its ledger.
        lock: Lock that prevents a second ingestion of the same book at the same time.
        announce: Function that returns a context manager for a run that holds `lock`. The context
            manager yields a function that tells other processes how far the run is.
        sweep: Function that deletes the files and collections that killed ingestions left behind.
            The caller must hold `lock`.
        run_locks: Locks by which other machines see that a run is alive; None with a ledger in
            files, because then the book is indexed on one machine.
    """

    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    catalog: CollectionCatalog
    open_ledger: Callable[[str], Ledger]
    lock: Lock
    announce: Callable[[], AbstractContextManager[Announce]]
    sweep: Callable[[], None]
    run_locks: RunLocks | None = None
