"""Tests of ingestions of a site with several sources."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.sources import Edition, Source, SourceKind
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.book import PAGES, Book, make_book

if TYPE_CHECKING:
    from pathlib import Path

SITE = SiteSettings("https://e.org/m/", trailing_slash=False)
TEXT = "# Title\n\n## Part\n\nText.\n"


def write(path: Path, text: str = TEXT) -> None:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def read_urls(root: Path, *sources: Source) -> dict[str, str]:
    """Return the path of each document's address by its id."""
    docs = discover_docs(root / "docs", sources=sources).docs
    return {doc.doc_id: parse_doc(doc, SITE).document.url.partition("e.org")[2] for doc in docs}


def make_sources(root: Path) -> tuple[Source, Source]:
    """Return a docs folder and a second one."""
    return (
        Source(name="docs", folder=root / "docs", prefix="", route_base_path="docs"),
        Source(name="api", folder=root / "api", prefix="api/", route_base_path="reference"),
    )


def test_documents_have_the_addresses_of_their_source(tmp_path: Path) -> None:
    write(tmp_path / "docs/01-first/index.md")
    write(tmp_path / "api/01-first/02-call.md")
    assert read_urls(tmp_path, *make_sources(tmp_path)) == {
        "01-first/index.md": "/m/docs/first",
        "api/01-first/02-call.md": "/m/reference/first/call",
    }


def test_module_and_content_type_come_from_the_path_below_the_source(tmp_path: Path) -> None:
    source = Source(name="lab", folder=tmp_path / "lab", prefix="lab/v1/")
    write(tmp_path / "lab/module-2/a.md")
    (doc,) = discover_docs(tmp_path / "docs", sources=(source,)).docs
    document = parse_doc(doc, SITE).document
    assert (document.doc_path, document.module) == ("lab/v1/module-2/a.md", "module-2")
    assert document.edition == Edition("lab")
    assert document.content_type == "prose"


def test_a_partial_of_another_docs_folder_is_found_from_the_folder_of_the_site(
    tmp_path: Path,
) -> None:
    write(tmp_path / "docusaurus.config.js", "")
    write(tmp_path / "docs/a.md")
    write(tmp_path / "parts/_p.mdx", "Shared words.\n")
    write(tmp_path / "api/x/a.mdx", "import P from '@site/parts/_p.mdx';\n\n# A\n\n<P/>\n")
    (_, doc) = discover_docs(tmp_path / "docs", sources=make_sources(tmp_path)).docs
    assert "Shared words." in parse_doc(doc, SITE).source


def test_a_missing_folder_and_equal_ids_are_errors_that_name_the_source(tmp_path: Path) -> None:
    docs, api = make_sources(tmp_path)
    write(tmp_path / "docs/api/a.md")
    with pytest.raises(ConfigurationError, match=r"api of the source api does not exist\. Restore"):
        discover_docs(tmp_path / "docs", sources=(docs, api))
    write(tmp_path / "api/a.md")
    with pytest.raises(ConfigurationError, match=r"api/a\.md of the source docs has an id of the"):
        discover_docs(tmp_path / "docs", sources=(docs, api))
    other = replace(api, prefix="@site/api/")
    assert set(read_urls(tmp_path, docs, other)) == {"api/a.md", "@site/api/a.md"}


def test_the_manifest_has_the_addresses_of_all_sources(tmp_path: Path) -> None:
    docs, api = make_sources(tmp_path)
    french = replace(api, name="api", locale="fr", base_url="fr/", folder=tmp_path / "fr")
    french = replace(french, fallback=api.folder, prefix="fr/", is_default_locale=False)
    write(tmp_path / "docusaurus.config.js", "")
    for name in ("docs/a.md", "api/a.md", "api/b.md", "fr/b.md"):
        write(tmp_path / name)
    scan = discover_docs(docs.folder, sources=(docs, api, french))
    write_manifest(tmp_path / "build", {"docs/a.md": "/m/one", "api/a.md": "/m/two"}, scan.docs)
    french_pages = {"api/a.md": "/m/fr/two", "fr/b.md": "/m/fr/three"}
    write_manifest(tmp_path / "build/fr", french_pages, scan.docs)
    manifest = tmp_path / "build/rag-manifest.json"
    found = discover_docs(docs.folder, None, manifest, (docs, api, french)).docs
    urls = {doc.doc_id: parse_doc(doc, SITE).document.url for doc in found}
    assert urls == {
        "a.md": "https://e.org/m/one",
        "api/a.md": "https://e.org/m/two",
        "api/b.md": "https://e.org/m/reference/b",
        "fr/a.md": "https://e.org/m/fr/two",
        "fr/b.md": "https://e.org/m/fr/three",
    }


def write_manifest(folder: Path, permalinks: dict[str, str], docs: tuple[object, ...]) -> None:
    """Write the manifest of one locale; all files have the same text."""
    sha256 = {doc.sha256 for doc in docs}.pop()  # type: ignore[attr-defined]  # DiscoveredDoc
    pages = [
        {"source": source, "sourceHash": sha256, "permalink": permalink, "headings": []}
        for source, permalink in permalinks.items()
    ]
    write(folder / "rag-manifest.json", json.dumps({"format": 1, "pages": pages}))


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book with a released version that has the same texts."""
    book = make_book(tmp_path)
    shutil.copytree(book.docs, tmp_path / "versioned_docs/version-1.0")
    current = Source(name="docs", folder=book.docs, prefix="", route_base_path="docs/next")
    released = Source(
        name="docs",
        folder=tmp_path / "versioned_docs/version-1.0",
        prefix="versioned_docs/version-1.0/",
        route_base_path="docs",
        version="1.0",
    )
    book.sources = (replace(current, version="current", is_latest=False), released)
    return book


def test_a_new_version_with_the_same_texts_embeds_nothing(book: Book) -> None:
    sources, book.sources = book.sources, ()
    assert book.ingest().texts_embedded > 0
    book.sources = sources
    report = book.ingest()
    assert report.docs_processed == 2 * len(PAGES)
    assert report.texts_embedded == 0
    urls = {str(payload["url"]).partition("#")[0] for payload in book.read_payloads().values()}
    editions = {
        (payload["version"], payload.get("is_latest"), payload["common_path"])
        for payload in book.read_payloads().values()
        if str(payload["doc_path"]).endswith("intro.md")
    }
    assert editions == {("current", False, "intro.md"), ("1.0", None, "intro.md")}
    assert {url for url in urls if "intro" in url} == {"/book/docs/intro", "/book/docs/next/intro"}


def test_a_change_of_one_source_processes_only_its_documents(book: Book) -> None:
    book.ingest()
    assert book.ingest().docs_processed == 0
    current, released = book.sources
    book.sources = (current, replace(released, route_base_path="docs/1"))
    assert {doc.source for doc in scan_docs(book.build_context()).process} == {book.sources[1]}
    report = book.ingest()
    assert (report.docs_processed, report.texts_embedded) == (len(PAGES), 0)
    assert scan_docs(book.build_context()).is_up_to_date
    book.sources = (current,)  # a source that is gone is removed from the index
    assert book.ingest().docs_deleted == len(PAGES)
    assert {str(payload["doc_path"]) for payload in book.read_payloads().values()} == set(PAGES)


def test_a_page_without_translation_shows_the_text_of_the_default_locale(tmp_path: Path) -> None:
    write(tmp_path / "docusaurus.config.js", "")
    write(tmp_path / "docs/a.md")
    write(tmp_path / "docs/b/c.md")
    write(tmp_path / "docs/d.md", "---\ndraft: true\n---\n")
    write(tmp_path / "fr/b/c.md", "---\nslug: /traduit\n---\n\n# Titre\n\n## Partie\n")
    write(tmp_path / "fr/d.md", "# Page\n")
    write(tmp_path / "fr/only.md")
    english = Source(name="docs", folder=tmp_path / "docs", prefix="", locale="en")
    french = Source(
        name="docs",
        folder=tmp_path / "fr",
        fallback=english.folder,
        prefix="fr/",
        base_url="fr/",
        locale="fr",
        is_default_locale=False,
    )
    urls = read_urls(tmp_path, english, french)
    assert urls == {
        "a.md": "/m/a",
        "b/c.md": "/m/b/c",
        "fr/a.md": "/m/fr/a",
        "fr/b/c.md": "/m/fr/traduit",
        "fr/d.md": "/m/fr/d",
    }
    docs = {
        doc.doc_id: doc for doc in discover_docs(english.folder, sources=(english, french)).docs
    }
    document = parse_doc(docs[DocId("fr/b/c.md")], SITE).document
    assert document.title == "Titre"
    assert document.edition == Edition(
        "docs", locale="fr", is_default_locale=False, common_path="b/c.md"
    )
    assert docs[DocId("fr/a.md")].path == tmp_path / "docs/a.md"


def test_a_missing_folder_of_translations_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md")
    source = Source(name="docs", folder=tmp_path / "fr", fallback=tmp_path / "docs", prefix="fr/")
    assert read_urls(tmp_path, source) == {"fr/a.md": "/m/a"}


POSTS = {
    "2021-08-26-welcome/index.md": "2021/08/26/welcome",
    "2019-05-28-first.md": "2019/05/28/first",
    "2020/01/02/deep.mdx": "2020/01/02/deep",
    "news/2024-3-4.md": "2024/3/4/news",
    "plain.md": "plain",
    "folder/index.md": "folder",
    "01-numbered.md": "01-numbered",
}
PAGES_OUTSIDE = {
    "about.md": "about",
    "index.mdx": "",
    "team/index.md": "team",
    "01-first/README.md": "01-first/README",
}


@pytest.mark.parametrize(("kind", "files"), [("blog", POSTS), ("pages", PAGES_OUTSIDE)])
def test_posts_and_pages_have_the_addresses_that_docusaurus_gives_them(
    tmp_path: Path, kind: str, files: dict[str, str]
) -> None:
    folder = tmp_path / kind
    for name in files:
        write(folder / name)
    write(folder / "named.md", "---\nslug: my/name\nid: other\n---\n\nText.\n")
    write(folder / "draft.md", "---\ndraft: true\n---\n\nText.\n")
    write(folder / "_part.md")
    route = "blog" if kind == "blog" else ""
    source = Source(
        name=kind, folder=folder, prefix=f"{kind}/", kind=SourceKind(kind), route_base_path=route
    )
    start = f"/m/{route}".rstrip("/")
    expected = {f"{kind}/{name}": f"{start}/{path}" for name, path in files.items()}
    expected[f"{kind}/named.md"] = f"{start}/my/name"
    assert read_urls(tmp_path, source) == expected


def test_a_blog_post_has_no_truncate_mark_and_its_title_takes_no_heading_id(tmp_path: Path) -> None:
    text = (
        "# Part\n\nFirst.\n\n<!-- truncate -->\n\n## Part\n\nMore.\n\n{/* truncate */}\n\nLast.\n"
    )
    write(tmp_path / "blog/2021/01/02/named.md", text)
    write(tmp_path / "blog/2021-01-02-untitled.md", "Text.\n\n# Part\n\n## Part\n")
    write(tmp_path / "blog/ruled.md", "---\n---\n\n***\n\n# Part\n\n## Part\n")
    source = Source(name="blog", folder=tmp_path / "blog", prefix="blog/", kind=SourceKind.BLOG)
    parsed = {
        doc.doc_id: parse_doc(doc, SITE)
        for doc in discover_docs(tmp_path / "docs", sources=(source,)).docs
    }
    post = parsed[DocId("blog/2021/01/02/named.md")]
    assert [heading.anchor for heading in post.document.headings] == [None, "part"]
    assert "truncate" not in " ".join(block.text for block in post.blocks)
    assert (post.document.title, post.document.module) == ("Part", "")
    assert post.document.edition.is_post
    ruled = parsed[DocId("blog/ruled.md")].document
    assert [heading.anchor for heading in ruled.headings] == [None, "part-1"]
    untitled = parsed[DocId("blog/2021-01-02-untitled.md")].document
    assert [heading.anchor for heading in untitled.headings] == [None, "part"]


BUILT_POSTS = {
    "Text.\n\n# Part\n\n## Part\n": [None, "part"],
    "***\n\n# Part\n\n## Part\n": [None, "part-1"],
    "## Part\n\n# Part\n\n## Part\n": ["part", None, "part-2"],
    ":::note\n\n# Part\n\n:::\n\n## Part\n": [None, "part"],
    "---\ntitle: Own\n---\n\n# Part\n\n## Part\n": [None, "part"],
    "Part\n====\n\n## Part\n": [None, "part"],
    "<h1>Part</h1>\n\n# Part\n\n## Part\n": [None, None, "part"],
}
"""Texts of blog posts, with the heading ids of a build with Docusaurus 3.10.2."""


def test_the_headings_of_posts_have_the_ids_of_a_real_build(tmp_path: Path) -> None:
    names = {f"blog/{number}.md": text for number, text in enumerate(BUILT_POSTS)}
    for name, text in names.items():
        write(tmp_path / name, text)
    source = Source(name="blog", folder=tmp_path / "blog", prefix="blog/", kind=SourceKind.BLOG)
    for doc in discover_docs(tmp_path / "docs", sources=(source,)).docs:
        headings = parse_doc(doc, SITE).document.headings
        assert [heading.anchor for heading in headings] == BUILT_POSTS[names[doc.doc_id]]


def test_a_source_can_keep_the_numbers_of_names_in_addresses(tmp_path: Path) -> None:
    write(tmp_path / "api" / "01-a" / "02-b.md")
    api = Source(name="api", folder=tmp_path / "api", prefix="api/", number_prefixes=False)
    assert read_urls(tmp_path, api) == {"api/01-a/02-b.md": "/m/01-a/02-b"}
    stripped = replace(api, number_prefixes=True)
    assert read_urls(tmp_path, stripped) == {"api/01-a/02-b.md": "/m/a/b"}
