"""Tests of ingestion after changes of partials: only the pages that import them are indexed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.ids import DocId
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.splicing import find_site_dir, resolve_import
from rag_pipeline_tests.book import Book, make_book

if TYPE_CHECKING:
    from pathlib import Path

_PAGE = "import Part from './_part.mdx';\n\n# Page\n\n<Part />\n\n{version}\n"
_PAGES = {"a.mdx": _PAGE, "b/c.mdx": "import P from '@site/docs/_part.mdx'\n\n<P />\n", "d.md": "D"}


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An indexed book in which two of three pages show a partial that shows another one."""
    book = make_book(tmp_path, _PAGES, memory=True)
    book.write("_part.mdx", "import X from './_inner.mdx'\n\nPart one.\n\n<X />\n")
    book.write("_inner.mdx", "Inner one.\n")
    book.ingest()
    return book


def read_texts(book: Book) -> dict[str, str]:
    """Return the indexed text of each page."""
    return {
        str(payload["doc_path"]): str(payload["text"]) for payload in book.read_payloads().values()
    }


@pytest.mark.parametrize("name", ["_part.mdx", "_inner.mdx"])
def test_a_changed_partial_indexes_only_its_importers_again(book: Book, name: str) -> None:
    before = (book.docs / name).read_text(encoding="utf-8")
    book.write(name, before.replace("one", "two"))
    report = book.ingest()
    assert (report.docs_processed, report.docs_unchanged) == (2, 1)
    texts = read_texts(book)
    word = "Part two." if name == "_part.mdx" else "Inner two."
    assert word in texts["a.mdx"]
    assert word in texts["b/c.mdx"]


def test_unchanged_partials_cost_no_work(book: Book) -> None:
    report = book.ingest()
    assert (report.docs_processed, report.docs_unchanged) == (0, 3)
    assert report.texts_embedded == 0


@pytest.mark.parametrize("name", ["index.mdx", "_category_.json"])
def test_the_first_page_in_a_list_without_pages_indexes_the_list_again(
    tmp_path: Path, name: str
) -> None:
    link = '{"label": "All", "link": {"type": "generated-index", "description": "Of all."}}'
    text = link if name.endswith(".json") else "Of all.\n\n<DocCardList />\n"
    book = make_book(tmp_path, {"intro.md": "Text.\n", f"parts/{name}": text}, memory=True)
    book.ingest()
    book.write("parts/rim.md", "---\ntitle: Rim\n---\n\nThe rim holds the tyre.\n")
    assert book.ingest().docs_processed == 2
    assert "- **Rim**: The rim holds the tyre." in read_texts(book)[f"parts/{name}"]


def test_a_missing_partial_is_reported_and_its_return_indexes_the_page_again(book: Book) -> None:
    content = (book.docs / "_inner.mdx").read_text(encoding="utf-8")
    (book.docs / "_inner.mdx").unlink()
    report = book.ingest()
    assert (report.docs_processed, report.docs_failed) == (2, 0)
    assert [("_inner.mdx" in warning) for warning in report.warnings] == [True, True]
    assert "Inner one." not in read_texts(book)["a.mdx"]
    book.write("_inner.mdx", content)
    report = book.ingest()
    assert (report.docs_processed, report.warnings) == (2, [])
    assert "Inner one." in read_texts(book)["a.mdx"]


def test_the_report_counts_expressions_without_a_value(book: Book) -> None:
    book.write("a.mdx", _PAGE + "\n{other}\n")
    assert book.ingest().expressions_left_out == 2


def test_a_page_without_imports_keeps_its_plain_hash_and_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.mdx").write_text(_PAGE, encoding="utf-8")
    (tmp_path / "b.md").write_text("B", encoding="utf-8")
    first, second = discover_docs(tmp_path).docs
    assert first.mtime_ns == -1
    assert second.mtime_ns > 0
    known = {doc.doc_id: replace(doc, size_bytes=1, sha256="known") for doc in (first, second)}
    again = discover_docs(tmp_path, known).docs
    assert [doc.sha256 for doc in again] == [first.sha256, "known"]


@pytest.mark.parametrize(
    ("importer", "target", "path"),
    [
        ("docs/a/page.mdx", "./_x.mdx", "docs/a/_x.mdx"),
        ("docs/a/page.mdx", "../_x.mdx", "docs/_x.mdx"),
        ("docs/page.mdx", "@site/src/./y/../_x.mdx", "src/_x.mdx"),
        ("docs/page.mdx", "../../_x.mdx", None),
        ("docs/page.mdx", "@site/../_x.mdx", None),
        ("docs/page.mdx", "/etc/x.mdx", None),
        ("docs/page.mdx", "@site//etc/x.mdx", None),
        ("docs/page.mdx", "package/_x.mdx", "node_modules/package/_x.mdx"),
        ("docs/page.mdx", "package/../../../x.mdx", None),
    ],
)
def test_imports_lead_to_files_of_the_site_only(
    importer: str, target: str, path: str | None
) -> None:
    assert resolve_import(importer, target) == path


def test_the_site_is_the_nearest_folder_with_a_configuration_above_the_docs(
    tmp_path: Path,
) -> None:
    page = tmp_path / "site" / "content" / "docs" / "a" / "page.md"
    page.parent.mkdir(parents=True)
    assert find_site_dir(DocId("a/page.md"), page) == tmp_path / "site" / "content"
    (tmp_path / "site" / "docusaurus.config.ts").touch()
    assert find_site_dir(DocId("a/page.md"), page) == tmp_path / "site"
