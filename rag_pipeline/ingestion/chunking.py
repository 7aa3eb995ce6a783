"""A document's sections as chunks of bounded size, each with the span of the source it came from.

Belongs here: what goes together into a chunk. Where prose may be cut: units; what a span reads as:
cleaning. Any change of a rule raises FORMAT_VERSION.
"""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import link_to_anchor
from rag_pipeline.core.ids import hash_text, make_chunk_id
from rag_pipeline.core.models import BlockKind, Chunk, ContentType, EmbeddingText
from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.markdown.cleaning import clean_block, clean_span
from rag_pipeline.ingestion.markdown.source import count_bytes
from rag_pipeline.ingestion.units import (
    Unit,
    as_unit,
    begins_sentence,
    cut_sentences,
    has_text,
    measure,
    read_units,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, Heading, ParsedDoc

_SECTION_LEVEL: Final = 3  # FR-002: h1, h2 and h3 divide chunks
_TYPE_OF_KIND: Final = {BlockKind.CODE: ContentType.CODE, BlockKind.TABLE: ContentType.TABLE}
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
    whole = [unit for unit in map(as_unit, section.blocks) if has_text(parsed.source, unit)]
    if not whole:
        return
    text = clean_span(parsed, whole[0].start, whole[-1].end)
    tokens = count_tokens(text)
    if tokens <= limits.max_tokens:
        yield _Draft(section, whole, whole[0].start, "", text, tokens)
        return
    before: Sequence[Unit] = ()
    for part in _cut_parts(parsed, section, limits):
        start = _begin_overlap(parsed, before, part, limits)
        has_lead_in = bool(before) and start == part[0].start and part[0].is_atomic
        lead_in = _last_sentence(parsed, before[-1]) if has_lead_in else ""
        text = clean_span(parsed, start, part[-1].end)
        yield _Draft(section, part, start, lead_in, text, count_tokens(text))
        before = part


def _cut_parts(
    parsed: ParsedDoc, section: _Section, limits: ChunkLimits
) -> Iterator[Sequence[Unit]]:
    """The pieces of a section that is too long for one chunk, in parts that are not."""
    cap = max(limits.max_tokens - 2 * limits.overlap_tokens, limits.max_tokens // 2, 1)
    units = read_units(parsed.source, section.blocks, min(limits.min_tokens, cap), cap)
    parts = [
        part
        for run in _split_at_oversized(units, limits.max_tokens)
        for part in _cut_evenly(_group(parsed.source, run, limits.max_tokens), limits, cap)
    ]
    yield from _keep_bound(parsed, parts, limits.max_tokens)


def _split_at_oversized(units: Sequence[Unit], max_tokens: int) -> Iterator[list[Unit]]:
    """Runs of units with each block that is too long for a chunk in a run of its own."""
    run: list[Unit] = []
    for unit in units:
        if unit.is_atomic and unit.tokens > max_tokens:
            yield from ([run] if run else [])
            yield [unit]
            run = []
        else:
            run.append(unit)
    yield from ([run] if run else [])


def _group(source: str, units: Sequence[Unit], max_tokens: int) -> list[list[Unit]]:
    """Groups that stay together: a heading, title or lead-in with what it leads to."""
    groups: list[list[Unit]] = []
    size, is_led = 0, False
    for unit in units:
        if is_led and size + unit.tokens <= max_tokens:
            groups[-1].append(unit)
            size += unit.tokens
        else:
            groups.append([unit])
            size = unit.tokens
        is_led = unit.leads(source)
    return groups


def _cut_evenly(groups: Sequence[list[Unit]], limits: ChunkLimits, cap: int) -> list[list[Unit]]:
    """Put groups together into parts of about equal size, at most `cap` tokens or one group."""
    sizes = [sum(unit.tokens for unit in group) for group in groups]
    remaining = sum(sizes)
    if remaining <= limits.max_tokens:
        return [[unit for group in groups for unit in group]]
    count = max(math.ceil(remaining / cap), round(remaining / limits.target_tokens), 2)
    parts: list[list[Unit]] = [[]]
    filled = 0
    for group, size in zip(groups, sizes, strict=True):
        is_full = filled + size > cap or (count > 1 and filled + size / 2 >= remaining / count)
        if filled and is_full:
            remaining, count, filled = remaining - filled, max(count - 1, 1), 0
            parts.append([])
        parts[-1].extend(group)
        filled += size
    if filled < limits.min_tokens and len(parts) > 1:
        joined = parts[-2] + parts[-1]
        if sum(unit.tokens for unit in joined) <= limits.max_tokens:
            parts[-2:] = [joined]
    return parts


def _keep_bound(
    parsed: ParsedDoc, parts: Sequence[Sequence[Unit]], max_tokens: int
) -> Iterator[Sequence[Unit]]:
    """Halve parts whose text counts more than its units did, which joining them may cause."""
    pending = list(reversed(parts))
    while pending:
        part = pending.pop()
        estimate = sum(unit.tokens for unit in part)
        is_close = len(part) > 1 and estimate > max_tokens * 0.9
        if is_close and count_tokens(_text_of(parsed, part)) > max_tokens:
            pending += [part[len(part) // 2 :], part[: len(part) // 2]]
        else:
            yield part


def _text_of(parsed: ParsedDoc, units: Sequence[Unit]) -> str:
    return clean_span(parsed, units[0].start, units[-1].end)


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
        overlap = count_tokens(clean_span(parsed, start, own_start))
        whole = count_tokens(clean_span(parsed, start, part[-1].end))
        if overlap <= 2 * limits.overlap_tokens and whole <= limits.max_tokens:
            return start
    return own_start


def _overlap_starts(source: str, before: Sequence[Unit], least: int, most: int) -> Iterator[int]:
    taken = 0
    for unit in reversed(before):
        if taken >= least or unit.block.kind is BlockKind.HEADING:
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
    if unit.is_atomic or unit.block.kind is BlockKind.HEADING:
        return ""
    last = cut_sentences(parsed.source, unit)[-1]
    return clean_block(parsed.source, last.block, last.start, last.end).strip()


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
        own = (unit for unit in draft.units if unit.block.kind is kind)
        tokens = sum(unit.tokens or measure(parsed.source, unit).tokens for unit in own)
        if 2 * tokens > draft.tokens:
            return content_type
    return ContentType.PROSE
