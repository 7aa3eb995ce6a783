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
        ArtifactStore,
        BucketLock,
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
        open_artifacts: Function that takes the id of a build and returns its stage outputs.
        open_ledger: Function that takes the id of a build and returns its ledger.
        lock: Lock that prevents a second ingestion of the same book at the same time.
        lock_buckets: Lock for a worker that indexes some buckets while others index others.
        lock_submission: Lock with which one process at a time submits runs of the book.
        rebucket: Function that waits until no ingestion runs and sets the book's BUCKET_COUNT.
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
    open_artifacts: Callable[[str], ArtifactStore]
    open_ledger: Callable[[str], Ledger]
    lock: Lock
    lock_buckets: BucketLock
    lock_submission: Lock
    rebucket: Callable[[], None]
    announce: Callable[[], AbstractContextManager[Announce]]
    sweep: Callable[[], None]
    run_locks: RunLocks | None = None
