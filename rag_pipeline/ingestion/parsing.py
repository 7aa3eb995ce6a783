"""One Markdown file as a document: front matter, headings, place, address and cleaned blocks."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rag_pipeline.core.docusaurus import base_id, build_permalink
from rag_pipeline.core.errors import DocumentReadError
from rag_pipeline.core.models import Document, MarkdownFormat, ParsedDoc
from rag_pipeline.ingestion.classify import find_content_type, find_place
from rag_pipeline.ingestion.markdown.front_matter import read_front_matter
from rag_pipeline.ingestion.markdown.page import read_page
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from rag_pipeline.core.models import DiscoveredDoc, Heading, SiteSettings
    from rag_pipeline.ingestion.markdown.front_matter import FrontMatter


def parse_doc(doc: DiscoveredDoc, site: SiteSettings, source: bytes | None = None) -> ParsedDoc:
    """Parse a document.

    Args:
        doc: The file; it is read if `source` is not given.
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
    blocks, headings = read_page(text, front_matter.end, mdx=mdx)
    return ParsedDoc(_build_document(doc, site, front_matter, headings), text, blocks)


def _is_mdx(doc_id: str, front_matter: FrontMatter, site: SiteSettings) -> bool:
    """Apply the page's own `mdx: {format: ...}` first, then the site's."""
    given = front_matter.section("mdx").text("format")
    chosen = given if given in set(MarkdownFormat) else site.markdown_format.value
    if chosen == MarkdownFormat.DETECT:
        return posixpath.splitext(doc_id)[1] != ".md"
    return chosen == MarkdownFormat.MDX


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
