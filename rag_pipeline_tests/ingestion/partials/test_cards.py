"""Tests of lists of pages: `<DocCardList />` and generated indexes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from pathlib import Path

_LIST = "import DocCardList from '@theme/DocCardList';\n\n<DocCardList />\n"


def _write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _category(**fields: object) -> str:
    return json.dumps({"label": "Wheels and axles", **fields})


def _read(docs: Path) -> dict[str, tuple[str, str, str]]:
    """Return title, address and text of each document of a docs folder."""
    found = {}
    for doc in discover_docs(docs).docs:
        parsed = parse_doc(doc, SiteSettings())
        text = "\n".join(chunk.text for chunk in chunk_doc(parsed, ChunkLimits()))
        found[str(doc.doc_id)] = (parsed.document.title, parsed.document.url, text)
    return found


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    _write(
        folder,
        parts__index_md=f"---\ntitle: Parts\n---\n{_LIST}",
        parts__rim_md="---\ntitle: Rim\nsidebar_position: 2\n---\nThe rim holds the tyre.\n",
        parts__hub_md="---\nsidebar_position: 1\ndescription: Turns.\n---\n# Hub\n\nText.\n",
        parts__hidden_md="---\ntitle: Secret\nunlisted: true\n---\nHidden.\n",
        parts__spokes__index_md="---\ntitle: Spokes\ndescription: Of steel.\n---\nText.\n",
    )
    return folder


def test_a_list_of_cards_is_text_in_the_order_of_the_sidebar(docs: Path) -> None:
    assert _read(docs)["parts/index.md"][2].split("\n") == [
        "- **Hub**: Turns.",
        "- **Rim**: The rim holds the tyre.",
        "- **Spokes**: Of steel.",
    ]


def test_a_page_with_cards_changes_with_its_cards(docs: Path) -> None:
    def hash_index() -> str:
        return next(
            doc.sha256 for doc in discover_docs(docs).docs if doc.doc_id == "parts/index.md"
        )

    before = hash_index()
    (docs / "parts" / "rim.md").write_text("---\ntitle: Rim\n---\nOther words.\n")
    assert hash_index() != before


def test_a_generated_index_is_a_page_with_its_children(docs: Path) -> None:
    link = {"type": "generated-index", "title": "All wheels", "description": "What turns."}
    (docs / "parts" / "_category_.json").write_text(_category(link=link))
    title, url, text = _read(docs)["parts/_category_.json"]
    assert (title, url) == ("All wheels", "/docs/category/wheels-and-axles")
    assert text.split("\n")[0] == "What turns."
    assert "- **Hub**: Turns." in text
    assert "- **Parts**" in text  # the index of the folder is a page like the others here


def test_a_page_that_begins_with_a_heading_has_it_as_description(docs: Path) -> None:
    _write(docs, parts__axle_md="---\ntitle: Axle\n---\n# Axle\n\n## Sizes {#s}\n\nText.\n")
    assert "- **Axle**: Sizes" in _read(docs)["parts/index.md"][2].split("\n")


def test_a_generated_index_may_have_its_own_slug(docs: Path) -> None:
    link = {"type": "generated-index", "slug": "/wheels"}
    (docs / "parts" / "_category_.json").write_text(_category(link=link))
    assert _read(docs)["parts/_category_.json"][:2] == ("Wheels and axles", "/docs/wheels")


@pytest.mark.parametrize(
    "content", [_category(), _category(link={"type": "doc", "id": "x"}), "[1", "null", "a: b: c"]
)
def test_other_categories_are_no_pages(docs: Path, content: str) -> None:
    (docs / "parts" / "_category_.json").write_text(content)
    assert "parts/_category_.json" not in _read(docs)


def test_a_list_without_pages_is_reported(tmp_path: Path) -> None:
    _write(tmp_path / "docs", alone__index_md=f"Text.\n\n{_LIST}")
    (doc,) = discover_docs(tmp_path / "docs").docs
    assert parse_doc(doc, SiteSettings()).notes.components == ("DocCardList",)
