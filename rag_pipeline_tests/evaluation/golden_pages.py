"""The book's pages, and small pages made up on the spot."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from rag_pipeline.core.models import ParsedDoc

_DOCS = Path(__file__).parents[2] / "website" / "docs"


@cache
def read_book() -> dict[str, ParsedDoc]:
    """Every page of the book, parsed once per run."""
    return {doc.doc_id: parse_doc(doc, SiteSettings()) for doc in discover_docs(_DOCS).docs}


def make_page(doc_path: str, source: str) -> ParsedDoc:
    """A page with that source, at a path that need not exist."""
    content = source.encode()
    doc = DiscoveredDoc(parse_doc_id(doc_path), Path(doc_path), "0" * 64, len(content), 0)
    return parse_doc(doc, SiteSettings(), content)
