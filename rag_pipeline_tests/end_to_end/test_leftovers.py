"""Tests that an ingest without changes deletes the leftovers of killed processes and sweeps."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import locate_cell_lock
from rag_pipeline.adapters.database.sqlite import FileLocks
from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.core.vectors import EmbeddingSpace
    from rag_pipeline_tests.end_to_end.command import Command, Outcome
    from rag_pipeline_tests.loopback import LoopbackServer

BOOK = "textbook_chunks"
CELL = name_cell(BOOK, "0123abcd")


@pytest.fixture
def state(call: Callable[..., Outcome], command: Command) -> Path:
    """The state folder of a book that was ingested and rebuilt."""
    assert call("ingest").code == 0
    assert call("ingest", "--rebuild").code == 0
    (state,) = (command.root / "data").iterdir()
    return state


def list_kept(state: Path) -> set[str]:
    """Return the paths of builds and partial files below the state folder."""
    kinds = (".*.partial", "store/*", "store/*/*")
    paths = {str(path.relative_to(state)) for kind in kinds for path in state.glob(kind)}
    return {path for path in paths if not path.endswith("lock")}


def leave_build(state: Path, collection: str, space: EmbeddingSpace, *, in_use: bool) -> None:
    """Create a build as a killed process leaves it, before or after the switch to it."""
    catalog = EdgeCatalog(state / "store" / collection, collection, 1.0)
    store = catalog.create(space)
    store.close()
    if in_use:
        catalog.switch_to(store.collection_id)


def leave_all(state: Path) -> None:
    """Create every kind of leftover: a build, a sweep cell and a partial file."""
    book = EdgeCatalog(state / "store" / BOOK, BOOK, 1.0)
    with closing(book.open_current()) as store:
        space = store.space
    leave_build(state, BOOK, space, in_use=False)
    leave_build(state, CELL, space, in_use=True)
    half = state / ".half.partial"
    half.write_text("{")
    os.utime(half, (0.0, 0.0))


def test_an_ingest_without_changes_deletes_leftovers_and_keeps_both_collections(
    call: Callable[..., Outcome], state: Path, server: LoopbackServer
) -> None:
    kept = list_kept(state)
    leave_all(state)
    assert len(list_kept(state) - kept) >= 4
    asked = len(server.received)
    report = call("ingest", "--json").json
    assert (report["docs_processed"], report["docs_unchanged"]) == (0, 3)
    assert list_kept(state) == kept
    assert len(server.received) == asked
    assert call("ingest", "--roll-back").code == 0
    assert call("audit", "--json").json["findings"] == []


def test_nothing_is_deleted_while_another_ingest_is_running(
    call: Callable[..., Outcome], state: Path
) -> None:
    leave_all(state)
    before = list_kept(state)
    with FileLocks(state / "locks").hold("book", 0.0):
        assert call("ingest").code == 0
    assert list_kept(state) == before


def test_a_sweep_cell_that_is_being_evaluated_is_kept(
    call: Callable[..., Outcome], command: Command, state: Path
) -> None:
    leave_all(state)
    data_dir = command.root / "data"
    settings = load_settings(docs_dir=command.root / "docs", data_dir=data_dir)
    lock = locate_cell_lock(settings, CELL)
    assert lock.is_relative_to(state)
    with hold_lock(lock, 0.0):
        assert call("ingest").code == 0
        assert (state / "store" / CELL).is_dir()
    assert call("ingest").code == 0
    assert not (state / "store" / CELL).exists()
