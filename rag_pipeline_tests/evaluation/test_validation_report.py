"""The report of a validation as text, as JSON and as the files of the validation plan."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.evaluation.pages import to_markdown, to_text
from rag_pipeline.evaluation.validation import (
    ValidationSuiteReport,
    describe_validation,
    measure_performance,
    write_results,
)
from rag_pipeline.retrieval.service import CollectionStats
from rag_pipeline_tests.evaluation.test_validation import run_reversed, run_sound

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def report() -> ValidationSuiteReport:
    return run_sound()


def measure(report: ValidationSuiteReport, latencies_ms: list[float]) -> dict[str, Any]:
    """Return the performance of a collection of this size for queries with these latencies."""
    stats = {name: report.performance[name] for name in CollectionStats.__annotations__}
    others = dict.fromkeys(("first_query_ms", "batch_latency_ms", "stats_latency_ms"), 1.0)
    return measure_performance("2026-01-01", stats, latencies_ms, others)  # type: ignore[arg-type]  # the keys of the class


def test_a_failed_validation_is_shown_in_text_json_and_markdown() -> None:
    report = run_reversed()
    record = json.loads(json.dumps(report.to_json()))
    assert record["passed"] is False
    assert record["finding_count"] == len(record["findings"]) > 0
    assert record["checks"]["rank_order"] == record["finding_count"]
    assert record["probes"][0].keys() >= {"kind", "question", "relevant", "latency_ms", "passed"}
    assert record["success_rate"] < 1
    text = to_text(describe_validation(report))
    assert "Failed" in text
    assert "FAIL  phrase" in text
    assert "## Findings" in to_markdown(describe_validation(report), level=2)


def test_percentiles_are_measured_times(report: ValidationSuiteReport) -> None:
    latencies = [float(number) for number in range(100, 0, -1)]
    found = measure(report, latencies)
    assert (found["latency_ms_p50"], found["latency_ms_p95"], found["latency_ms_p99"]) == (
        50.0,
        95.0,
        99.0,
    )
    assert (found["latency_ms_average"], found["latency_ms_max"]) == (50.5, 100.0)
    assert found["throughput_queries_per_s"] == pytest.approx(1000 / 50.5)
    assert found["query_count"] == 100


def test_a_missed_target_is_shown_but_is_not_a_failure(report: ValidationSuiteReport) -> None:
    slow = replace(report, performance=measure(report, [501.0] * 40))
    targets = slow.performance["targets"]
    assert targets["latency_ms_p95"] == {"highest": 500.0, "met": False}
    assert targets["latency_ms_p99"] == {"highest": 1000.0, "met": True}
    assert re.search(r"501\.0 +500, missed", to_text(describe_validation(slow)))
    assert slow.passed


def test_the_three_result_files_are_written_and_replaced(
    tmp_path: Path, report: ValidationSuiteReport
) -> None:
    paths = write_results(report, tmp_path / "data")
    assert [path.name for path in paths] == [
        "VALIDATION_RESULTS.md",
        "VALIDATION_RESULTS.json",
        "PERFORMANCE_METRICS.json",
    ]
    markdown, results, metrics = (path.read_text("utf-8") for path in paths)
    assert "**Passed**" in markdown
    assert json.loads(results) == json.loads(json.dumps(report.to_json()))
    assert json.loads(results)["performance"] == json.loads(metrics)
    assert json.loads(metrics).keys() >= {
        *("total_vectors", "vector_count", "vector_dimension", "collection_name", "memory_usage"),
        *("latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "throughput_queries_per_s"),
    }
    assert json.loads(metrics)["total_vectors"] == 36
    found = replace(report.found, point_count=7)
    later = write_results(replace(report, found=found), tmp_path / "data")
    assert "7 chunks" in later[0].read_text("utf-8")
    assert len(list((tmp_path / "data").iterdir())) == 3


def test_a_question_cannot_break_out_of_its_table_cell(report: ValidationSuiteReport) -> None:
    probe = replace(report.probes[0], question="a | b\n<img src=x> `c` [d](e)")
    row = next(
        line
        for line in to_markdown(describe_validation(replace(report, probes=(probe,)))).splitlines()
        if "img" in line
    )
    assert r"a \| b &lt;img src=x&gt; \`c\` \[d\](e)" in row
