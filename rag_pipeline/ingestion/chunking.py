"""Cut the sections of a document into chunks of limited size, each with its place in the source.

Raise `FORMAT_VERSION` with every change of a rule in this module, because the change gives other
chunks for the same document.
"""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.ids import hash_text, make_chunk_id
from rag_pipeline.core.models import Chunk, ContentType, EmbeddingText, TextBlockKind
from rag_pipeline.core.site.docusaurus import link_to_anchor
from rag_pipeline.core.text.sentences import (
    SENTENCE_MARKS,
    find_page_line,
    find_sources,
    split_sentences,
)
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.ingestion.markdown.blocks import (
    cut_text,
    find_removed,
    find_span_blocks,
    read_span,
)
from rag_pipeline.ingestion.markdown.source import count_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, Figure, Heading, ParsedDoc, TextBlock
    from rag_pipeline.core.text.sentences import Hold, LineOrigin


_SENTENCE_END: Final = re.compile(rf"[{SENTENCE_MARKS}:…][\"'”’」』）》)\]*_`]*\s*$")  # noqa: RUF001  # marks of other scripts
_SEPARATORS: Final = (re.compile(r"\n\s*"), re.compile(r"[;:,.!?]\s+"), re.compile(r"\s+"))
_LOOK_BACK: Final = 48  # characters; enough to see the mark that ends a sentence


@dataclass(frozen=True, slots=True)
class Unit:
    """A Markdown block, or a part of one, that stays together in one chunk.

    Attributes:
        block: The block.
        start: Offset in the source of the first character.
        end: Offset in the source after the last character.
        text: The cleaned text.
        tokens: Number of tokens of `text`, plus 1 for the line break after it; 0 until counted.
    """

    block: Block
    start: int
    end: int
    text: str
    tokens: int = 0

    @property
    def is_heading(self) -> bool:
        """True if the unit is a heading or a part of one."""
        return self.block.heading is not None

    def leads(self, source: str) -> bool:
        """Return True if the next unit must stay with this one.

        This is the case for headings, for titles such as `:::note Title` or the label of a tab, and
        for prose that ends with a colon.
        """
        if self.block.leads or self.block.is_atomic:
            return self.block.leads
        return source[self.start : self.end].rstrip().endswith(":")


def measure(unit: Unit) -> Unit:
    """Return the unit with its token count filled in: the text's tokens plus 1 for a line break."""
    return replace(unit, tokens=count_tokens(unit.text.strip()) + 1)


def cut_sentences(source: str, unit: Unit) -> list[Unit]:
    """Cut a unit of prose into sentences, in order; a code block, table or formula stays whole."""
    if unit.block.is_atomic:
        return [unit]
    text = source[unit.start : unit.end]
    spans = [(unit.start + start, unit.start + end) for start, end in split_sentences(text)]
    if spans:  # keep white space at the edges: cleaning may have replaced it together with markup
        spans[0] = (unit.start, spans[0][1])
        spans[-1] = (spans[-1][0], unit.end)
    return list(_cut_at(unit, _join_unfinished(source, spans, unit.block.holds)))


def cut_parts(
    parsed: ParsedDoc, section: Sequence[Unit], limits: ChunkLimits
) -> Iterator[Sequence[Unit]]:
    """Cut a section that is too long for one chunk into parts that fit, in order.

    Args:
        parsed: The document.
        section: The section's whole blocks as units.
        limits: Chunk sizes in tokens.

    Yields:
        The units of each part, at most `limits.max_tokens` tokens. A code block, table or formula
        that is longer than that is a part of its own.
    """
    source, max_tokens = parsed.source, limits.max_tokens
    cap = max(max_tokens - 2 * limits.overlap_tokens, max_tokens // 2, 1)
    longest = min(limits.min_tokens, cap)
    units: list[Unit] = []
    for unit in map(measure, section):
        if unit.block.is_atomic or unit.tokens <= longest:
            units.append(unit)
        else:
            pieces = cut_sentences(source, unit)
            units.extend(part for piece in pieces for part in _cut_long(source, piece, cap))
    parts: list[list[Unit]] = []
    for is_oversized, run in groupby(
        units, key=lambda unit: unit.block.is_atomic and unit.tokens > max_tokens
    ):
        if is_oversized:
            parts += [[unit] for unit in run]
        else:
            parts += _cut_evenly(_group(source, list(run), max_tokens), limits, cap)
    pending = parts[::-1]
    while pending:
        part = pending.pop()
        estimate = sum(unit.tokens for unit in part)
        is_close = len(part) > 1 and estimate > max_tokens * 0.9
        # The joined text can have more tokens than the sum of its units.
        if is_close and count_tokens(read_span(parsed, part[0].start, part[-1].end)) > max_tokens:
            pending += [part[len(part) // 2 :], part[: len(part) // 2]]
        else:
            yield part


def _group(source: str, units: Sequence[Unit], max_tokens: int) -> list[list[Unit]]:
    """Group each unit that introduces the next one (see `Unit.leads`) with that next unit.

    A group has at most `max_tokens` tokens, unless a single unit has more. Other units are groups
    of their own.
    """
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
    """Join consecutive groups of units into parts of about equal size.

    A part has at most `cap` tokens unless it consists of one group. If all groups together have at
    most `limits.max_tokens` tokens, they are one part. A last part below `limits.min_tokens` is
    joined to the part before it if both together have at most `limits.max_tokens` tokens.
    """
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


def _cut_at(unit: Unit, spans: Iterator[tuple[int, int]]) -> Iterator[Unit]:
    """Yield the part of a unit in each span of source offsets; spans without text are skipped."""
    for start, end in spans:
        text = cut_text(unit.block, start, end)
        if text.strip():
            yield measure(Unit(unit.block, start, end, text))


def _join_unfinished(
    source: str, spans: Sequence[tuple[int, int]], holds: Sequence[Hold]
) -> Iterator[tuple[int, int]]:
    """Join sentence spans across boundaries that do not end a sentence.

    A boundary is ignored if no sentence mark stands before it, or if it lies inside a hold
    (characters that must stay together, such as a link or a code span).
    """
    begin: int | None = None
    for at, (start, end) in enumerate(spans):
        begin = start if begin is None else begin
        following = spans[at + 1][0] if at + 1 < len(spans) else None
        if following is not None:
            tail = source[max(begin, end - _LOOK_BACK) : end]
            if _SENTENCE_END.search(tail) is None or _is_inside_hold(holds, following):
                continue
        yield begin, end
        begin = None


def _is_inside_hold(holds: Sequence[Hold], position: int) -> bool:
    """Return True if a position lies inside a hold: characters that must not be cut apart."""
    at = bisect.bisect_left(holds, position, key=lambda hold: hold[0]) - 1
    return at >= 0 and holds[at][1] > position


def _cut_long(source: str, unit: Unit, cap: int) -> Iterator[Unit]:
    """Cut a unit into pieces of about equal size with at most `cap` tokens each.

    The preferred places for a cut are line ends, then ends of clauses, then spaces.
    """
    pending = [unit]
    while pending:
        piece = pending.pop()
        cut = _find_cut(source, piece, cap) if piece.tokens > cap else None
        if cut is None:
            yield piece
        else:
            pending.extend(_cut_at(piece, iter([(cut, piece.end), (piece.start, cut)])))


def _find_cut(source: str, unit: Unit, cap: int) -> int | None:
    """Return the source offset of the best cut near the middle of a unit; None if it cannot be cut.

    Line ends are preferred, then ends of clauses, then spaces. If there are none, the cut may be
    anywhere except inside markup that cleaning removes.
    """
    parts = math.ceil(unit.tokens / cap)
    length = unit.end - unit.start
    goal = unit.start + max(1, length * (parts // 2) // parts)
    reach = max(1, length // (4 * parts))
    low, high = max(unit.start + 1, goal - reach), min(unit.end, goal + reach)
    for separator in _SEPARATORS:
        places = [
            match.end()
            for match in separator.finditer(source, low, high)
            if match.end() < unit.end and not _is_inside_hold(unit.block.holds, match.end())
        ]
        if places:
            return min(places, key=lambda place: abs(place - goal))
    removed = find_removed(unit.block, goal)
    candidates = [goal] if removed is None else [removed[1], removed[0]]
    return next((place for place in candidates if unit.start < place < unit.end), None)


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
    newlines = [match.start() for match in _NEWLINE.finditer(parsed.source)]
    figures = _share_images(parsed, [draft.units[0].start for draft in drafts], newlines)
    places = [(draft.start, draft.units[0].start, draft.units[-1].end) for draft in drafts]
    byte_of = count_bytes(parsed.source, (offset for place in places for offset in place))
    document, origins = parsed.document, parsed.origins
    chunks = []
    for index, (draft, (start, content_start, end)) in enumerate(zip(drafts, places, strict=True)):
        steps = (item if isinstance(item, str) else item.text for item in draft.path)
        texts = [step for step in steps if step]
        # A first heading that is equal to the title is not repeated.
        below = texts[1:] if texts[:1] == [document.title] else texts
        breadcrumb = (document.title, *below)
        heading = next((item for item in reversed(draft.path) if not isinstance(item, str)), None)
        anchor = heading.anchor if heading is not None else None
        chosen = {
            EmbeddingText.TEXT: (),
            EmbeddingText.TITLE: breadcrumb[:1],
            EmbeddingText.SECTION: breadcrumb[-1:],
            EmbeddingText.HEADING_PATH: breadcrumb,
        }
        parts = [" > ".join(chosen[limits.embedding_text]), draft.lead_in, draft.text]
        first = bisect.bisect_left(newlines, start) + 1
        last = bisect.bisect_left(newlines, end) + 1
        blocks = find_span_blocks(parsed, start, end, draft.text)
        chunk = Chunk(
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
            start_byte=byte_of[start],
            content_start_byte=byte_of[content_start],
            end_byte=byte_of[end],
            text=draft.text,
            embedding_text="\n\n".join(part for part in parts if part),
            blocks=tuple(_locate(origins, block) for block in blocks) if origins else blocks,
            sources=find_sources(origins, first, last),
            tabs=tuple(item for item in draft.path if isinstance(item, str)),
            figures=tuple(figures[index]),
        )
        chunks.append(chunk)
    return tuple(chunks)


def _read_sections(parsed: ParsedDoc) -> Iterator[tuple[Path, list[Block]]]:
    """Yield each section's path and blocks.

    A section ends at the next heading, at the next tab, and with the container in which it began.
    The text before the first heading is the first section. Its path is empty.
    """
    path: Path = ()
    blocks: list[Block] = []
    opened: dict[int, Path] = {}  # by the number of a container: the path before it
    for block in parsed.blocks:
        before = path
        around = {container.number for container in block.containers}
        while not opened.keys() <= around:
            _, path = opened.popitem()
        for container in block.containers:
            if container.number not in opened:
                opened[container.number] = path
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
    whole = [
        Unit(block, block.start, block.end, block.text) for block in blocks if block.text.strip()
    ]
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
        lead_in = ""
        if has_lead_in and not (before[-1].block.is_atomic or before[-1].is_heading):
            lead_in = cut_sentences(parsed.source, before[-1])[-1].text.strip()
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
            above = source[max(piece.block.start, piece.start - _LOOK_BACK) : piece.start]
            if not above.strip() or _SENTENCE_END.search(above):
                yield piece.start
                if taken >= least:
                    return


def _share_images(
    parsed: ParsedDoc, starts: Sequence[int], newlines: Sequence[int]
) -> list[list[Figure]]:
    """Return the images of each chunk: those from its start to the start of the next chunk.

    Args:
        parsed: The document.
        starts: Offset of the first character of each chunk, without repeated text.
        newlines: Offset of each line end of the source.
    """
    lines = [bisect.bisect_left(newlines, start) + 1 for start in starts]
    found: list[list[Figure]] = [[] for _ in starts]
    for block in parsed.blocks:
        for image in block.images if starts else ():
            at = max(bisect.bisect_right(lines, image.line) - 1, 0)
            line = find_page_line(parsed.origins, image.line)
            found[at].append(replace(image, line=line))
    return found


def _locate(origins: Sequence[LineOrigin], block: TextBlock) -> TextBlock:
    """Return a block of a chunk's text with its lines in the document's file."""
    first, last = (find_page_line(origins, line) for line in (block.start_line, block.end_line))
    return replace(block, start_line=first, end_line=last)


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
