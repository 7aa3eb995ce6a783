"""A document's sections as chunks of bounded size, each with the span of the source it came from.

Belongs here: what goes together into a chunk. Where prose may be cut: units; what a span reads as:
cleaning. Any change of a rule raises FORMAT_VERSION.
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
from rag_pipeline.ingestion.packing import cut_parts
from rag_pipeline.ingestion.units import begins_sentence, cut_sentences, measure, read_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, Heading, ParsedDoc
    from rag_pipeline.ingestion.units import Unit

_SECTION_LEVEL: Final = 3  # FR-002: h1, h2 and h3 divide chunks
_TYPE_OF_KIND: Final = {
    TextBlockKind.CODE: ContentType.CODE,
    TextBlockKind.TABLE: ContentType.TABLE,
}
_NEWLINE: Final = re.compile("\n")


@dataclass(frozen=True, slots=True)
class _Section:
    """Blocks from one h1, h2 or h3 to the next; `path` holds the headings down to its own."""

    path: tuple[Heading, ...]
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk before it is numbered.

    Attributes:
        units: Its own pieces, the overlap before them left out.
        start: Where the overlap begins, else the first unit.
        text: The span from `start` on, cleaned.
        tokens: Of the text.
    """

    section: _Section
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

    A chunk holds text of one h1, h2 or h3 section. Code, tables and math are whole; one that
    is longer than `limits.max_tokens` is a chunk of its own, all others keep the bound. A section
    that fits is one chunk; a longer one is cut into even parts, each after the first begun
    `overlap_tokens` to twice as many earlier, at a sentence or block.

    Args:
        parsed: The document.
        limits: Sizes in tokens of the cleaned text, and what is embedded before it.
    """
    drafts = [
        draft
        for section in _read_sections(parsed)
        for draft in _cut_section(parsed, section, limits)
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


def _read_sections(parsed: ParsedDoc) -> Iterator[_Section]:
    section = _Section((), [])
    for block in parsed.blocks:
        if block.heading is not None:
            heading = parsed.document.headings[block.heading]
            if heading.level <= _SECTION_LEVEL:
                yield section
                above = (item for item in section.path if item.level < heading.level)
                section = _Section((*above, heading), [])
        section.blocks.append(block)
    yield section


def _cut_section(parsed: ParsedDoc, section: _Section, limits: ChunkLimits) -> Iterator[_Draft]:
    whole = read_units(section.blocks)
    if not whole:
        return
    text = read_span(parsed, whole[0].start, whole[-1].end)
    tokens = count_tokens(text)
    if tokens <= limits.max_tokens:
        yield _Draft(section, whole, whole[0].start, "", text, tokens)
        return
    before: Sequence[Unit] = ()
    for part in cut_parts(parsed, whole, limits):
        start = _begin_overlap(parsed, before, part, limits)
        has_lead_in = bool(before) and start == part[0].start and part[0].block.is_atomic
        lead_in = _last_sentence(parsed, before[-1]) if has_lead_in else ""
        text = read_span(parsed, start, part[-1].end)
        yield _Draft(section, part, start, lead_in, text, count_tokens(text))
        before = part


def _begin_overlap(
    parsed: ParsedDoc, before: Sequence[Unit], part: Sequence[Unit], limits: ChunkLimits
) -> int:
    """Where a part begins with its overlap: at the latest place that gives enough tokens.

    Whole blocks and sentences alone are taken, and never the section's own heading.
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
    """The sentence that leads to a code block or table, where prose stands before it."""
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
    document, path = parsed.document, draft.section.path
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
    """The document's type where it is a lab, quiz or assessment, else that of most tokens."""
    if parsed.document.content_type is not ContentType.PROSE:
        return parsed.document.content_type
    for kind, content_type in _TYPE_OF_KIND.items():
        own = (unit for unit in draft.units if unit.block.text_kind is kind)
        tokens = sum(unit.tokens or measure(unit).tokens for unit in own)
        if 2 * tokens > draft.tokens:
            return content_type
    return ContentType.PROSE
