"""Tests of the audit of the current collection and of its repair."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.cli.terminal import show_audit
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import ChunkLimits, DocFailure
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.rules import WRONG_MODEL, CheckReport, Finding
from rag_pipeline.ingestion.audit import audit_index, repair_index
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import LIMITS, Book, assert_same_state, make_book
from rag_pipeline_tests.end_to_end.kill_points import EDITED, UNKNOWN, damage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline_tests.end_to_end.command import Command, Outcome


@pytest.fixture(params=["edge", "memory"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Book:
    """An indexed book in each kind of store."""
    book = make_book(tmp_path / "book", memory=request.param == "memory")
    book.ingest()
    return book


def audit(book: Book) -> list[tuple[str, str]]:
    """Audit the book; return the kind and the document of each finding."""
    report = audit_index(book.build_context())
    return [(finding.kind, finding.doc_path) for finding in report.findings]


def repair(book: Book) -> CheckReport:
    """Audit and repair the book; return the report of the final audit."""
    context = book.build_context()
    found = audit_index(context)
    return repair_index(context, found, lambda asked: book.ingest(asked, context))


def test_the_repair_of_an_undamaged_collection_writes_nothing(book: Book) -> None:
    before = book.read_payloads()
    report = repair(book)
    assert (report.findings, report.doc_count, report.point_count) == ((), 3, 9)
    assert book.read_payloads() == before


def test_every_kind_of_damage_is_found_and_repaired(book: Book, tmp_path: Path) -> None:
    damage(book)
    assert Counter(audit(book)) == Counter(
        {
            ("missing", EDITED): 1,
            ("wrong_payload", EDITED): 1,
            ("wrong_vector", EDITED): 1,
            ("wrong_terms", EDITED): 1,
            ("stale", UNKNOWN): 1,
            ("stray", "ghost.md"): 1,
        }
    )
    assert repair(book).findings == ()
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())
    assert book.ingest().docs_processed == 0


def test_damage_of_a_page_that_has_changed_since_is_found_by_what_was_indexed(book: Book) -> None:
    book.write(EDITED, "---\ntitle: New\n---\n\nAnother text.\n")
    assert audit(book) == []
    damage(book)
    assert Counter(audit(book)) >= Counter({("missing", EDITED): 1, ("wrong_vector", EDITED): 1})
    assert repair(book).findings == ()
    assert book.ingest().docs_unchanged == 3


def test_a_changed_payload_of_a_page_that_is_gone_is_found(book: Book) -> None:
    with closing(book.build_context().services.catalog.open_current()) as store:
        point = store.scroll(PointFilter.any_of(doc_path=(EDITED,)))[0]
        store.set_payloads({point.point_id: point.payload | {"title": "Altered"}})
    (book.docs / EDITED).unlink()
    assert audit(book) == [("wrong_payload", EDITED)]


def test_a_failing_page_that_the_ledger_does_not_list_keeps_its_points(book: Book) -> None:
    ledger = book.open_ledger(str(book.build_context().services.catalog.current_id()))
    ledger.forget(DocId(UNKNOWN), ledger.entries()[DocId(UNKNOWN)].version)
    book.write(UNKNOWN, "---\ntitle: [\n---\n")
    before = book.read_state()
    assert [finding.kind for finding in repair(book).findings] == ["stale"]
    assert_same_state(book.read_state(), before)


def test_a_repair_deletes_a_page_that_is_gone(book: Book, tmp_path: Path) -> None:
    damage(book)
    (book.docs / EDITED).unlink()
    assert repair(book).findings == ()
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())


def test_a_rollback_restores_the_previous_collection_unchanged(book: Book) -> None:
    before = book.read_state()
    book.limits = ChunkLimits(30, 60, 120, 0)
    book.ingest(IngestionRequest(rebuild=True))
    assert audit(book) == []
    book.build_context().services.catalog.roll_back()
    book.limits = LIMITS
    assert audit(book) == []
    assert book.ingest().docs_unchanged == 3
    assert_same_state(book.read_state(), before)


def test_no_point_is_stray_if_the_database_is_lost(book: Book) -> None:
    collection_id = str(book.build_context().services.catalog.current_id())
    book.forget(collection_id)
    assert Counter(kind for kind, _ in audit(book)) == {"stale": 3}
    assert repair(book).findings == ()
    assert len(book.read_points()) == 9


def test_findings_that_only_a_rebuild_can_repair_are_shown_with_that_advice() -> None:
    wrong_model = Finding(WRONG_MODEL, "intro.md", "", "made by another model")
    stray = Finding("stray", "gone.md", "", "no document")
    for findings, rebuild in (((stray,), False), ((stray, wrong_model), True)):
        shown = show_audit(CheckReport("book", 2, 9, findings))
        assert ("ingest --rebuild" in shown) is rebuild


def test_a_partial_repair_is_shown_with_what_was_repaired_and_what_is_left() -> None:
    repaired = Finding("missing", "intro.md", "00ff", "no point")
    found = Finding("wrong_payload", "large.md", "0abc", "differs in title")
    left = Finding("wrong_payload", "large.md", "0abc", "differs in title, url")
    failure = DocFailure("large.md", "parsed", "FRONT_MATTER", "large.md: broken front matter")
    before, after = CheckReport("book", 2, 9, (repaired, found)), CheckReport("book", 2, 9, (left,))
    assert show_audit(before, after, [failure]).split("\n") == [
        "repaired  missing        intro.md 00ff: no point",
        "left      wrong_payload  large.md 0abc: differs in title, url",
        "2 documents, 9 points: 2 problems found, 1 repaired, 1 left",
        "FAILED large.md: broken front matter",
        "Fix the failed documents, then run `rag-pipeline audit --repair` again.",
    ]
    assert show_audit(before, after).split("\n")[-1] == (
        "The repair could not read or change these documents. Run `rag-pipeline ingest`, which "
        "says why, then `rag-pipeline audit --repair` again."
    )


def test_a_complete_repair_is_shown_with_all_repaired_findings() -> None:
    found = Finding("missing", "intro.md", "00ff", "no point")
    before, after = CheckReport("book", 2, 8, (found,)), CheckReport("book", 2, 9, ())
    assert show_audit(before, after).split("\n") == [
        "repaired  missing        intro.md 00ff: no point",
        "2 documents, 9 points: 1 problems found, 1 repaired, 0 left",
        "All problems were repaired.",
    ]


def test_the_number_of_documents_read_at_once_does_not_change_the_findings(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(book)
    findings = audit(book)
    monkeypatch.setattr("rag_pipeline.ingestion.audit._PAGE_CHUNKS", 1)
    assert audit(book) == findings


def test_the_audit_command_finds_and_repairs_a_missing_point(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert call("audit").code == 1  # there is no collection yet
    collection_id = call("ingest", "--json").json["collection_id"]
    assert call("audit", "--json").json["finding_count"] == 0
    (root,) = (command.root / "data").glob("*/store/textbook_chunks")
    store = EdgeCatalog(root, "textbook_chunks", 1.0).open(collection_id)
    store.delete([store.scroll()[0].point_id])
    store.close()
    found = call("audit")
    assert (found.code, found.out.count("has no point")) == (1, 1)
    assert "audit --repair" in found.out
    repaired = call("audit", "--repair", "--json")
    assert (repaired.code, repaired.json["repaired"]) == (0, True)
    assert (repaired.json["finding_count"], repaired.json["remaining"]) == (1, [])
    assert call("audit", "--json").json["findings"] == []


def test_the_audit_command_says_what_a_repair_could_not_repair(
    call: Callable[..., Outcome], command: Command
) -> None:
    collection_id = call("ingest", "--json").json["collection_id"]
    (root,) = (command.root / "data").glob("*/store/textbook_chunks")
    with closing(EdgeCatalog(root, "textbook_chunks", 1.0).open(collection_id)) as store:
        points = {str(point.payload["doc_path"]): point.point_id for point in store.scroll()}
        store.delete([points[EDITED], points[UNKNOWN]])
    command.book.write(EDITED, "---\ntitle: [\n---\n")
    shown = call("audit", "--repair")
    assert shown.code == 1
    assert [line.split()[:3] for line in shown.out.splitlines()[:2]] == [
        ["repaired", "missing", UNKNOWN.split()[0]],
        ["left", "missing", EDITED],
    ]
    assert "2 problems found, 1 repaired, 1 left" in shown.out
    assert f"FAILED {EDITED}" in shown.out
    assert "rag-pipeline audit --repair" in shown.out
    record = call("audit", "--repair", "--json").json
    assert record["repaired"] is False
    assert [found["doc_path"] for found in record["findings"]] == [EDITED]
    assert record["remaining"] == record["findings"]
    assert [failure["doc_path"] for failure in record["failures"]] == [EDITED]
