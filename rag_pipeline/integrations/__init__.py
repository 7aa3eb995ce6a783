"""Retrievers for other frameworks. Each module needs the extra of its name."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_pipeline.retrieval import ScoredChunk


def describe_passage(chunk: ScoredChunk) -> dict[str, str | float]:
    """Return the citation of a passage, its document, its kind of content and its score.

    Returns:
        `title`, `section`, `url` (empty if unknown), `module`, `chapter`, `version` and `locale`
        (empty if they are those that readers get by default), `doc_path`, `content_type`,
        `chunk_id` and `score` (0 to 1).
    """
    citation = asdict(chunk.citation)
    del citation["tabs"]
    return {
        **citation,
        "doc_path": chunk.metadata.doc_path,
        "content_type": chunk.metadata.content_type,
        "chunk_id": chunk.chunk_id,
        "score": chunk.score,
    }
