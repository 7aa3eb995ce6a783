"""Tests of the record of a book: its number of buckets, and the collection that owns its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from upath import UPath

from rag_pipeline.adapters.state.book_record import RecordFile
from rag_pipeline.adapters.state.ledgers import choose_ledgers
from rag_pipeline.adapters.stores.builds import name_book
from rag_pipeline.core.errors import ConfigurationError, StoreLockedError
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.adapters.state.ledgers import Ledgers

    Open = Callable[..., Ledgers]


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.slow)])
def open_book(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Open:
    """Return a function that opens the ledgers as another process with these settings would."""
    if request.param == "postgres":
        engine = request.getfixturevalue("engine")  # one engine, whose connections are closed
        monkeypatch.setattr(
            "rag_pipeline.adapters.state.ledgers.connect_postgres", lambda *_: engine
        )
        place = {"ledger_url": request.getfixturevalue("address")}
    else:
        place = {"state_url": str(tmp_path / "shared")}

    def open_one(**values: object) -> Ledgers:
        folders = {"docs_dir": tmp_path / "docs", "data_dir": tmp_path / "data"}
        settings = load_settings(
            **folders, **place, **{"state_name": "book", "ingest_lock_timeout_s": 0.2} | values
        )
        root = UPath(tmp_path / "shared" / settings.state_name)
        return choose_ledgers(settings, root, name_book(settings.qdrant_collection))

    return open_one


def test_another_number_of_buckets_is_refused_until_a_command_changes_it(open_book: Open) -> None:
    with open_book().lock():
        pass
    other = open_book(bucket_count=64)
    for lock in (other.lock(), other.lock_buckets([1])):
        with (
            pytest.raises(
                ConfigurationError,
                match=r"^BUCKET_COUNT: it is 64 here, but .* 256 b.*`rag-pipeline ingest --rebuck",
            ),
            lock,
        ):
            pass
    with open_book().lock_buckets([1]), pytest.raises(StoreLockedError):
        other.rebucket()
    other.rebucket()
    with other.lock(), pytest.raises(StoreLockedError), open_book().lock(0.0):
        pass
    with pytest.raises(ConfigurationError, match="it is 256 here"), open_book().lock_buckets([1]):
        pass


def test_a_state_that_belongs_to_another_collection_is_refused(open_book: Open) -> None:
    with open_book().lock():
        pass
    other = open_book(qdrant_collection="second_book")
    for act in (other.lock().__enter__, other.rebucket):
        with pytest.raises(
            ConfigurationError, match=r"^STATE_NAME: .*collection textbook_chunks, but QDRANT_COLL"
        ):
            act()
    with open_book(qdrant_collection="second_book", state_name="second").lock():
        pass
    with open_book(qdrant_collection="textbook_chunks-sweep-0123abcd").lock():
        pass
    with open_book().lock():
        pass


def test_a_damaged_record_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for text in ("", "{", '{"bucket_count": 3}', "[]"):
        path.write_text(text)
        assert RecordFile(path).read() is None


def test_state_in_data_dir_may_have_several_collections(tmp_path: Path) -> None:
    held = []
    for name in ("one", "two"):
        settings = load_settings(
            docs_dir=tmp_path / "docs", data_dir=tmp_path / "data", qdrant_collection=name
        )
        with choose_ledgers(settings, tmp_path / "state", name).lock():
            held.append(name)
    assert held == ["one", "two"]
