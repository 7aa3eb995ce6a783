"""Turn retrieved chunks into the numbered sources of an answer, one for each section."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Source
from rag_pipeline.answering.tables import cut_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.models import Answer
    from rag_pipeline.retrieval.models import ScoredChunk

_CHARS_PER_TOKEN: Final = 3  # assumed for widened passages; few texts have fewer


def build_sources(
    chunks: Sequence[ScoredChunk], max_tokens: int | None, question: str | None = None
) -> tuple[Source, ...]:
    """Return the sources that an answer may cite, numbered by the rank of their best chunk.

    Chunks of one section form one source. They are joined in the order of the page. Text that two
    neighbours share occurs once, and a blank line stands between chunks that are not neighbours. A
    widened chunk is a source of its own, unless a better source contains the chunk already.

    Args:
        chunks: Chunks, best first.
        max_tokens: Limit for all sources together, in cl100k_base tokens. The first chunk is always
            complete, and other chunks that do not fit are passed over. None uses all.
        question: The question of the reader, for which long tables are cut to the rows that answer
            it. If None, tables stay whole.
    """
    from rag_pipeline.retrieval.open_index import section_of  # noqa: PLC0415  # loads numpy

    groups: dict[str, list[ScoredChunk]] = {}
    left = max_tokens
    for chunk in chunks:
        data, widened = chunk.metadata, chunk.expanded_text is not None
        used = (kept.context_text for group in groups.values() for kept in group)
        if widened and any(chunk.text in text for text in used):
            continue
        text = chunk.context_text
        if question is not None:
            text, _ = cut_tables(text, chunk.context_blocks, question)
        is_whole = not widened and len(text) == len(chunk.text)
        tokens = data.token_count if is_whole else len(text) // _CHARS_PER_TOKEN
        if left is not None:
            if groups and tokens > left:
                continue
            left -= tokens
        section = section_of(data.doc_path, data.anchor, data.section_heading)
        # The place of a widened text in the page is unknown, so it is not joined with others.
        groups.setdefault(chunk.chunk_id if widened else section, []).append(chunk)
    return tuple(_join(number, group, question) for number, group in enumerate(groups.values(), 1))


def cite_sources(entry: Answer) -> Answer:
    """Return the answer with the citation of each source that its sentences cite."""
    cited = set(entry.cited_numbers)
    sources = entry.grounding.sources
    return replace(
        entry,
        citations=tuple(source.citation for source in sources if source.number in cited),
    )


def _join(number: int, chunks: Sequence[ScoredChunk], question: str | None) -> Source:
    best = chunks[0]
    text, blocks = best.context_text, best.context_blocks
    if len(chunks) > 1:
        from rag_pipeline.retrieval.hits import join_pieces  # noqa: PLC0415  # loads numpy

        ordered = sorted(chunks, key=lambda chunk: chunk.metadata.chunk_index)
        text, blocks = join_pieces([(chunk.metadata, chunk.text) for chunk in ordered])
    if question is not None:
        text, blocks = cut_tables(text, blocks, question)
    return Source(
        number=number,
        chunk_id=best.chunk_id,
        text=text,
        citation=best.citation,
        blocks=blocks,
        doc_path=best.metadata.doc_path,
        headings=best.metadata.heading_breadcrumb,
        content_type=best.metadata.content_type,
        score=best.score,
    )
