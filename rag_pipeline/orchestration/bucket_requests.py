"""The runs that the coordinator requests for buckets, with the tags that the run queue limits."""

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.orchestration.buckets import make_config
from rag_pipeline.orchestration.jobs import BUCKETS_JOB
from rag_pipeline.orchestration.waits import REQUEST_TAG

BUCKET_TAG: Final = "rag_pipeline/bucket"
"""Run tag: the bucket that the run indexes. The run queue starts one run per value."""

PLANNED_DOCS_TAG: Final = "rag_pipeline/planned_docs"
"""Run tag: number of documents that the run indexes according to the plan."""


def request_run(work: BucketWork) -> dg.RunRequest:
    """Return the request of a run for the work of one bucket."""
    (bucket,) = work.buckets
    return dg.RunRequest(
        job_name=BUCKETS_JOB.name,
        partition_key=f"{bucket:03}",
        run_config=make_run_config(work),
        tags=make_tags(work),
    )


def make_run_config(work: BucketWork) -> dict[str, Any]:
    """Return the run config of a run for the work of one bucket."""
    return {"ops": {"bucket_ingestion": {"config": make_config(work)}}}


def make_tags(work: BucketWork) -> dict[str, str]:
    """Return the tags of a run for the work of one bucket."""
    (bucket,) = work.buckets
    return {
        BUCKET_TAG: f"{bucket:03}",
        PLANNED_DOCS_TAG: str(work.doc_count),
        REQUEST_TAG: digest_work(work),
    }


def digest_work(work: BucketWork) -> str:
    """Return 16 hex digits that identify a plan, so that its failed runs are counted."""
    return hashlib.sha256(repr(work).encode()).hexdigest()[:16]


def find_busy_buckets(runs: Iterable[dg.DagsterRun]) -> frozenset[int]:
    """Return the buckets of some bucket runs."""
    keys = (run.tags.get(PARTITION_NAME_TAG) for run in runs)
    return frozenset(int(key) for key in keys if key)
