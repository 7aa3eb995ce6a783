"""What an ingestion is asked to do, and the context that travels through all its steps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import Stage
from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingSpace

if TYPE_CHECKING:
    from rag_pipeline.core.models import ChunkLimits, SiteSettings
    from rag_pipeline.core.protocols.services import Services
    from rag_pipeline.core.settings import Settings

ALL_STAGES = frozenset(Stage)


@dataclass(frozen=True, slots=True)
class IngestionRequest:
    """What to ingest.

    Attributes:
        doc_ids: Documents to process even if they are unchanged. None processes whatever changed
            and deletes what is gone.
        delete_ids: Documents to remove if their files are really gone; only used with `doc_ids`.
        stages: Which assets to make.
        rewrite: Write all points of `doc_ids`, even those that look unchanged.
        rebuild: Build a new collection of all documents beside the one in use, then switch to it.
        reread: Read every file instead of trusting the size and time of known files.
    """

    doc_ids: tuple[str, ...] | None = None
    delete_ids: tuple[str, ...] = ()
    stages: frozenset[Stage] = ALL_STAGES
    rewrite: bool = False
    rebuild: bool = False
    reread: bool = False

    def __post_init__(self) -> None:
        """Refuse a rebuild that leaves stages out, because the new collection would be incomplete.

        Raises:
            ConfigurationError: The request is a rebuild of some stages only.
        """
        if self.rebuild and self.stages != ALL_STAGES:
            left_out = ", ".join(stage.value for stage in Stage if stage not in self.stages)
            problem = f"a new collection needs all assets, and {left_out} would be left out"
            raise ConfigurationError("rebuild", problem, "Materialize all, or leave rebuild out")


@dataclass(frozen=True, slots=True)
class IngestionContext:
    """The settings and services of a book's ingestion."""

    settings: Settings
    services: Services

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space that the settings ask for."""
        return EmbeddingSpace(self.services.embedder.model, FORMAT_VERSION)

    @property
    def fingerprint(self) -> str:
        """Hash of every setting that shapes chunks, payloads or vectors: 16 hexadecimal digits."""
        return compute_pipeline_fingerprint(
            self.space, self.settings.chunk_limits, self.settings.site
        )

    @property
    def price_per_token_usd(self) -> float:
        """The embedding model's price; 0 if the settings name none."""
        model = self.services.embedder.model.model
        return self.settings.embedding_prices.get(model, 0.0) / 1e6


def compute_pipeline_fingerprint(
    space: EmbeddingSpace, limits: ChunkLimits, site: SiteSettings
) -> str:
    """Hash every setting that shapes chunks, payloads or vectors to 16 hexadecimal digits."""
    return hashlib.sha256(repr((str(space), limits, site)).encode()).hexdigest()[:16]


def now_utc() -> str:
    """Return the present time as ISO 8601 in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
