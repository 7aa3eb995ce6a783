"""Tests of addresses and anchors from the manifest of a built site."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, Document, Heading, SiteSettings
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.site.manifest import (
    ManifestPage,
    read_manifest,
    read_page,
    take_addresses,
)
from rag_pipeline_tests.book import Book, make_book


def make_document(text: str) -> Document:
    doc = DiscoveredDoc(parse_doc_id("arms.md"), Path("arms.md"), "0" * 64, 0, 0)
    return parse_doc(doc, SiteSettings(), text.encode()).document


def make_page(
    *headings: tuple[int, str, str | None], permalink: str = "/docs/arms"
) -> ManifestPage:
    return ManifestPage("0" * 64, permalink, tuple(Heading(*one, 0) for one in headings))


def read_anchors(document: Document) -> list[str | None]:
    return [heading.anchor for heading in document.headings]


def test_a_site_that_follows_the_rules_changes_nothing() -> None:
    document = make_document("# Arms\n\n## Joints\n\n### Gears\n")
    page = make_page((1, "Arms", None), (2, "Joints", "joints"), (3, "Gears", "gears"))
    assert take_addresses(document, page) == (document, ())


def test_the_title_that_the_site_adds_is_skipped() -> None:
    document = make_document("---\ntitle: Arms\n---\n\n## Joints\n")
    page = make_page((1, "Arms", None), (2, "Joints", "joints"))
    assert take_addresses(document, page) == (document, ())


def test_address_and_anchors_come_from_the_site() -> None:
    document = make_document("## Joints\n\n## Gears\n")
    document = replace(document, url="https://example.org/docs/arms")
    page = make_page((2, "Joints", "s1"), (2, "Gears", "s2"), permalink="/book/a")
    taken, differences = take_addresses(document, page)
    assert taken.url == "https://example.org/book/a"
    assert read_anchors(taken) == ["s1", "s2"]
    assert [str(one) for one in differences] == [
        "arms.md: expected https://example.org/docs/arms, the site has https://example.org/book/a",
        "arms.md:1: expected joints, the site has s1",
        "arms.md:3: expected gears, the site has s2",
    ]


def test_headings_that_a_plugin_adds_are_skipped() -> None:
    document = make_document("## Joints\n\n## Gears\n")
    page = make_page(
        (2, "On this page", "toc"), (2, "Joints", "x"), (3, "Note", "note"), (2, "Gears", "y")
    )
    assert read_anchors(take_addresses(document, page)[0]) == ["x", "y"]


def test_a_heading_whose_text_a_plugin_changes_is_found_by_its_place() -> None:
    document = make_document("## Joints\n\n## Gears\n\n## Belts\n")
    page = make_page((2, "Joints", "a"), (2, "2. Zahnräder", "b"), (2, "Belts", "c"))
    assert read_anchors(take_addresses(document, page)[0]) == ["a", "b", "c"]


def test_a_heading_that_the_site_does_not_have_keeps_no_foreign_anchor() -> None:
    document = make_document("## Joints\n\n## Gears\n")
    page = make_page((3, "Other", "gears"), (2, "Joints", "joints"))
    taken, differences = take_addresses(document, page)
    assert read_anchors(taken) == ["joints", None]
    assert differences == ("arms.md:3: expected gears, the site has no such heading",)


@given(st.lists(st.sampled_from(["Joints", "Gears", "Belts"]), max_size=8), st.data())
def test_each_heading_gets_the_anchor_of_a_heading_with_its_text(
    texts: list[str], data: st.DataObject
) -> None:
    document = make_document("".join(f"## {text}\n\n" for text in texts))
    built = [(2, text, f"id-{at}") for at, text in enumerate(texts)]
    added = data.draw(st.integers(0, len(built)))
    page = make_page(*built[:added], (4, "Added", "added"), *built[added:])
    taken, _ = take_addresses(document, page)
    assert read_anchors(taken) == [anchor for _, _, anchor in built]


def write_manifest(path: Path, **changes: object) -> Path:
    heading = {"level": 2, "id": "joints", "text": "Joints"}
    page = {
        "kind": "docs",
        "source": "docs/arms.md",
        "sourceHash": "a" * 64,
        "permalink": "/docs/arms",
        "headings": [heading, {"level": 1, "id": None, "text": "Arms"}],
    }
    path.write_text(json.dumps({"format": 1, "site": {}, "pages": [page]} | changes))
    return path


def test_a_manifest_is_read(tmp_path: Path) -> None:
    pages = read_manifest(write_manifest(tmp_path / "rag-manifest.json"), tmp_path / "docs")
    assert {name: read_page(entry) for name, entry in pages.items()} == {
        "arms.md": ManifestPage(
            "a" * 64, "/docs/arms", (Heading(2, "Joints", "joints", 0), Heading(1, "Arms", None, 0))
        )
    }


def damage_format(path: Path) -> None:
    write_manifest(path, format=9)


def damage_pages(path: Path) -> None:
    write_manifest(path, pages=[{"source": "a.md"}])


def cut_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (damage_format, "format 9, but format 1 is needed"),
        (damage_pages, "is damaged"),
        (cut_file, "is damaged"),
        (lambda path: path.write_text("[]"), "is damaged"),
        (lambda path: path.unlink(), "cannot be read"),
    ],
)
def test_an_unusable_manifest_is_refused(
    tmp_path: Path, damage: Callable[[Path], object], problem: str
) -> None:
    path = write_manifest(tmp_path / "rag-manifest.json")
    damage(path)
    with pytest.raises(ConfigurationError, match=problem):
        read_manifest(path, tmp_path / "docs")


def build_site(book: Book, doc_id: str, anchor: str) -> None:
    """Write the manifest of a site that gives the second heading of one page another anchor."""
    path = book.root / "docs" / doc_id
    entry = {
        "source": f"docs/{doc_id}",
        "sourceHash": hashlib.sha256(path.read_bytes()).hexdigest(),
        "permalink": "/book/arms",
        "headings": [{"level": 2, "id": anchor, "text": "Joints"}],
    }
    write_manifest(book.root / "build.json", pages=[entry])


def read_urls(book: Book) -> set[object]:
    return {point.payload["url"] for point in book.read_points()}


def test_an_ingestion_follows_each_build_of_the_site(tmp_path: Path) -> None:
    text = "## Joints\n\nA joint turns around its axis.\n"
    book = make_book(tmp_path, {"arms.md": text, "legs.md": text}, memory=True)
    assert book.ingest().docs_processed == 2
    predicted = read_urls(book)

    build_site(book, "arms.md", "s1")
    book.manifest = tmp_path / "build.json"
    report = book.ingest()
    assert (report.docs_processed, report.texts_embedded) == (1, 0)
    assert any("expected joints, the site has s1" in warning for warning in report.warnings)
    assert "/book/arms#s1" in read_urls(book)
    assert book.ingest().docs_processed == 0

    build_site(book, "arms.md", "s2")
    assert book.ingest().docs_processed == 1
    assert "/book/arms#s2" in read_urls(book)

    book.edit("arms.md", "axis", "shaft")  # the build does not know the new text
    assert book.ingest().docs_processed == 1
    assert read_urls(book) == predicted
    book.edit("arms.md", "shaft", "axis")
    assert book.ingest().docs_processed == 1
    book.manifest = None
    assert book.ingest().docs_processed == 1
    assert read_urls(book) == predicted
