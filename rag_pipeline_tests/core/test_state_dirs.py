"""Tests of the search for the state folder of a docs folder after moves."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.sqlite import FileLocks, SqliteDatabase
from rag_pipeline.core.errors import CollectionMissingError, ConfigurationError
from rag_pipeline.core.state_dirs import DATABASE_NAME, describe_indexes, find_state_dir
from rag_pipeline_tests.ingestion.records import make_entry


def write_docs(folder: Path, *words: str) -> Path:
    """Write one page for each word."""
    folder.mkdir(parents=True, exist_ok=True)
    for word in words:
        (folder / f"{word}.md").write_text(f"# {word}\n")
    return folder


def open_state(state: Path) -> BookState:
    locks = FileLocks(state / "locks")
    return BookState(SqliteDatabase(state / DATABASE_NAME), "", locks, locks)


def index(docs: Path, data: Path, *, with_record: bool = True) -> Path:
    """Write a state folder as an ingestion does, with only a record and a ledger."""
    state = find_state_dir(docs, data)
    for page in docs.iterdir():
        record(state, page.name, page)
    if with_record:
        open_state(state).record_book("book", docs, data)
    return state


def record(state: Path, doc_id: str, page: Path) -> None:
    """Record a document in the ledger, if it is not there yet."""
    ledger = open_state(state).open_ledger("build")
    if doc_id not in ledger.entries():
        sha256 = hashlib.sha256(page.read_bytes()).hexdigest()
        ledger.record(replace(make_entry(doc_id), sha256=sha256))
    ledger._database.close()  # noqa: SLF001  # a process that ends


@pytest.mark.parametrize("with_record", [True, False])
def test_a_data_folder_moved_with_its_docs_folder_is_found(
    tmp_path: Path, *, with_record: bool
) -> None:
    docs = write_docs(tmp_path / "a/docs", "x")
    state = index(docs, tmp_path / "a/data", with_record=with_record)
    (tmp_path / "a").rename(tmp_path / "b")
    found = find_state_dir(tmp_path / "b/docs", tmp_path / "b/data")
    assert found == tmp_path / "b/data" / state.name


@pytest.mark.parametrize("with_record", [True, False])
def test_a_restored_backup_is_found_at_another_place(tmp_path: Path, *, with_record: bool) -> None:
    docs = write_docs(tmp_path / "docs", "x", "y")
    state = index(docs, tmp_path / "data", with_record=with_record)
    (tmp_path / "deep/er").mkdir(parents=True)
    moved = (tmp_path / "data").rename(tmp_path / "deep/er/data")
    assert find_state_dir(docs, moved) == moved / state.name
    (docs / "x.md").write_text("another text\n")
    assert find_state_dir(docs, moved) == moved / state.name


def test_a_renamed_docs_folder_is_found_by_its_pages(tmp_path: Path) -> None:
    state = index(write_docs(tmp_path / "docs", "x", "y"), tmp_path / "data")
    handbook = (tmp_path / "docs").rename(tmp_path / "handbook")
    assert find_state_dir(handbook, tmp_path / "data") == state
    index(handbook, tmp_path / "data")
    assert find_state_dir(handbook, tmp_path / "data") == state
    newcomer = write_docs(tmp_path / "docs", "bread")
    other = find_state_dir(newcomer, tmp_path / "data")
    assert other != state
    index(newcomer, tmp_path / "data")
    assert find_state_dir(newcomer, tmp_path / "data") == other
    assert find_state_dir(handbook, tmp_path / "data") == state


def test_a_copy_of_a_docs_folder_and_another_book_get_their_own_folders(tmp_path: Path) -> None:
    data = tmp_path / "data"
    books = [
        write_docs(tmp_path / "v1/docs", "x", "y"),
        write_docs(tmp_path / "v2/docs", "x", "y"),
        write_docs(tmp_path / "v3/docs", "bread"),
    ]
    states = [index(docs, data) for docs in books]
    assert len(set(states)) == 3
    assert [find_state_dir(docs, data) for docs in books] == states


def test_the_only_index_is_used_if_the_docs_folder_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    state = index(write_docs(tmp_path / "docs", "x"), data)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_state_dir(Path("docs"), data) == state
    index(write_docs(tmp_path / "bread", "flour"), data)
    missing = find_state_dir(Path("docs"), data)
    assert not missing.exists()
    told = describe_indexes(Path("docs"), data)
    assert str(tmp_path / "docs") in told
    assert str(tmp_path / "bread") in told
    assert "DOCS_DIR" in told


def test_the_error_says_that_there_is_no_data_folder_or_no_index_in_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert describe_indexes(tmp_path, data) == f"DATA_DIR {data} does not exist"
    data.mkdir()
    assert "no other index" in describe_indexes(tmp_path, data)


@pytest.mark.parametrize("below", ["", "data"])
def test_a_file_in_place_of_the_data_folder_is_an_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"DATA_DIR: .*file is not a folder"):
        find_state_dir(tmp_path / "docs", tmp_path / "file" / below)


def test_the_public_message_about_a_missing_folder_names_the_setting_once(tmp_path: Path) -> None:
    others = describe_indexes(tmp_path / "docs", tmp_path / "data")
    message = CollectionMissingError("book", tmp_path / "data", others).public_message
    assert message.endswith("DATA_DIR does not exist")
    assert "DATA_DIR DATA_DIR" not in message


def test_a_site_with_versions_is_found_by_the_documents_of_all_its_folders(tmp_path: Path) -> None:
    site, data = tmp_path / "site", tmp_path / "data"
    docs = write_docs(site / "docs", "x")
    state = index(docs, data)
    for version in ("1", "2"):
        page = write_docs(site / "versioned_docs" / version, version) / f"{version}.md"
        record(state, f"versioned_docs/{version}/{page.name}", page)
    moved = site.rename(tmp_path / "moved")
    assert find_state_dir(moved / "docs", data) == state
