"""Tests of the embedding text of chunks. Cuts and spans are tested by case files."""

from __future__ import annotations

import pytest

from rag_pipeline.core.models import ChunkLimits, EmbeddingText
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline_tests.evaluation.golden_pages import make_page

PAGE = make_page(
    "arms.md", "---\ntitle: Arms\n---\n\nLead.\n\n## Hands\n\nOne.\n\n### Fingers\n\nTwo.\n"
)


@pytest.mark.parametrize(
    ("form", "before"),
    [
        (EmbeddingText.TEXT, ["", "", ""]),
        (EmbeddingText.TITLE, ["Arms\n\n", "Arms\n\n", "Arms\n\n"]),
        (EmbeddingText.SECTION, ["Arms\n\n", "Hands\n\n", "Fingers\n\n"]),
        (
            EmbeddingText.HEADING_PATH,
            ["Arms\n\n", "Arms > Hands\n\n", "Arms > Hands > Fingers\n\n"],
        ),
    ],
)
def test_the_embedding_text_has_the_configured_headings(
    form: EmbeddingText, before: list[str]
) -> None:
    chunks = chunk_doc(PAGE, ChunkLimits(embedding_text=form))
    assert [chunk.embedding_text for chunk in chunks] == [
        f"{headings}{chunk.text}" for headings, chunk in zip(before, chunks, strict=True)
    ]


def test_stored_and_cited_fields_do_not_depend_on_the_embedding_text_setting() -> None:
    fields = ("chunk_id", "text", "heading_breadcrumb", "content_hash", "token_count", "url")
    seen = {
        repr([[getattr(chunk, name) for name in fields] for chunk in chunk_doc(PAGE, limits)])
        for limits in (ChunkLimits(embedding_text=form) for form in EmbeddingText)
    }
    assert len(seen) == 1
