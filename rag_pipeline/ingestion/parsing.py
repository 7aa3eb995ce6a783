"""One Markdown file as a document: its front matter, headings, place, address and typed blocks."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.docusaurus import HeadingIds, base_id, build_permalink
from rag_pipeline.core.errors import DocumentReadError
from rag_pipeline.core.models import (
    Block,
    BlockKind,
    Document,
    Heading,
    MarkdownFormat,
    ParsedDoc,
)
from rag_pipeline.ingestion.classify import find_content_type, find_place
from rag_pipeline.ingestion.markdown.blocks import Leaf, read_leaves
from rag_pipeline.ingestion.markdown.cleaning import find_edits
from rag_pipeline.ingestion.markdown.front_matter import read_front_matter
from rag_pipeline.ingestion.markdown.headings import HeadingReader
from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner
from rag_pipeline.ingestion.markdown.source import count_bytes, normalize_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import DiscoveredDoc, SiteSettings
    from rag_pipeline.ingestion.markdown.front_matter import FrontMatter


def parse_doc(doc: DiscoveredDoc, site: SiteSettings, source: bytes | None = None) -> ParsedDoc:
    """Parse a document.

    Args:
        doc: The file; read where `source` is not given.
        site: How the site forms its addresses, and the syntax of `.md` files.
        source: The file's bytes.

    Returns:
        Every line of the source that is not blank is in exactly one block.

    Raises:
        DocumentReadError: The file cannot be read.
        FrontMatterError: The front matter is broken; the message names the line.
    """
    if source is None:
        try:
            source = doc.path.read_bytes()
        except OSError as error:
            raise DocumentReadError(doc.doc_id, f"cannot be read ({error.strerror})") from error
    text = normalize_source(source)
    front_matter = read_front_matter(doc.doc_id, text)
    mdx = _is_mdx(doc.doc_id, front_matter, site)
    lines = text.split("\n")
    body_line = text.count("\n", 0, front_matter.end)
    if front_matter.end and not text.endswith("\n", 0, front_matter.end):
        body_line = len(lines)
    leaves, _containers, env = read_leaves(lines, body_line, mdx=mdx)
    if body_line:
        leaves.insert(0, Leaf(BlockKind.FRONT_MATTER, 0, body_line))
    headings = _read_headings(leaves, env, mdx=mdx)
    document = _build_document(doc, site, front_matter, headings)
    return ParsedDoc(document, text, _build_blocks(text, lines, leaves, env, mdx=mdx))


def _is_mdx(doc_id: str, front_matter: FrontMatter, site: SiteSettings) -> bool:
    """Apply the page's own `mdx: {format: ...}` first, then the site's."""
    given = front_matter.section("mdx").text("format")
    chosen = given if given in set(MarkdownFormat) else site.markdown_format.value
    if chosen == MarkdownFormat.DETECT:
        return posixpath.splitext(doc_id)[1] != ".md"
    return chosen == MarkdownFormat.MDX


def _read_headings(
    leaves: Sequence[Leaf], env: dict[str, Any], *, mdx: bool
) -> tuple[Heading, ...]:
    reader, ids = HeadingReader(mdx=mdx, env=env), HeadingIds()
    headings: list[Heading] = []
    for leaf in leaves:
        if leaf.kind is not BlockKind.HEADING:
            continue
        text = reader.read(leaf.content)
        anchor = leaf.raw_id
        if not leaf.is_raw:
            anchor = ids.next_id(leaf.level, text.slugged, text.custom_id)
        headings.append(Heading(leaf.level, text.shown, anchor, leaf.start + 1))
    return tuple(headings)


def _build_document(
    doc: DiscoveredDoc,
    site: SiteSettings,
    front_matter: FrontMatter,
    headings: tuple[Heading, ...],
) -> Document:
    doc_path = doc.doc_id
    own_id = front_matter.text("id")
    strip_numbers = front_matter.flag("parse_number_prefixes", default=True)
    url = build_permalink(
        doc_path,
        site,
        front_matter_id=own_id,
        slug=front_matter.text("slug"),
        strip_numbers=strip_numbers,
    )
    first_h1 = next((item.text for item in headings if item.level == 1 and item.text), "")
    file_title = base_id(doc_path, own_id, strip_numbers=strip_numbers)
    module, chapter = find_place(doc_path, front_matter)
    return Document(
        doc_path=doc_path,
        title=front_matter.text("title") or first_h1 or file_title,
        description=front_matter.text("description"),
        tags=front_matter.texts("tags", split=True),
        learning_objectives=front_matter.texts("learning-objectives", "learning_objectives"),
        sidebar_label=front_matter.text("sidebar_label"),
        sidebar_position=front_matter.number("sidebar_position"),
        content_type=find_content_type(doc_path, front_matter),
        module=module,
        chapter=chapter,
        url=url,
        headings=headings,
    )


def _build_blocks(
    text: str, lines: Sequence[str], leaves: Sequence[Leaf], env: dict[str, Any], *, mdx: bool
) -> tuple[Block, ...]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans = [(starts[leaf.start], starts[leaf.end] - 1) for leaf in leaves]
    byte_of = count_bytes(text, (offset for span in spans for offset in span))
    scanner = Scanner(text, mdx=mdx)
    blocks: list[Block] = []
    heading = 0
    for leaf, span in zip(leaves, spans, strict=True):
        edits, holds = find_edits(leaf.kind, scanner, span, env, mdx=mdx)
        is_heading = leaf.kind is BlockKind.HEADING
        blocks.append(
            Block(
                kind=leaf.kind,
                start_line=leaf.start + 1,
                end_line=leaf.end,
                start=span[0],
                end=span[1],
                start_byte=byte_of[span[0]],
                end_byte=byte_of[span[1]],
                heading=heading if is_heading else None,
                edits=edits,
                holds=holds,
            )
        )
        heading += is_heading
    return tuple(blocks)
