"""The ingestion report: what a run did, in the numbers that users and Dagster are shown."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import DocFailure, Stage

if TYPE_CHECKING:
    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.ingestion.work import StageResult

_COUNTED: Final = (
    "chunks_created",
    "chunks_updated",
    "chunks_unchanged",
    "chunks_deleted",
    "texts_embedded",
    "embeddings_reused",
    "tokens_embedded",
    "requests",
    "retries",
)
_SUMMED: Final = (
    *(name for name in _COUNTED if name != "chunks_unchanged"),
    "docs_processed",
    "docs_failed",
    "docs_deleted",
    "tokens_saved",
    "cost_usd",
    "duration_s",
)


@dataclass(slots=True)
class IngestionReport:
    """Counts of one ingestion; filled while it runs.

    Attributes:
        docs_discovered: Documents in the docs folder, unreadable ones included.
        docs_processed: Documents whose points are now as they should be.
        chunks_unchanged: Points left alone, those of unchanged documents included.
        tokens_embedded: cl100k_base tokens of the texts embedded; `tokens_saved` those of texts
            reused.
        cost_usd: What the provider's price table says for `tokens_embedded`; 0 for the local model.
        stage_seconds: Time by stage; parts of a group's embedding are counted once.
        failures: Documents left out, and why; each is tried again next time.
    """

    run_id: str = ""
    collection_id: str = ""
    docs_discovered: int = 0
    docs_processed: int = 0
    docs_unchanged: int = 0
    docs_failed: int = 0
    docs_deleted: int = 0
    chunks_created: int = 0
    chunks_updated: int = 0
    chunks_unchanged: int = 0
    chunks_deleted: int = 0
    texts_embedded: int = 0
    embeddings_reused: int = 0
    tokens_embedded: int = 0
    tokens_saved: int = 0
    requests: int = 0
    retries: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0
    stage_seconds: dict[str, float] = field(
        default_factory=lambda: {stage.value: 0.0 for stage in Stage}
    )
    failures: list[DocFailure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add_failure(self, failure: DocFailure) -> None:
        """Count a document that was left out."""
        self.docs_failed += 1
        self.failures.append(failure)

    def add_result(self, result: StageResult) -> None:
        """Count a finished stage of a document."""
        counts = result.counts
        self.stage_seconds[result.stage.value] += float(counts.get("duration_s", 0.0))
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + int(counts.get(name, 0)))
        self.tokens_saved += int(counts.get("tokens_reused", 0))
        self.cost_usd += float(counts.get("cost_usd", 0.0))
        if counts.get("windowed_chunks"):
            self.warnings.append(
                f"{result.doc_id}: {counts['windowed_chunks']} chunk(s) are longer than the "
                "embedding model's input and were embedded as the mean of their parts"
            )
        if result.stage is Stage.POINTS:
            self.docs_processed += 1

    def merge(self, other: IngestionReport) -> None:
        """Add the counts of a later run over other documents of the same folder."""
        self.run_id, self.collection_id = other.run_id, other.collection_id
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for stage, seconds in other.stage_seconds.items():
            self.stage_seconds[stage] += seconds
        self.failures += other.failures
        self.warnings += other.warnings

    def to_json(self) -> dict[str, JsonValue]:
        """The report as a JSON object, seconds rounded to milliseconds."""
        record = dataclasses.asdict(self)
        record["duration_s"] = round(self.duration_s, 3)
        record["cost_usd"] = round(self.cost_usd, 6)
        record["stage_seconds"] = {
            stage: round(seconds, 3) for stage, seconds in self.stage_seconds.items()
        }
        return record
