"""Cut the sections of a document into chunks of limited size, each with its place in the source.

Raise `FORMAT_VERSION` with every change of a rule in this module or in `packing`, because the
change gives other chunks for the same document.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.ids import hash_text, make_chunk_id
from rag_pipeline.core.models import Chunk, ContentType, EmbeddingText, TextBlockKind
from rag_pipeline.core.site.docusaurus import link_to_anchor
from rag_pipeline.core.text.source_lines import find_page_line, find_sources
from rag_pipeline.core.text.tokens import count_tokens
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

    from rag_pipeline.core.models import Block, ChunkLimits, Heading, ParsedDoc, TextBlock
    from rag_pipeline.core.text.source_lines import LineOrigin
    from rag_pipeline.ingestion.packing import Unit

Path: TypeAlias = "tuple[Heading | str, ...]"
"""Headings, and labels of tabs, that lead to a section, the outermost first."""

_TYPE_OF_KIND: Final = {
    TextBlockKind.CODE: ContentType.CODE,
    TextBlockKind.TABLE: ContentType.TABLE,
}
_NEWLINE: Final = re.compile("\n")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk that has no index and no chunk id yet.

    Attributes:
        path: The steps to the chunk, outermost first: headings, and labels of tabs. Empty for text
            before the first heading.
        units: The blocks, or parts of blocks, of the chunk in order, without the overlap.
        start: Offset in the source of the first character, which belongs to the overlap with the
            previous chunk if there is an overlap.
        lead_in: The sentence before the chunk, if the chunk begins with a code block, table or
            formula and has no overlap. Otherwise empty.
        text: The cleaned source text from `start` to the end of the last unit.
        tokens: Number of cl100k_base tokens in `text`.
    """

    path: Path
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


@dataclass(frozen=True, slots=True)
class _Open:
    """A container that is open while the blocks of a document are read.

    Attributes:
        number: Number of the container.
        path: The path before the container, to which the text after it belongs.
    """

    number: int
    path: Path


def chunk_doc(parsed: ParsedDoc, limits: ChunkLimits) -> tuple[Chunk, ...]:
    """Cut a parsed document into chunks, in source order.

    A heading of any level and a tab start a section. A section that begins in a container, such as
    a tab, a list item or a quote, ends with the container; the text after it belongs to the section
    around it. A chunk never contains text of two sections. A
    section of at most `limits.max_tokens` tokens is one chunk. A longer section is cut into parts
    of about equal size. Each part after the first repeats the end of the previous part: whole
    sentences or blocks with about `limits.overlap_tokens` tokens, and never more than twice that
    number.

    Code blocks, tables and formulas are never cut. Only a chunk that consists of one of them can
    have more than `limits.max_tokens` tokens.

    Args:
        parsed: The document.
        limits: Chunk sizes in tokens of the cleaned text, and which headings go into the embedding
            text.

    Returns:
        The chunks. Empty if the document has no text.
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


def _read_sections(parsed: ParsedDoc) -> Iterator[tuple[Path, list[Block]]]:
    """Yield each section's path and blocks.

    A section ends at the next heading, at the next tab, and with the container in which it began.
    The text before the first heading is the first section. Its path is empty.
    """
    path: Path = ()
    blocks: list[Block] = []
    opened: list[_Open] = []
    for block in parsed.blocks:
        before = path
        if opened:
            around = {container.number for container in block.containers}
            while any(one.number not in around for one in opened):
                path = opened.pop().path
        for container in block.containers:
            if all(one.number != container.number for one in opened):
                opened.append(_Open(container.number, path))
                path = (*path, container.label) if container.label else path
        if block.heading is not None:
            heading = parsed.document.headings[block.heading]
            above = (item for item in path if isinstance(item, str) or item.level < heading.level)
            path = (*above, heading)
        if path is not before:
            yield before, blocks
            blocks = []
        blocks.append(block)
    yield path, blocks


def _cut_section(
    parsed: ParsedDoc, path: Path, blocks: Sequence[Block], limits: ChunkLimits
) -> Iterator[_Draft]:
    """Yield the chunks of one section in order; none if the section has no text."""
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
    """Return the source offset at which a part begins when it repeats the end of the previous part.

    The overlap consists of whole blocks or sentences of `before`, without the section's heading. It
    has about `limits.overlap_tokens` tokens. If no overlap fits into the size limits, the result is
    the start of the part without an overlap.
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
    """Yield possible starts of an overlap, from the end of `before` backwards.

    Each start is a sentence or block start. The last of them gives an overlap of at least `least`
    tokens, unless a heading or the limit of `most` tokens is reached before.
    """
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
    """Return the last sentence of a prose unit; empty for headings, code, tables and formulas."""
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
    heading = next((item for item in reversed(path) if not isinstance(item, str)), None)
    anchor = heading.anchor if heading is not None else None
    parts = [_choose_headings(breadcrumb, embedding_text), draft.lead_in, draft.text]
    first = bisect.bisect_left(newlines, draft.start) + 1
    last = bisect.bisect_left(newlines, draft.end) + 1
    blocks = find_span_blocks(parsed, draft.start, draft.end, draft.text)
    origins = parsed.origins
    return Chunk(
        chunk_id=make_chunk_id(document.doc_path, index),
        doc_path=document.doc_path,
        module=document.module,
        chapter=document.chapter,
        title=document.title,
        section_heading=(heading.text if heading else "") or document.title,
        heading_breadcrumb=breadcrumb,
        heading_level=heading.level if heading else 0,
        anchor=anchor,
        url=link_to_anchor(document.url, anchor),
        chunk_index=index,
        content_type=_find_content_type(parsed, draft),
        tags=document.tags,
        content_hash=hash_text(draft.text),
        word_count=len(draft.text.split()),
        token_count=draft.tokens,
        start_line=find_page_line(origins, first),
        end_line=find_page_line(origins, last),
        start_byte=byte_of[draft.start],
        content_start_byte=byte_of[draft.content_start],
        end_byte=byte_of[draft.end],
        text=draft.text,
        embedding_text="\n\n".join(part for part in parts if part),
        blocks=tuple(_locate(origins, block) for block in blocks) if origins else blocks,
        sources=find_sources(origins, first, last),
    )


def _locate(origins: Sequence[LineOrigin], block: TextBlock) -> TextBlock:
    """Return a block of a chunk's text with its lines in the document's file."""
    first, last = (find_page_line(origins, line) for line in (block.start_line, block.end_line))
    return replace(block, start_line=first, end_line=last)


def _choose_headings(breadcrumb: Sequence[str], embedding_text: EmbeddingText) -> str:
    """Return the headings that go before the chunk's text in its embedding text, joined by `>`."""
    chosen = {
        EmbeddingText.TEXT: (),
        EmbeddingText.TITLE: breadcrumb[:1],
        EmbeddingText.SECTION: breadcrumb[-1:],
        EmbeddingText.HEADING_PATH: breadcrumb,
    }
    return " > ".join(chosen[embedding_text])


def _build_breadcrumb(title: str, path: Path) -> tuple[str, ...]:
    """Return the title and the path; a first heading equal to the title is not repeated."""
    steps = (item if isinstance(item, str) else item.text for item in path)
    texts = [step for step in steps if step]
    return (title, *(texts[1:] if texts[:1] == [title] else texts))


def _find_content_type(parsed: ParsedDoc, draft: _Draft) -> ContentType:
    """Return the content type of a chunk.

    This is the document's type if the document is not prose. Otherwise it is `code`
    or `table` if code or tables have more than half of the chunk's tokens, and else `prose`.
    """
    if parsed.document.content_type is not ContentType.PROSE:
        return parsed.document.content_type
    for kind, content_type in _TYPE_OF_KIND.items():
        own = (unit for unit in draft.units if unit.block.text_kind is kind)
        tokens = sum(unit.tokens or measure(unit).tokens for unit in own)
        if 2 * tokens > draft.tokens:
            return content_type
    return ContentType.PROSE
