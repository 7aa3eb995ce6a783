"""Where a passage of the book stands, in the words a reader sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.retrieval.models import Citation

if TYPE_CHECKING:
    from rag_pipeline.core.payload import ChunkMetadata


def build_citation(metadata: ChunkMetadata) -> Citation:
    """Cite a chunk by its section; text above the first heading by the document's title."""
    return Citation(
        title=metadata.title,
        section=metadata.section_heading or metadata.title,
        url=metadata.url,
        module=metadata.module,
        chapter=metadata.chapter,
    )
