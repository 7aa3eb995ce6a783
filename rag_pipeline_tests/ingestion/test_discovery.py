"""Tests of the scan of a docs folder: which files it finds, reads and reports as failures."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import DocsFolderError
from rag_pipeline.core.models import DiscoveredDoc, DocFailure
from rag_pipeline.core.site.files import read_site_file
from rag_pipeline.core.sources import Source
from rag_pipeline.ingestion.discovery import Discovery, discover_docs

if TYPE_CHECKING:
    from rag_pipeline.core.ids import DocId


def write(root: Path, *names: str, content: str = "Text.\n") -> None:
    """Write files with the same content."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def names(discovery: Discovery) -> list[str]:
    """Return the ids of the documents that a scan found."""
    return [doc.doc_id for doc in discovery.docs]


def remember(discovery: Discovery) -> dict[DocId, DiscoveredDoc]:
    """Return the documents that a scan found, as known files for the next scan."""
    return {doc.doc_id: doc for doc in discovery.docs}


def test_markdown_files_are_found_and_sorted_by_document_id(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a/z.mdx", "a/b/c.md", "A.md", "\u00e9 x.md")
    write(
        tmp_path, "c.txt", "d.MD", "e.markdown", "f.md.bak", "_g.md", "_h/i.md", "a/__tests__/j.md"
    )
    write(tmp_path, ".hidden.md", ".git/k.md")
    assert names(discover_docs(tmp_path)) == ["A.md", "a/b/c.md", "a/z.mdx", "b.md", "\u00e9 x.md"]


def test_size_time_and_hash_are_those_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (doc,) = discover_docs(tmp_path).docs
    status = (tmp_path / "a.md").stat()
    assert doc.sha256 == hashlib.sha256(b"Text.\n").hexdigest()
    assert (doc.size_bytes, doc.mtime_ns) == (status.st_size, status.st_mtime_ns)


def test_drafts_and_unlisted_pages_are_no_documents(tmp_path: Path) -> None:
    write(tmp_path, "open.md")
    write(tmp_path, "draft.md", content="---\ndraft: true\n---\n")
    write(tmp_path, "both.md", content="---\ndraft: true\nunlisted: true\n---\n")
    write(tmp_path, "unlisted.md", content="---\nunlisted: true\n---\n")
    discovery = discover_docs(tmp_path)
    assert names(discovery) == ["open.md"]
    assert [doc.doc_id for doc in discovery.drafts] == ["both.md", "draft.md"]
    assert [doc.doc_id for doc in discovery.unlisted] == ["unlisted.md"]


def test_unlisted_pages_are_documents_if_they_are_wanted(tmp_path: Path) -> None:
    write(tmp_path, "draft.md", content="---\ndraft: true\n---\n")
    write(tmp_path, "unlisted.md", content="---\nunlisted: true\n---\n")
    discovery = discover_docs(tmp_path, with_unlisted=True)
    assert names(discovery) == ["unlisted.md"]
    assert discovery.unlisted == ()


def test_a_folder_of_only_unlisted_pages_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, "unlisted.md", content="---\nunlisted: true\n---\n")
    assert names(discover_docs(tmp_path)) == []


def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.md", "b/c.md")
    write(tmp_path, "draft.md", content="---\ndraft: true\n---\n")
    write(tmp_path, "unlisted.md", content="---\nunlisted: true\n---\n")
    first = discover_docs(tmp_path)
    read: list[str] = []

    def record_and_read(path: Path, root: Path) -> bytes:
        read.append(path.name)
        return read_site_file(path, root)

    monkeypatch.setattr("rag_pipeline.ingestion.discovery.read_site_file", record_and_read)
    assert discover_docs(tmp_path, remember(first)) == first
    assert sorted(read) == ["draft.md", "unlisted.md"]
    write(tmp_path, "a.md", content="Other text.\n")
    second = discover_docs(tmp_path, remember(first))
    assert sorted(read[2:]) == ["a.md", "draft.md", "unlisted.md"]
    assert names(second) == names(first)
    assert second.docs[0].sha256 != first.docs[0].sha256


def test_a_page_that_becomes_a_draft_is_no_longer_found(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    first = discover_docs(tmp_path)
    write(tmp_path, "a.md", content="---\ndraft: true\n---\nText.\n")
    assert names(discover_docs(tmp_path, remember(first))) == ["b.md"]


def test_a_folder_without_pages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocsFolderError, match="contains no"):
        discover_docs(tmp_path)
    write(tmp_path, "_partial.md", "a.txt")
    with pytest.raises(DocsFolderError, match="contains no"):
        discover_docs(tmp_path)
    with pytest.raises(DocsFolderError, match="does not exist"):
        discover_docs(tmp_path / "missing")
    with pytest.raises(DocsFolderError, match="is a file"):
        discover_docs(tmp_path / "a.txt")


def test_links_are_followed_and_loops_are_reported(tmp_path: Path) -> None:
    docs, other = tmp_path / "docs", tmp_path / "other"
    (tmp_path / ".git").mkdir()
    write(docs, "a/b.md")
    write(other, "c.md")
    (docs / "linked").symlink_to(other)
    (docs / "a" / "up").symlink_to(docs)
    (docs / "d.md").symlink_to(other / "c.md")
    discovery = discover_docs(docs)
    assert names(discovery) == ["a/b.md", "d.md", "linked/c.md"]
    assert [(failure.doc_path, failure.error) for failure in discovery.failures] == [
        ("a/up/", "DOCUMENT_UNREADABLE")
    ]
    assert "points to a folder above itself" in discovery.failures[0].message


def test_unreadable_files_are_reported_and_all_others_are_found(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    discovery = discover_docs(tmp_path)
    assert names(discovery) == ["a.md"]
    assert [failure.doc_path for failure in discovery.failures] == ["gone.md", "self.md"]
    for failure in discovery.failures:
        assert "this symbolic link leads to no file. Correct or remove the link" in failure.message
    assert discovery.is_hidden("gone.md")
    assert not discovery.is_hidden("a.md")


@pytest.mark.parametrize("name", ["_part.mdx", ".hidden.md", "_notes", ".venv"])
@pytest.mark.parametrize("target", ["/", "{name}"])
def test_a_bad_link_whose_name_is_never_read_is_ignored(
    tmp_path: Path, name: str, target: str
) -> None:
    write(tmp_path, "a.md")
    (tmp_path / name).symlink_to(target.format(name=name))
    discovery = discover_docs(tmp_path)
    assert (names(discovery), discovery.failures) == (["a.md"], ())


def test_documents_below_an_unreadable_folder_count_as_hidden() -> None:
    failure = DocFailure("b/", "discovery", "DOCUMENT_UNREADABLE", "b/: cannot be read")
    discovery = Discovery((), (failure,))
    assert discovery.is_hidden("b/c.md")
    assert not discovery.is_hidden("bc.md")


def test_documents_below_a_broken_link_count_as_hidden(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.md")
    (tmp_path / "shared").symlink_to("shared")  # the link may have led to a folder or to a file
    discovery = discover_docs(tmp_path)
    assert [failure.doc_path for failure in discovery.failures] == ["shared"]
    assert discovery.is_hidden("shared/deep/c.md")
    assert not discovery.is_hidden("shared.md")


@pytest.mark.parametrize("name", [b"bad\xff.md", b"a\nb.md", b"a\\b.md"])
def test_a_file_name_that_is_not_a_valid_document_id_is_reported(
    tmp_path: Path, name: bytes
) -> None:
    write(tmp_path, "a.md")
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("Text.")  # noqa: PTH118  # bytes
    discovery = discover_docs(tmp_path)
    assert names(discovery) == ["a.md"]
    (failure,) = discovery.failures
    assert failure.error == "DOCUMENT_ID_INVALID"
    shown = failure.doc_path + failure.message
    shown.encode()
    assert len(shown.splitlines()) == 1


def test_a_pipe_named_like_a_page_does_not_block(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    assert names(discover_docs(tmp_path)) == ["a.md"]


def test_folders_may_be_nested_deeply(tmp_path: Path) -> None:
    write(tmp_path, "/".join(["d"] * 300) + "/a.md")
    assert len(discover_docs(tmp_path).docs) == 1


@pytest.mark.slow
def test_ten_thousand_unchanged_files_are_found_again(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"f{folder}").mkdir()
        for file in range(100):
            (tmp_path / f"f{folder}" / f"{file}.md").write_bytes(b"Text.\n")
    known = remember(discover_docs(tmp_path))
    assert len(discover_docs(tmp_path, known).docs) == 10_000


def test_the_patterns_of_a_source_choose_its_files(tmp_path: Path) -> None:
    write(tmp_path, "a/b.md", "a/_c.md", "a/private/d.md", "a/e.mdx", "a/_f/g.md", "a/.h.md")
    patterns = {"include": ("**/*.md",), "exclude": ("**/private/**",)}
    source = Source(name="a", folder=tmp_path / "a", prefix="a/", **patterns)
    found = discover_docs(tmp_path, sources=(source,))
    assert names(found) == ["a/_c.md", "a/_f/g.md", "a/b.md"]
