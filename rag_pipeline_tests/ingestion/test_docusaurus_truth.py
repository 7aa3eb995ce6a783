"""Compare page addresses and heading ids with those of a real Docusaurus build.

The docs folder, which has many edge cases, and the recorded results are in `fixtures`. The build
had base URL `/`, route `edge`, trailing slash false and Markdown format `detect`.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest

from rag_pipeline.core.models import DiscoveredDoc, MarkdownFormat, SiteSettings
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

_FIXTURES = Path(__file__).parent.parent / "fixtures"
_DOCS_DIR = _FIXTURES / "docusaurus-edge-docs"
_TRUTH = json.loads((_FIXTURES / "docusaurus-edge-truth.json").read_text(encoding="utf-8"))
_SITE = SiteSettings("/", "edge", trailing_slash=False, markdown_format=MarkdownFormat.DETECT)

# The built pages differ from their sources in: an emoji shortcode, a computed value, and the
# heading that Docusaurus adds above footnotes.
_SHOWN_TEXTS = {":rocket: shortcode": "\U0001f680 shortcode", "expr": "2 expr"}
_FOOTNOTES = (2, "Footnotes", "footnote-label")


def _discover() -> dict[str, DiscoveredDoc]:
    """Return the documents of the fixture by the name that the recorded results use."""
    return {f"edge/{doc.doc_id}": doc for doc in discover_docs(_DOCS_DIR, with_unlisted=True).docs}


def test_the_scan_finds_exactly_the_pages_that_docusaurus_built() -> None:
    assert len(_TRUTH) == 41
    assert set(_discover()) == set(_TRUTH)


@pytest.mark.parametrize("name", sorted(_TRUTH))
def test_address_title_and_heading_ids_match_the_docusaurus_build(name: str) -> None:
    document = parse_doc(_discover()[name], _SITE).document
    truth = _TRUTH[name]
    assert unquote(document.url) == truth["url"]
    assert document.title == truth["title"]
    built = [(item["level"], item["text"], item["id"]) for item in truth["headings"]]
    if not any(heading.level == 1 for heading in document.headings):
        assert built.pop(0) == (1, truth["title"], None)
    if _FOOTNOTES in built:
        built.remove(_FOOTNOTES)
    found = [
        (heading.level, _SHOWN_TEXTS.get(heading.text, heading.text), heading.anchor)
        for heading in document.headings
    ]
    assert found == built
