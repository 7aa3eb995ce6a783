"""The request of an ingestion, and the settings and services that all its steps use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import DocId, hash_text
from rag_pipeline.core.sources import find_source
from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingSpace

if TYPE_CHECKING:
    from rag_pipeline.core.models import ChunkLimits, SiteSettings
    from rag_pipeline.core.protocols import Services
    from rag_pipeline.core.settings import Settings


@dataclass(frozen=True, slots=True)
class IngestionRequest:
    """The documents that one ingestion processes.

    Attributes:
        doc_ids: Documents to process, even if they are unchanged. None means: process every new or
            changed document, and delete every document whose file is gone.
        delete_ids: Documents to delete if their files are gone. Ignored if `doc_ids` is None.
        plan: Hash from `hash_plan` of the documents, the settings and the collection that the run
            was planned for. A run that finds others changes nothing. With a plan, several runs may
            index documents of the book at the same time. Empty: the run excludes all others.
        rewrite: Write all points of `doc_ids` again, even points that look unchanged.
        rebuild: Build a new collection from all documents next to the current collection, then
            switch to it.
        reread: Read and hash every file. By default, a file whose size and modification time are
            those in the ledger is not read.
    """

    doc_ids: tuple[str, ...] | None = None
    delete_ids: tuple[str, ...] = ()
    plan: str = ""
    rewrite: bool = False
    rebuild: bool = False
    reread: bool = False


@dataclass(frozen=True, slots=True)
class IngestionContext:
    """The settings and services (embedder, store, ledger, cache) for the ingestion of one book."""

    settings: Settings
    services: Services
    _fingerprints: dict[str | None, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space: the configured embedding model with the current format version."""
        return EmbeddingSpace(self.services.embedder.model, FORMAT_VERSION)

    def fingerprint_of(self, doc_id: DocId) -> str:
        """Return the pipeline fingerprint of a document, with the meaning of its source.

        A change of one source, such as a new path of a version, thus changes only its documents.
        """
        source = find_source(self.settings.sources or (), doc_id)
        key = source.prefix if source else None
        if key not in self._fingerprints:  # a sensor asks for each document at each tick
            site = self.settings.site
            if source:  # the route of the docs folder is a part of the meaning of its source only
                site = replace(site, route_base_path="")
            own = compute_pipeline_fingerprint(self.space, self.settings.chunk_limits, site)
            self._fingerprints[key] = hash_text(repr((own, source.meaning)))[:16] if source else own
        return self._fingerprints[key]


def compute_pipeline_fingerprint(
    space: EmbeddingSpace, limits: ChunkLimits, site: SiteSettings
) -> str:
    """Return a hash of all settings that affect chunks, payloads or vectors, as 16 hex digits.

    A document that was indexed with another fingerprint is indexed again.
    """
    return hash_text(repr((str(space), limits, site)))[:16]


def now_utc() -> str:
    """Return the current time in UTC as ISO 8601 text with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
