"""The table of contents of the book, and the text of its sections, as the collection has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.payload import read_metadata, read_text
from rag_pipeline.retrieval.hits import Piece, join_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.retrieval.retriever import Retriever


class SectionMissingError(QueryError):
    """No page or section of the book has the address that was given."""

    code = "SECTION_MISSING"
    http_status = 404


@dataclass(frozen=True, slots=True)
class ContentsSection:
    """A section of a page: its heading, its URL, and the level of the heading, 1 to 6."""

    heading: str
    url: str
    level: int


@dataclass(frozen=True, slots=True)
class ContentsPage:
    """A page of the book, with its sections in the order of the page."""

    title: str
    url: str
    doc_path: str
    module: str
    chapter: str
    sections: tuple[ContentsSection, ...]


@dataclass(frozen=True, slots=True)
class SectionText:
    """The Markdown text of a section, or of a whole page; `section` is then empty."""

    title: str
    section: str
    url: str
    doc_path: str
    text: str
    module: str
    chapter: str


def read_contents(retriever: Retriever, module: str | None = None) -> tuple[ContentsPage, ...]:
    """Return the pages of the book, or of one module, in the order of the book.

    Pages are ordered by module, chapter, position in the sidebar and path. Numbers in names count
    as numbers.

    Raises:
        StoreError: The collection is missing or cannot be read.
    """
    pages = retriever.read(_read_pages)
    chosen = [pieces for pieces in pages.values() if module in {None, pieces[0][0].module}]
    chosen.sort(key=lambda pieces: _order(pieces[0][0]))
    return tuple(_describe_page(pieces) for pieces in chosen)


def read_section(retriever: Retriever, url: str) -> SectionText:
    """Return the text of the section at a URL, or of the whole page if the URL has no anchor.

    The text of a section includes its subsections. The host of the URL and a slash at the end of
    its path have no effect.

    Raises:
        SectionMissingError: The book has no such page or section.
        StoreError: The collection is missing or cannot be read.
    """
    path, anchor = _split(url)
    for pieces in retriever.read(_read_pages).values():
        first = pieces[0][0]
        if _split(first.url)[0] != path:
            continue
        chosen = _choose(pieces, anchor) if anchor else pieces
        if not chosen:
            break
        top = chosen[0][0]
        return SectionText(
            title=top.title,
            section=top.section_heading if anchor else "",
            url=top.url if anchor else top.url.partition("#")[0],
            doc_path=top.doc_path,
            text=_join(chosen),
            module=top.module,
            chapter=top.chapter,
        )
    raise SectionMissingError(
        f"the book has no section with the address {url!r:.200}. Take an address from the table of "
        "contents or from a search"
    )


def _read_pages(index: PointStore) -> dict[str, list[Piece]]:
    """Return the chunks of each document in reading order, by the document's path."""
    pages: dict[str, list[Piece]] = {}
    for point in index.scroll():
        metadata = read_metadata(point.payload)
        pages.setdefault(metadata.doc_path, []).append((metadata, read_text(point.payload)))
    for pieces in pages.values():
        pieces.sort(key=lambda piece: piece[0].chunk_index)
    return pages


def _describe_page(pieces: Sequence[Piece]) -> ContentsPage:
    first = pieces[0][0]
    sections = {
        chunk.url: ContentsSection(chunk.section_heading, chunk.url, chunk.heading_level)
        for chunk, _ in reversed(pieces)
        if chunk.anchor
    }
    return ContentsPage(
        title=first.title,
        url=first.url.partition("#")[0],
        doc_path=first.doc_path,
        module=first.module,
        chapter=first.chapter,
        sections=tuple(reversed(sections.values())),
    )


def _choose(pieces: Sequence[Piece], anchor: str) -> list[Piece]:
    """Return the chunks of the section with the anchor and of its subsections."""
    start = next((at for at, (chunk, _) in enumerate(pieces) if chunk.anchor == anchor), None)
    if start is None:
        return []
    level, end = pieces[start][0].heading_level, start + 1
    while end < len(pieces):
        chunk = pieces[end][0]
        if chunk.anchor != anchor and chunk.heading_level <= level:
            break
        end += 1
    return list(pieces[start:end])


def _join(pieces: Sequence[Piece]) -> str:
    """Join chunks without their overlaps; sections are separated by a blank line."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        if groups and groups[-1][0][0].anchor == piece[0].anchor:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return "\n\n".join(join_pieces(group)[0].strip() for group in groups)


def _split(url: str) -> tuple[str, str]:
    """Return the path of a URL without slashes at its ends, and its anchor."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "", ""
    return parts.path.strip("/"), parts.fragment


def _order(chunk: ChunkMetadata) -> tuple[object, ...]:
    position = chunk.sidebar_position
    last = position is None
    return (
        _natural(chunk.module),
        _natural(chunk.chapter),
        last,
        0.0 if position is None else float(position),
        _natural(chunk.doc_path),
    )


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key by which `10` comes after `9`."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
