"""Tests of the ingestion plan, which compares the docs folder with the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import ChunkLimits, DocFailure, EmbeddingText, SiteSettings
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace
from rag_pipeline.ingestion.context import compute_pipeline_fingerprint
from rag_pipeline.ingestion.discovery import Discovery
from rag_pipeline.ingestion.planning import compare, leave_moved
from rag_pipeline_tests.ingestion.records import make_discovered, make_entry, make_failure


def plan_one(sha256: str, fingerprint: str, *, failed: bool = False) -> str:
    """Plan for a document that is indexed with hash "a" and fingerprint "f"; return its fate."""
    doc = make_discovered("a.md", sha256)
    entries = {DocId("a.md"): make_entry("a.md")}
    failures = {DocId("a.md"): make_failure("a.md")} if failed else {}
    plan = compare(lambda _: fingerprint, Discovery((doc,), ()), "c", entries, failures)
    assert plan.delete == ()
    assert {*plan.process, *plan.unchanged} == {doc}
    assert plan.is_up_to_date == (plan.process == ())
    return "process" if plan.process else "unchanged"


@pytest.mark.parametrize(
    ("sha256", "fingerprint", "failed", "expected"),
    [
        pytest.param("a", "f", False, "unchanged", id="as_indexed"),
        pytest.param("b", "f", False, "process", id="other_content"),
        pytest.param("a", "g", False, "process", id="other_settings"),
        pytest.param("a", "f", True, "process", id="failed_last"),
    ],
)
def test_a_document_is_processed_unless_its_content_is_indexed_with_these_settings(
    sha256: str, fingerprint: str, *, failed: bool, expected: str
) -> None:
    assert plan_one(sha256, fingerprint, failed=failed) == expected


def test_a_document_with_an_unfinished_change_is_processed() -> None:
    begun = replace(make_entry("a.md"), sha256="", size_bytes=-1)
    doc = make_discovered("a.md")
    plan = compare(lambda _: "f", Discovery((doc,), ()), "c", {begun.doc_id: begun}, {})
    assert plan.process == (doc,)


def test_a_document_that_is_gone_is_deleted_even_if_it_never_got_indexed() -> None:
    entries = {DocId("b.md"): make_entry("b.md"), DocId("a.md"): make_entry("a.md")}
    failures = {DocId("c.md"): make_failure("c.md")}
    plan = compare(lambda _: "f", Discovery((), ()), "c", entries, failures)
    assert plan.delete == ("a.md", "b.md", "c.md")


def test_an_unreadable_document_is_neither_processed_nor_deleted() -> None:
    ids = ["shut/x.md", "shut/deep/y.md", "broken.md", "shutter.md"]
    entries = {DocId(doc_id): make_entry(doc_id) for doc_id in ids}
    unseen = tuple(DocFailure(path, "discovery", "E", "m") for path in ("broken.md", "shut/"))
    plan = compare(lambda _: "f", Discovery((), unseen), "c", entries, {})
    assert plan.process == ()
    assert plan.delete == ("shutter.md",)


names = st.sets(st.sampled_from([f"{letter}.md" for letter in "abcdef"]))


@given(there=names, indexed=names, failed=names)
def test_every_document_is_processed_or_deleted_or_unchanged(
    there: set[str], indexed: set[str], failed: set[str]
) -> None:
    docs = tuple(make_discovered(name) for name in sorted(there))
    entries = {DocId(name): make_entry(name) for name in indexed}
    failures = {DocId(name): make_failure(name) for name in failed}
    plan = compare(lambda _: "f", Discovery(docs, ()), "c", entries, failures)
    fates = [
        {doc.doc_id for doc in plan.process},
        {doc.doc_id for doc in plan.unchanged},
        set(plan.delete),
    ]
    assert sum(len(fate) for fate in fates) == len(set.union(*fates))
    assert set.union(*fates) == there | indexed | failed
    assert set(plan.delete) == (indexed | failed) - there
    assert fates[1] == (there & indexed) - failed


def test_each_setting_that_affects_points_changes_the_fingerprint() -> None:
    model = EmbeddingModel("local", "m", 8, 100, 16)
    space, limits, site = EmbeddingSpace(model, 1), ChunkLimits(), SiteSettings()
    others = [
        (EmbeddingSpace(model, 2), limits, site),
        (EmbeddingSpace(replace(model, model="n"), 1), limits, site),
        (EmbeddingSpace(replace(model, provider="p"), 1), limits, site),
        (EmbeddingSpace(replace(model, dim=9), 1), limits, site),
        (EmbeddingSpace(replace(model, max_input_tokens=99), 1), limits, site),
        (EmbeddingSpace(replace(model, window_words=None), 1), limits, site),
        (space, replace(limits, overlap_tokens=49), site),
        (space, replace(limits, max_tokens=801), site),
        (space, replace(limits, embedding_text=EmbeddingText.TEXT), site),
        (space, limits, replace(site, base_url="/x/")),
        (space, limits, replace(site, trailing_slash=True)),
    ]
    fingerprints = {compute_pipeline_fingerprint(*other) for other in others}
    own = compute_pipeline_fingerprint(space, limits, site)
    assert len(fingerprints - {own}) == len(others)
    assert own == compute_pipeline_fingerprint(EmbeddingSpace(model, 1), ChunkLimits(), site)


def test_a_page_that_moved_is_not_deleted_before_its_new_path_is_indexed() -> None:
    entries = {DocId(f"{name}.md"): make_entry(f"{name}.md", name) for name in "abc"}
    waiting = [make_discovered("new/a.md", "a"), make_discovered("other.md", "x")]
    gone = [DocId("a.md"), DocId("b.md"), DocId("never-indexed.md")]
    assert leave_moved(gone, entries, waiting) == ("b.md", "never-indexed.md")
    assert leave_moved(gone, entries, []) == tuple(gone)
