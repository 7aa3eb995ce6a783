"""A document's sections as chunks of bounded size, each with the span of its source.

Any change of a rule here, in `packing` or in `units` raises FORMAT_VERSION.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import link_to_anchor
from rag_pipeline.core.ids import hash_text, make_chunk_id
from rag_pipeline.core.models import Chunk, ContentType, EmbeddingText, TextBlockKind
from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.markdown.source import count_bytes
from rag_pipeline.ingestion.markdown.spans import find_span_blocks, read_span
from rag_pipeline.ingestion.packing import (
    begins_sentence,
    cut_parts,
    cut_sentences,
    measure,
    read_units,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, Heading, ParsedDoc
    from rag_pipeline.ingestion.packing import Unit

_SECTION_LEVEL: Final = 3  # FR-002: h1, h2 and h3 divide chunks
_TYPE_OF_KIND: Final = {
    TextBlockKind.CODE: ContentType.CODE,
    TextBlockKind.TABLE: ContentType.TABLE,
}
_NEWLINE: Final = re.compile("\n")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk before it is numbered.

    Attributes:
        path: The headings down to its section's own.
        units: Its pieces without the overlap before them.
        start: First character of the overlap if there is one, else of the first unit.
        lead_in: The sentence before a code block, table or formula that begins the chunk.
        text: The cleaned span from `start` on.
        tokens: Of the text.
    """

    path: tuple[Heading, ...]
    units: Sequence[Unit]
    start: int
    lead_in: str
    text: str
    tokens: int

    @property
    def content_start(self) -> int:
        return self.units[0].start

    @property
    def end(self) -> int:
        return self.units[-1].end


def chunk_doc(parsed: ParsedDoc, limits: ChunkLimits) -> tuple[Chunk, ...]:
    """Cut a document into chunks, in order.

    A chunk contains text of one h1, h2 or h3 section. Code, tables and math are whole. If one of
    them is longer than `limits.max_tokens`, it is a chunk of its own; all other chunks keep the
    bound. A section that fits is one chunk; a longer one is cut into even parts. Each part after
    the first begins `overlap_tokens` to twice as many tokens earlier, at a sentence or block.

    Args:
        parsed: The document.
        limits: Sizes in tokens of the cleaned text, and the headings that are embedded before it.
    """
    drafts = [
        draft
        for path, blocks in _read_sections(parsed)
        for draft in _cut_section(parsed, path, blocks, limits)
    ]
    offsets = {
        offset for draft in drafts for offset in (draft.start, draft.content_start, draft.end)
    }
    byte_of = count_bytes(parsed.source, offsets)
    newlines = [match.start() for match in _NEWLINE.finditer(parsed.source)]
    return tuple(
        _build_chunk(parsed, draft, index, byte_of, newlines, limits.embedding_text)
        for index, draft in enumerate(drafts)
    )


def _read_sections(parsed: ParsedDoc) -> Iterator[tuple[tuple[Heading, ...], list[Block]]]:
    """The heading path of each section, and its blocks up to the next h1, h2 or h3."""
    path: tuple[Heading, ...] = ()
    blocks: list[Block] = []
    for block in parsed.blocks:
        if block.heading is not None:
            heading = parsed.document.headings[block.heading]
            if heading.level <= _SECTION_LEVEL:
                yield path, blocks
                above = (item for item in path if item.level < heading.level)
                path, blocks = (*above, heading), []
        blocks.append(block)
    yield path, blocks


def _cut_section(
    parsed: ParsedDoc, path: tuple[Heading, ...], blocks: Sequence[Block], limits: ChunkLimits
) -> Iterator[_Draft]:
    whole = read_units(blocks)
    if not whole:
        return
    text = read_span(parsed, whole[0].start, whole[-1].end)
    tokens = count_tokens(text)
    if tokens <= limits.max_tokens:
        yield _Draft(path, whole, whole[0].start, "", text, tokens)
        return
    before: Sequence[Unit] = ()
    for part in cut_parts(parsed, whole, limits):
        start = _begin_overlap(parsed, before, part, limits)
        has_lead_in = bool(before) and start == part[0].start and part[0].block.is_atomic
        lead_in = _last_sentence(parsed, before[-1]) if has_lead_in else ""
        text = read_span(parsed, start, part[-1].end)
        yield _Draft(path, part, start, lead_in, text, count_tokens(text))
        before = part


def _begin_overlap(
    parsed: ParsedDoc, before: Sequence[Unit], part: Sequence[Unit], limits: ChunkLimits
) -> int:
    """Return where a part begins with its overlap: the latest place that gives enough tokens.

    The overlap consists of whole blocks and sentences, without the section's own heading.
    """
    own_start = part[0].start
    room = limits.max_tokens - sum(unit.tokens for unit in part)
    most = min(2 * limits.overlap_tokens, room)
    starts = list(_overlap_starts(parsed.source, before, limits.overlap_tokens, most))
    for start in reversed(starts):
        overlap = count_tokens(read_span(parsed, start, own_start))
        whole = count_tokens(read_span(parsed, start, part[-1].end))
        if overlap <= 2 * limits.overlap_tokens and whole <= limits.max_tokens:
            return start
    return own_start


def _overlap_starts(source: str, before: Sequence[Unit], least: int, most: int) -> Iterator[int]:
    taken = 0
    for unit in reversed(before):
        if taken >= least or unit.is_heading:
            return
        fits = taken + unit.tokens <= most
        for piece in [unit] if fits else reversed(cut_sentences(source, unit)):
            taken += piece.tokens
            if taken > most:
                return
            if begins_sentence(source, piece):
                yield piece.start
                if taken >= least:
                    return


def _last_sentence(parsed: ParsedDoc, unit: Unit) -> str:
    """Return the sentence before a code block or table; empty if no prose stands before it."""
    if unit.block.is_atomic or unit.is_heading:
        return ""
    return cut_sentences(parsed.source, unit)[-1].text.strip()


def _build_chunk(
    parsed: ParsedDoc,
    draft: _Draft,
    index: int,
    byte_of: dict[int, int],
    newlines: Sequence[int],
    embedding_text: EmbeddingText,
) -> Chunk:
    document, path = parsed.document, draft.path
    breadcrumb = _build_breadcrumb(document.title, path)
    anchor = path[-1].anchor if path else None
    parts = [_choose_headings(breadcrumb, embedding_text), draft.lead_in, draft.text]
    return Chunk(
        chunk_id=make_chunk_id(document.doc_path, index),
        doc_path=document.doc_path,
        module=document.module,
        chapter=document.chapter,
        title=document.title,
        section_heading=(path[-1].text if path else "") or document.title,
        heading_breadcrumb=breadcrumb,
        heading_level=path[-1].level if path else 0,
        anchor=anchor,
        url=link_to_anchor(document.url, anchor),
        chunk_index=index,
        content_type=_find_content_type(parsed, draft),
        tags=document.tags,
        content_hash=hash_text(draft.text),
        word_count=len(draft.text.split()),
        token_count=draft.tokens,
        start_line=bisect.bisect_left(newlines, draft.start) + 1,
        end_line=bisect.bisect_left(newlines, draft.end) + 1,
        start_byte=byte_of[draft.start],
        content_start_byte=byte_of[draft.content_start],
        end_byte=byte_of[draft.end],
        text=draft.text,
        embedding_text="\n\n".join(part for part in parts if part),
        blocks=find_span_blocks(parsed, draft.start, draft.end, draft.text),
    )


def _choose_headings(breadcrumb: Sequence[str], embedding_text: EmbeddingText) -> str:
    chosen = {
        EmbeddingText.TEXT: (),
        EmbeddingText.TITLE: breadcrumb[:1],
        EmbeddingText.SECTION: breadcrumb[-1:],
        EmbeddingText.HEADING_PATH: breadcrumb,
    }
    return " > ".join(chosen[embedding_text])


def _build_breadcrumb(title: str, path: Sequence[Heading]) -> tuple[str, ...]:
    texts = [heading.text for heading in path if heading.text]
    return (title, *(texts[1:] if texts[:1] == [title] else texts))


def _find_content_type(parsed: ParsedDoc, draft: _Draft) -> ContentType:
    """Return lab, quiz or assessment as of the document, else the type of most tokens."""
    if parsed.document.content_type is not ContentType.PROSE:
        return parsed.document.content_type
    for kind, content_type in _TYPE_OF_KIND.items():
        own = (unit for unit in draft.units if unit.block.text_kind is kind)
        tokens = sum(unit.tokens or measure(unit).tokens for unit in own)
        if 2 * tokens > draft.tokens:
            return content_type
    return ContentType.PROSE
