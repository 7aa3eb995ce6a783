"""Tests of the code location as a whole: loading, asset graph, jobs, sensors and schedules."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import dagster as dg

from rag_pipeline.definitions import build_defs, defs
from rag_pipeline.orchestration.resources import IngestionResource

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_pipeline.ingestion.context import IngestionContext

INGESTION_GRAPH = {
    "discovered_docs": [],
    "parsed_docs": ["discovered_docs"],
    "chunks": ["parsed_docs"],
    "embeddings": ["chunks"],
    "qdrant_points": ["embeddings"],
    "book_index": ["qdrant_points"],
}


def test_the_definitions_load() -> None:
    dg.Definitions.validate_loadable(defs)
    dg.Definitions.validate_loadable(build_defs())


def test_the_asset_graph_has_the_agreed_assets_and_dependencies() -> None:
    graph = defs.resolve_asset_graph()
    nodes = {key.to_user_string(): graph.get(key) for key in graph.get_all_asset_keys()}
    ingestion = {
        name: sorted(parent.to_user_string() for parent in node.parent_keys)
        for name, node in nodes.items()
        if node.group_name == "ingestion"
    }
    assert ingestion == INGESTION_GRAPH
    assert nodes["book_index"].partitions_def is None
    for name in set(INGESTION_GRAPH) - {"book_index"}:
        node = nodes[name]
        assert isinstance(node.partitions_def, dg.DynamicPartitionsDefinition)
        assert node.partitions_def.name == "docs"
        assert node.backfill_policy == dg.BackfillPolicy.single_run()
        assert node.description
    other_assets = set(nodes) - set(INGESTION_GRAPH)
    assert other_assets == {"retrieval_evaluation", "answer_feedback", "unanswered_questions"}
    assert nodes["retrieval_evaluation"].partitions_def is None


def test_jobs_sensors_and_schedules_have_the_agreed_names_and_times() -> None:
    repository = defs.get_repository_def()
    assert {job.name for job in repository.get_all_jobs()} >= {
        "ingest",
        "audit",
        "evaluate",
        "feedback",
    }
    sensors = {one.name: one for one in repository.sensor_defs}
    sensor = sensors.pop("docs_changes")
    # Automation conditions have an effect only after a person has switched this sensor on.
    (automation,) = sensors.values()
    assert automation.name == "daily_evaluation"
    assert automation.default_status is dg.DefaultSensorStatus.STOPPED
    assert (sensor.name, sensor.minimum_interval_seconds) == ("docs_changes", 30)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    schedules = {one.name: (one.job_name, one.cron_schedule) for one in repository.schedule_defs}
    assert schedules == {
        "nightly_reconciliation": ("ingest", "0 3 * * *"),
        "nightly_audit": ("audit", "30 3 * * *"),
        "daily_feedback": ("feedback", "0 5 * * *"),
    }
    running = {one.default_status for one in repository.schedule_defs}
    assert running == {dg.DefaultScheduleStatus.RUNNING}


def test_resources_and_their_fields_have_types_and_descriptions() -> None:
    resources = defs.resources or {}
    assert set(resources) == {"ingestion", "evaluation", "question_log"}
    for resource in resources.values():
        assert isinstance(resource, dg.ConfigurableResource)
        assert resource.__doc__
        for name, field in type(resource).model_fields.items():
            assert field.description, name


def test_a_resource_works_on_the_docs_folder_of_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_BASE_URL", "https://example.org/")
    for name in ("first", "second"):
        resource = IngestionResource(docs_dir=str(tmp_path / name))
        ingestion = resource.create_resource(dg.build_init_resource_context())
        assert ingestion.context.settings.docs_dir == tmp_path / name


def test_a_change_of_settings_or_links_reaches_a_sensor_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_BASE_URL", "https://example.org/")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    docs = tmp_path / "docs"
    docs.symlink_to("old")
    found = [_open(docs), _open(docs)]
    monkeypatch.setenv("CHUNK_TARGET_TOKENS", "300")
    found += [_open(docs), _open(docs)]
    assert found[-1].settings.chunk_target_tokens == 300
    docs.unlink()
    docs.symlink_to("new")
    found += [_open(docs), _open(docs)]
    # Services stay open as long as nothing changes.
    assert [len({id(one) for one in found[:count]}) for count in (2, 4, 6)] == [1, 2, 3]


def _open(docs: Path) -> IngestionContext:
    resource = IngestionResource(docs_dir=str(docs))
    return resource.create_resource(dg.build_init_resource_context()).context


def test_loading_reads_no_settings_and_imports_only_what_an_ingestion_needs(tmp_path: Path) -> None:
    code = """
import sys
import rag_pipeline.definitions
heavy = {
    "qdrant_client", "onnxruntime", "openai", "cohere", "fastembed", "scipy",
    "fastapi", "dagster_webserver", "dagster_graphql", "rag_pipeline.answering",
    "rag_pipeline.retrieval", "rag_pipeline.serving", "rag_pipeline.evaluation.book",
}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"EMBEDDING_PROVIDER": "no such thing", "PATH": "", "HOME": str(tmp_path)},
    )
    assert done.stdout == "[]\n"
    assert list(tmp_path.iterdir()) == []
