"""Tests of the five ingestion assets: partitions, failures, asset subsets, metadata and checks."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from rag_pipeline.core.errors import PlanOutdatedError
from rag_pipeline.core.models import Stage
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.ingestion.planning import hash_plan, scan_docs
from rag_pipeline.orchestration.checks import DOCUMENT_CHECK
from rag_pipeline.orchestration.dead_runs import PROCESS_TAG, name_process
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import BOOK_INDEX, find_newest
from rag_pipeline_tests.book import PAGES
from rag_pipeline_tests.orchestration.dagster_book import STAGES

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import PointStore
    from rag_pipeline.core.vectors import Point
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

BROKEN = "---\ntitle: [\n---\n"
LARGE = "module-1/large.md"


@pytest.mark.parametrize("partition", [None, LARGE])
def test_a_successful_run_ends_without_a_note_about_missing_outputs(
    dagster_book: DagsterBook, partition: str | None
) -> None:
    assert dagster_book.run().success
    again = dagster_book.run(partition=partition)
    assert again.success
    lines = [
        entry.user_message
        for run in dagster_book.instance.get_runs()
        for entry in dagster_book.instance.all_logs(run.run_id)
    ]
    assert lines
    assert not [line for line in lines if "expected outputs" in line]


def test_a_run_without_config_indexes_everything_that_changed(dagster_book: DagsterBook) -> None:
    assert dagster_book.run().success
    assert dagster_book.partitions == set(PAGES)
    for stage in STAGES:
        assert dagster_book.statuses(stage) == dict.fromkeys(PAGES, "MATERIALIZED")
    assert len(dagster_book.book.read_points()) == 9
    assert dagster_book.run().success
    assert all(len(dagster_book.events(stage, LARGE)) == 1 for stage in STAGES)


def test_only_the_bad_document_of_a_run_fails(dagster_book: DagsterBook) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    result = dagster_book.run()
    assert not result.success
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert "1 document(s) failed; all other documents are indexed" in str(failure.step_failure_data)
    assert dagster_book.partitions == {*PAGES, "broken.md"}
    states = dict.fromkeys(PAGES, "MATERIALIZED")
    assert dagster_book.statuses("discovered_docs") == states | {"broken.md": "MATERIALIZED"}
    for stage in STAGES[1:]:
        assert dagster_book.statuses(stage) == states | {"broken.md": "FAILED"}
    dagster_book.book.write("broken.md", "---\ntitle: Whole\n---\n\nText.\n")
    assert dagster_book.run().success
    assert dagster_book.statuses("qdrant_points")["broken.md"] == "MATERIALIZED"


def test_a_run_of_one_partition_indexes_one_document(dagster_book: DagsterBook) -> None:
    dagster_book.add_partitions(*PAGES)
    assert dagster_book.run(partition=LARGE).success
    assert dagster_book.statuses("qdrant_points") == {LARGE: "MATERIALIZED"}
    paths = {payload["doc_path"] for payload in dagster_book.book.read_payloads().values()}
    assert paths == {LARGE}


def test_in_a_partition_range_only_the_bad_document_is_marked_as_failed(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    dagster_book.add_partitions("intro.md", "broken.md", LARGE)
    assert not dagster_book.run(partition_range=("intro.md", LARGE)).success
    statuses = dagster_book.statuses("qdrant_points")
    assert statuses == {"intro.md": "MATERIALIZED", "broken.md": "FAILED", LARGE: "MATERIALIZED"}


def test_the_run_config_names_documents_to_index_and_to_remove(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    (dagster_book.book.docs / LARGE).unlink()
    assert dagster_book.run(config={"doc_ids": ["intro.md"]}).success
    assert len(dagster_book.book.read_points()) == 9
    config = {"doc_ids": [], "delete_ids": [LARGE, "intro.md"]}
    assert dagster_book.run(config=config).success
    assert dagster_book.partitions == {"intro.md", "module-1/small page.md"}
    assert len(dagster_book.book.read_points()) == 3


@pytest.mark.parametrize(
    ("config", "rejected"),
    [
        ({"doc_ids": ["intro.md"], "rebuild": True}, "rebuild: does not work with doc_ids"),
        ({"doc_ids": [], "reread": True}, "reread: does not work with doc_ids"),
        ({"delete_ids": ["intro.md"]}, "delete_ids: does not work without doc_ids"),
        ({"rewrite": True, "rebuild": True}, "rewrite: does not work without doc_ids"),
    ],
)
def test_a_run_config_whose_fields_do_not_work_together_is_rejected(
    dagster_book: DagsterBook, config: dict[str, Any], rejected: str
) -> None:
    result = dagster_book.run(config=config)
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert rejected in str(failure.step_failure_data)
    assert dagster_book.resource.context.services.catalog.current_id() is None


def test_each_field_of_the_run_config_has_a_description_in_the_ui(
    dagster_book: DagsterBook,
) -> None:
    job = dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    fields = job.get_node_named("ingestion").definition.config_field.config_type.fields
    assert set(fields) == {"doc_ids", "delete_ids", "plan", "rewrite", "rebuild", "reread"}
    assert all(field.description and field.description.endswith(".") for field in fields.values())


def test_a_data_version_changes_only_if_the_output_of_its_stage_changes(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()

    def versions() -> dict[str, str]:
        return {
            stage: (dagster_book.events(stage, LARGE)[0].tags or {})["dagster/data_version"]
            for stage in STAGES
        }

    first = versions()
    assert len(set(first.values())) == 5
    dagster_book.run(config={"doc_ids": [LARGE]})
    assert versions() == first
    dagster_book.book.edit(LARGE, "description: About Large.", "description: Else.")
    dagster_book.run()
    moved = {stage for stage, version in versions().items() if version != first[stage]}
    assert moved == {"discovered_docs", "parsed_docs", "chunks", "qdrant_points"}


def test_the_metadata_of_each_stage_contains_counts(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    metadata = {stage: dagster_book.events(stage, LARGE)[0].metadata for stage in STAGES}
    assert metadata["discovered_docs"]["size_bytes"].value > 500
    assert metadata["parsed_docs"]["title"].value == "Large"
    assert metadata["parsed_docs"]["heading_count"].value == 3
    assert metadata["chunks"]["chunk_count"].value == 6
    assert metadata["embeddings"]["texts_embedded"].value == 6
    assert metadata["embeddings"]["tokens_embedded"].value > 200
    assert metadata["embeddings"]["cost_usd"].value > 0
    assert metadata["qdrant_points"]["chunks_created"].value == 6
    total = sum(
        dagster_book.events("embeddings", doc)[0].metadata["requests"].value
        for doc in PAGES
        if "requests" in dagster_book.events("embeddings", doc)[0].metadata
    )
    assert total == 1


def test_the_metadata_of_an_edit_shows_how_many_embeddings_were_reused(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    dagster_book.book.edit(LARGE, "## Two", "## Duo")
    dagster_book.run()
    embeddings = dagster_book.events("embeddings", LARGE)[0].metadata
    assert embeddings["texts_embedded"].value == 1
    assert embeddings["embeddings_reused"].value == 5
    assert embeddings["tokens_reused"].value > embeddings["tokens_embedded"].value
    points = dagster_book.events("qdrant_points", LARGE)[0].metadata
    assert (points["chunks_updated"].value, points["chunks_unchanged"].value) == (1, 5)


def test_a_run_has_the_name_of_its_process_as_a_tag(dagster_book: DagsterBook) -> None:
    run_id = dagster_book.run().run_id
    run = dagster_book.instance.get_run_by_id(run_id)
    assert run is not None
    assert run.tags[PROCESS_TAG] == name_process()
    ledger = dagster_book.book.open_ledger(dagster_book.book.catalog.current_id() or "")
    assert {entry.run_id for entry in ledger.entries().values()} == {run_id}


def read_summaries(dagster_book: DagsterBook) -> list[dg.AssetMaterialization]:
    records = dagster_book.instance.fetch_materializations(dg.AssetKey(BOOK_INDEX), limit=20)
    return [it.asset_materialization for it in records.records if it.asset_materialization]


def test_each_change_of_the_index_is_summarized_with_numbers_and_a_report(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    dagster_book.run()
    (summary,) = read_summaries(dagster_book)
    assert (summary.metadata["docs_processed"].value, summary.metadata["docs_failed"].value) == (
        3,
        1,
    )
    report = summary.metadata["report"]
    assert isinstance(report, dg.MarkdownMetadataValue)
    assert "broken.md" in str(report.value)
    (dagster_book.book.docs / "broken.md").unlink()
    dagster_book.run()
    dagster_book.run()  # has nothing to do
    assert len(read_summaries(dagster_book)) == 2


def test_a_book_above_the_limit_has_only_the_summary(dagster_book: DagsterBook) -> None:
    settings = dagster_book.resource.context.settings.model_copy(update={"doc_partitions_limit": 2})
    context = replace(dagster_book.resource.context, settings=settings)
    vars(dagster_book.resource)["context"] = context
    dagster_book.add_partitions("intro.md")
    assert dagster_book.run().success
    assert dagster_book.partitions == set()
    assert dagster_book.events("qdrant_points", "intro.md") == []
    assert len(read_summaries(dagster_book)) == 1


def test_a_run_for_other_documents_than_planned_changes_nothing(dagster_book: DagsterBook) -> None:
    context = dagster_book.resource.context
    docs = scan_docs(context).discovery.docs[:1]
    config: dict[str, Any] = {"doc_ids": [docs[0].doc_id]}
    assert dagster_book.run(config=config).success
    collection_id = context.services.catalog.current_id() or ""
    plan = hash_plan(context, collection_id, docs)
    assert dagster_book.run(config=config | {"plan": plan}).success
    dagster_book.book.edit(docs[0].doc_id, "title: ", "title: Other ")
    result = dagster_book.run(config=config | {"plan": plan})
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert PlanOutdatedError.__name__ in str(failure.step_failure_data)
    assert len(scan_docs(context).process) == len(PAGES)


def test_a_document_with_special_characters_can_be_run_by_its_partition(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("odd, [a]...md", PAGES["intro.md"])
    assert dagster_book.run().success
    (key,) = dagster_book.partitions - set(PAGES)
    assert dagster_book.run(partition=key).success
    assert dagster_book.statuses("qdrant_points")[key] == "MATERIALIZED"


def test_a_page_deleted_before_a_rebuild_loses_its_partition(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    (dagster_book.book.docs / LARGE).unlink()
    assert dagster_book.run(config={"rebuild": True}).success
    assert dagster_book.partitions == {*PAGES} - {LARGE}


def test_a_page_deleted_between_request_and_run_loses_its_partition(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    dagster_book.add_partitions("new.md", "no document id/../x.md")
    assert not dagster_book.run(config={"doc_ids": ["new.md"]}).success
    assert dagster_book.partitions == {*PAGES}


def test_a_page_in_an_unreadable_folder_keeps_its_partition(dagster_book: DagsterBook) -> None:
    book = dagster_book.book
    book.write("linked/page.md", PAGES["intro.md"])
    dagster_book.run()
    (book.docs / "linked").rename(book.root / "away")
    (book.docs / "linked").symlink_to("linked")
    assert not dagster_book.run().success
    assert dagster_book.partitions == {*PAGES, "linked/page.md"}


@pytest.mark.parametrize("partition", ["gone.md", "../x.md"])
def test_a_partition_without_a_document_fails(dagster_book: DagsterBook, partition: str) -> None:
    dagster_book.add_partitions(partition)
    assert not dagster_book.run(partition=partition).success


class LosingStore:
    """A store that loses the first point of each write of exactly six points."""

    def __init__(self, store: PointStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # the type of the wrapped store's attribute
        """Return the attribute of the wrapped store."""
        return getattr(self._store, name)

    def upsert(self, points: list[Point]) -> None:
        """Write the points, without the first one if there are six."""
        self._store.upsert(points[1:] if len(points) == 6 else points)


def test_a_rebuild_of_unchanged_documents_records_no_output_and_no_verdict_again(
    dagster_book: DagsterBook,
) -> None:
    per_document = len(STAGES) + 1
    assert dagster_book.run().success
    assert dagster_book.count_events() == per_document * len(PAGES)
    for _ in range(2):  # a run without changes keeps the verdicts
        assert dagster_book.read_verdicts(*PAGES) == dict.fromkeys(PAGES, "SUCCEEDED")
        assert dagster_book.run().success
    assert dagster_book.run(config={"rebuild": True}).success
    assert dagster_book.count_events() == 0
    dagster_book.book.edit("intro.md", "## Start", "## Begin")
    assert dagster_book.run(config={"rebuild": True}).success
    assert dagster_book.count_events() == per_document
    assert dagster_book.run(partition="intro.md").success
    assert dagster_book.count_events() == per_document  # its page lists what was selected
    assert dagster_book.read_verdicts(*PAGES) == dict.fromkeys(PAGES, "SUCCEEDED")


def test_verdicts_that_a_killed_run_did_not_record_are_found_out_by_the_next_run(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    for change in (("## Start", "## Begin"), ("## Begin", "## Start")):
        record = find_newest(dagster_book.instance, Stage.POINTS, [LARGE])[LARGE]
        assert record.asset_materialization
        dagster_book.instance.report_runless_asset_event(record.asset_materialization)
        assert dagster_book.read_verdicts(*PAGES).keys() == PAGES.keys() - {LARGE}
        dagster_book.book.edit("intro.md", *change)
        dagster_book.run()
        verdicts = dagster_book.read_verdicts(*PAGES)
        assert verdicts == dict.fromkeys(PAGES, "SUCCEEDED")


def test_the_checks_run_alone_and_find_a_point_that_was_lost_later(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    with closing(dagster_book.book.catalog.open_current()) as store:
        points = store.scroll(PointFilter.any_of(doc_path=(LARGE,)))
        store.delete([points[0].point_id])
    for tags, failing in (({"dagster/partition": "intro.md"}, set()), ({}, {LARGE})):
        job = dagster_book.definitions.resolve_implicit_global_asset_job_def()
        key = dg.AssetCheckKey(dg.AssetKey("qdrant_points"), DOCUMENT_CHECK)
        subset = job.get_subset(asset_check_selection={key}, asset_selection=set())
        result = subset.execute_in_process(instance=dagster_book.instance, tags=tags)
        assert result.success
        verdicts = dagster_book.read_verdicts(*PAGES)
        assert {name for name, verdict in verdicts.items() if verdict == "FAILED"} == failing
    assert dagster_book.run(partition=LARGE).success
    assert dagster_book.run(config={"doc_ids": [LARGE]}).success
    verdicts = dagster_book.read_verdicts(*PAGES)
    assert verdicts == dict.fromkeys(PAGES, "SUCCEEDED")


def test_a_point_that_the_store_lost_fails_the_check_of_its_document_until_it_is_repaired(
    dagster_book: DagsterBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = dagster_book.resource.context.services.catalog
    opened = catalog.open
    with monkeypatch.context() as patched:
        patched.setattr(catalog, "open", lambda *arguments: LosingStore(opened(*arguments)))
        result = dagster_book.run()
    assert result.success  # a failed check does not fail the document
    verdicts = dagster_book.read_verdicts(*PAGES)
    assert {name for name, verdict in verdicts.items() if verdict == "FAILED"} == {LARGE}
    logged = dagster_book.instance.all_logs(
        result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    )
    events = [entry.dagster_event for entry in logged if entry.dagster_event]
    (fault,) = [it for event in events if not (it := event.asset_check_evaluation_data).passed]
    assert fault.metadata["points_equal_chunks"].value == "1 points missing, 0 stray"
    dagster_book.run(config={"doc_ids": [LARGE], "rewrite": True})
    assert dagster_book.count_events() == 1  # the output is the same
    assert dagster_book.read_verdicts(LARGE) == {LARGE: "SUCCEEDED"}
