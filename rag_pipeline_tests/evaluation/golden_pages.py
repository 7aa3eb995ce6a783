"""The parsed pages of the textbook, and small pages that tests write themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from rag_pipeline.core.models import ParsedDoc

_DOCS = Path(__file__).parents[2] / "website" / "docs"


@cache
def read_book() -> dict[str, ParsedDoc]:
    """Return every page of the textbook by path; the pages are parsed once per test run."""
    return {doc.doc_id: parse_doc(doc, SiteSettings()) for doc in discover_docs(_DOCS).docs}


def make_page(doc_path: str, source: str) -> ParsedDoc:
    """Return a parsed page with the given path and Markdown source; no file is needed."""
    content = source.encode()
    doc = DiscoveredDoc(parse_doc_id(doc_path), Path(doc_path), "0" * 64, len(content), 0)
    return parse_doc(doc, SiteSettings(), content)


def read_section_texts(parsed: ParsedDoc) -> dict[str, str]:
    """Return the Markdown source of each section of a document, by heading.

    A section reaches from a heading of any level to the next heading. The text before the
    first heading is filed under the document's title, and front matter is left out. Sections with
    the same heading are joined.
    """
    document = parsed.document
    name, texts = document.title, dict[str, str]()
    for block in parsed.blocks:
        if block.kind == FRONT_MATTER.name:
            continue
        if block.heading is not None:
            name = document.headings[block.heading].text or document.title
        texts[name] = f"{texts.get(name, '')}{parsed.source[block.start : block.end]}\n"
    return texts
