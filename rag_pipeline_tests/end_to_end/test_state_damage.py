"""Tests of damaged state: each kind of state file truncated, emptied, overwritten and deleted.

`TABLE` is also the table in docs/reference/state.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from qdrant_client import models

from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.core.errors import StoreDamagedError
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.audit import (
    audit_index,
    recover_current,
    repair_index,
    report_unchanged,
)
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration.instance import prepare_dagster_home
from rag_pipeline_tests.book import Book, assert_same_state, make_book
from rag_pipeline_tests.end_to_end.command import assert_one_line
from rag_pipeline_tests.end_to_end.kill_points import copy_book

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.rules import CheckReport
    from rag_pipeline_tests.end_to_end.command import Command, Outcome
    from rag_pipeline_tests.loopback import LoopbackServer

TRUNCATED, EMPTY, GARBAGE, MISSING = "truncated", "empty", "garbage", "missing"
ANY = frozenset({TRUNCATED, EMPTY, GARBAGE, MISSING})
CHANGED = ANY - {MISSING}
NEVER = frozenset[str]()


@dataclass(frozen=True)
class Row:
    """One kind of state file, and the result of damage to it.

    Attributes:
        file: Pattern of the files below the state folder. All that match are damaged.
        result: The cell of the documentation.
        warned: Kinds of damage after which `ingest` goes on with a warning.
        refused: Kinds of damage after which `ingest` ends with an error that names the repair.
    """

    file: str
    result: str
    warned: frozenset[str] = NEVER
    refused: frozenset[str] = NEVER

    @property
    def is_read(self) -> bool:
        """True for a file that ingestion itself reads."""
        return self.file.split("/")[0] in {"state.sqlite", "store"}


_REBUILT = "`ingest` and queries say that the index is damaged; `audit --repair` builds it again"

TABLE = (
    Row(
        "state.sqlite",
        "a new one is begun; `ingest` compares all documents with the store again; the questions "
        "that the service logged stay in the renamed file",
        CHANGED - {EMPTY},
    ),
    Row("store/*/in-use.json", "`ingest` finds the newest collection again", ANY),
    Row("store/*/*/space.json", _REBUILT, refused=ANY),
    Row("store/*/*/shard/edge_config.json", _REBUILT, refused=CHANGED),
    Row("store/*/*/shard/segments/*/segment.json", _REBUILT, refused=ANY),
    Row("store/*/*/shard/segments/*/mutable_id_tracker.mappings", _REBUILT, refused=ANY),
    Row(
        "store/*/*/shard/segments/*/vector_storage-dense/vectors/chunk_0.mmap",
        "`ingest` notices missing vectors, `audit` also wrong ones; `audit --repair` repairs them",
        refused=frozenset({EMPTY, MISSING}),
    ),
    Row("dagster/event_log.db", "Dagster begins a new history", CHANGED),
    Row("dagster/*/*.db", "Dagster begins a new history", CHANGED),
)


def damage(path: Path, kind: str) -> None:
    """Damage a file."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if kind == GARBAGE:
            file.write(b"\xa5\x00garbage" * max(1, min(size, 80_000) // 8))
        else:
            file.truncate(size // 2 if kind == TRUNCATED else 0)
    if kind == MISSING:
        path.unlink()


def ingest(book: Book) -> None:
    """Ingest the book as the command does."""
    context = book.build_context()
    recover_current(context)
    scan = scan_docs(context)
    if scan.is_up_to_date:
        report_unchanged(context, scan)
    else:
        book.ingest(context=context)


def repair(book: Book) -> CheckReport:
    """Audit and repair the book as `audit --repair` does; return the report of the last audit."""
    context = book.build_context()
    try:
        found = audit_index(context)
    except StoreDamagedError:
        book.ingest(IngestionRequest(rebuild=True), context)
        found = audit_index(context)
    return repair_index(context, found, lambda request: book.ingest(request, context))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of an indexed book, which tests copy."""
    book = make_book(tmp_path_factory.mktemp("indexed"))
    book.ingest()
    return book.root


@pytest.mark.parametrize("kind", sorted(ANY))
@pytest.mark.parametrize("row", [row for row in TABLE if row.is_read], ids=lambda row: row.file)
def test_damage_is_noticed_and_repaired_and_embeds_nothing_again(
    row: Row, kind: str, indexed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = copy_book(indexed, tmp_path / "book")
    before = book.read_state()
    files = book.state.glob(row.file.replace("store/*/", "store/", 1))
    damaged = [path for path in files if path.is_file()]
    assert damaged
    for path in damaged:
        damage(path, kind)
    if kind in row.refused:
        with pytest.raises(StoreDamagedError, match="rag-pipeline audit --repair"):
            ingest(book)
    else:
        ingest(book)
    assert bool(caplog.messages) == (kind in row.warned), caplog.messages
    assert repair(book).findings == ()
    ingest(book)
    assert_same_state(book.read_state(), before)
    assert book.embedder.passages == []


@pytest.mark.parametrize("kind", sorted(CHANGED))
@pytest.mark.parametrize("row", [row for row in TABLE if "dagster" in row.file])
def test_a_damaged_history_of_dagster_is_kept_aside_and_runs_go_on(
    row: Row, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")  # so that pytest restores it after the test
    settings = load_settings(_env_file="", docs_dir=tmp_path / "docs", data_dir=tmp_path / "data")
    home = prepare_dagster_home(settings)
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("pages", ["a"])
    damaged = [path for path in settings.state_dir.glob(row.file) if path.is_file()]
    assert damaged
    for path in damaged:
        for part in ("-wal", "-shm"):
            path.with_name(path.name + part).unlink(missing_ok=True)
        damage(path, kind)
    prepare_dagster_home(settings)
    assert len(list(home.rglob("*.db.damaged-*T??????"))) == len(damaged)
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("pages", ["b"])
        assert "b" in instance.get_dynamic_partitions("pages")
        assert instance.get_runs() == []


def test_the_command_rebuilds_a_damaged_index(
    call: Callable[..., Outcome], command: Command, server: LoopbackServer
) -> None:
    assert call("ingest").code == 0
    sent = len(server.received)
    (path,) = (command.root / "data").glob("*/store/*/*/shard/segments/*/segment.json")
    damage(path, TRUNCATED)
    for arguments in (["ingest"], ["query", "Where is the motor?"], ["audit"]):
        assert_one_line(call(*arguments), 1, "the index is damaged", "audit --repair")
    assert call("audit", "--repair").out.endswith("0 problems found\n")
    (path,) = (command.root / "data").glob("*/state.sqlite")
    damage(path, GARBAGE)
    rebuilt = command.run("ingest", "--rebuild", "--json")  # in this process, pytest logs warnings
    assert (rebuilt.code, rebuilt.json["texts_embedded"]) == (0, 0)
    assert rebuilt.err.startswith("rag-pipeline: warning: the database ")
    assert "state.sqlite.damaged-" in rebuilt.err
    texts = [text for request in server.received[sent:] for text in request.body["input"]]
    assert all(text.endswith("?") for text in texts), texts  # only questions


def test_the_documentation_has_the_same_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "state.md"
    section = page.read_text("utf-8").split("## Damaged files")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(row.file, row.result) for row in TABLE]


def test_a_deleted_alias_is_set_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book = make_book(tmp_path, memory=True)
    book.ingest()
    assert isinstance(book.catalog, QdrantCatalog)
    before = book.catalog.current_id()
    client = book.catalog._connection  # noqa: SLF001  # another program deletes the alias
    client.call(
        lambda qdrant: qdrant.update_collection_aliases(
            change_aliases_operations=[
                models.DeleteAliasOperation(
                    delete_alias=models.DeleteAlias(alias_name=alias.alias_name)
                )
                for alias in qdrant.get_aliases().aliases
            ]
        )
    )
    assert book.catalog.current_id() is None
    assert book.ingest().docs_unchanged == 3
    assert book.catalog.current_id() == before
    assert "alias" in caplog.text
