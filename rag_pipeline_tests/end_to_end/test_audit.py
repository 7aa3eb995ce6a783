"""An audit finds what disagrees in the collection in use; a repair mends it and loses nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.cli.terminal import show_audit
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import ChunkLimits
from rag_pipeline.core.vectors import Point, SparseVector
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.upkeep.audit import WRONG_MODEL, AuditFinding, AuditReport
from rag_pipeline.ingestion.upkeep.repair import audit_index, repair_index
from rag_pipeline_tests.book import LIMITS, Book, assert_same_state, make_book
from rag_pipeline_tests.end_to_end.kill_points import EDITED, UNKNOWN, damage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline_tests.end_to_end.command import Command, Outcome


@pytest.fixture(params=["edge", "memory"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Book:
    """A book that is indexed, in either kind of store."""
    book = make_book(tmp_path / "book", memory=request.param == "memory")
    book.ingest()
    return book


def audit(book: Book) -> list[tuple[str, str]]:
    report = audit_index(book.build_context())
    return [(finding.kind, finding.doc_path) for finding in report.findings]


def repair(book: Book) -> AuditReport:
    context = book.build_context()
    found = audit_index(context)
    return repair_index(context, found, lambda asked: book.ingest(asked, context))


def test_a_sound_collection_has_no_findings_and_a_repair_writes_nothing(book: Book) -> None:
    before = book.read_payloads()
    report = repair(book)
    assert (report.findings, report.doc_count, report.point_count) == ((), 3, 9)
    assert book.read_payloads() == before


def test_every_kind_of_damage_is_found_and_mended(book: Book, tmp_path: Path) -> None:
    damage(book)
    assert Counter(audit(book)) == Counter(
        {
            ("missing", EDITED): 1,
            ("wrong_payload", EDITED): 1,
            ("wrong_vector", EDITED): 1,
            ("wrong_terms", EDITED): 1,
            ("stray", UNKNOWN): 1,
            ("stray", "ghost.md"): 1,
        }
    )
    assert repair(book).findings == ()
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())
    assert book.ingest().docs_processed == 0


def test_terms_that_are_not_the_texts_are_found_and_mended(book: Book) -> None:
    store = book.build_context().services.catalog.open_current()
    point = next(point for point in store.scroll(with_vectors=True) if point.sparse)
    assert point.vectors is not None
    store.upsert([Point(point.point_id, point.vectors, SparseVector((1,), (1.0,)), point.payload)])
    store.close()
    assert audit(book) == [("wrong_terms", point.payload["doc_path"])]
    assert repair(book).findings == ()
    assert point.sparse in [again.sparse for again in book.read_points()]


def test_a_page_that_the_ledger_lost_and_that_fails_now_keeps_its_points(book: Book) -> None:
    book.open_ledger(str(book.build_context().services.catalog.current_id())).forget(DocId(UNKNOWN))
    book.write(UNKNOWN, "---\ntitle: [\n---\n")
    before = book.read_state()
    assert [finding.kind for finding in repair(book).findings] == ["stray"]
    assert_same_state(book.read_state(), before)


def test_a_page_that_is_gone_is_removed_by_a_repair(book: Book, tmp_path: Path) -> None:
    damage(book)
    (book.docs / EDITED).unlink()
    assert repair(book).findings == ()
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())


def test_a_collection_that_was_rolled_back_to_is_as_it_was(book: Book) -> None:
    before = book.read_state()
    book.limits = ChunkLimits(30, 60, 120, 0)
    book.ingest(IngestionRequest(rebuild=True))
    assert audit(book) == []
    book.build_context().services.catalog.roll_back()
    book.limits = LIMITS
    assert audit(book) == []
    assert book.ingest().docs_unchanged == 3
    assert_same_state(book.read_state(), before)


def test_a_collection_without_a_document_that_the_ledger_knows_is_all_stray(book: Book) -> None:
    collection_id = str(book.build_context().services.catalog.current_id())
    book.forget(collection_id)
    assert Counter(kind for kind, _ in audit(book)) == {"stray": 9}
    assert repair(book).findings == ()
    assert len(book.read_points()) == 9


def test_what_a_repair_cannot_mend_is_said_to_take_a_rebuild() -> None:
    of_other_model = AuditFinding(WRONG_MODEL, "intro.md", "", "made by another model")
    stray = AuditFinding("stray", "gone.md", "", "no document")
    for findings, rebuild in (((stray,), False), ((stray, of_other_model), True)):
        shown = show_audit(AuditReport("book", 2, 9, findings), repaired=False)
        assert ("ingest --rebuild" in shown) is rebuild


def test_documents_are_audited_a_page_at_a_time(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(book)
    whole = audit(book)
    monkeypatch.setattr("rag_pipeline.ingestion.upkeep.audit._PAGE_DOCS", 1)
    assert audit(book) == whole


def test_the_command_finds_what_was_altered_and_mends_it(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert call("audit").code == 1  # nothing is there yet
    collection_id = call("ingest", "--json").json["collection_id"]
    assert call("audit", "--json").json["finding_count"] == 0
    (root,) = (command.root / "data").glob("*/store/textbook_chunks")
    store = EdgeCatalog(root, "textbook_chunks", 1.0).open(collection_id)
    store.delete([store.scroll()[0].point_id])
    store.close()
    found = call("audit")
    assert (found.code, found.out.count("has no point")) == (1, 1)
    assert "audit --repair" in found.out
    mended = call("audit", "--repair", "--json")
    assert (mended.code, mended.json["repaired"]) == (0, True)
    assert call("audit", "--json").json["findings"] == []
