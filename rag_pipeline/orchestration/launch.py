"""Starting the ingestion job from a command: in this process, on the instance that the UI shows.

Belongs here: run configuration and partitions of such a run. Does not belong here: what a run does.
"""

from collections.abc import Sequence

import dagster as dg

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_partition_key


def run_ingest_job(
    definitions: dg.Definitions,
    doc_ids: Sequence[str] | None,
    delete_ids: Sequence[str] = (),
    *,
    rewrite: bool = False,
    rebuild: bool = False,
) -> bool:
    """Run the ingestion job to its end on the instance at DAGSTER_HOME.

    Args:
        definitions: The code location.
        doc_ids: Documents to process; None for whatever changed.
        delete_ids: Documents to remove if they are gone.
        rewrite: Write points whole, even those that look unchanged.
        rebuild: Build a new collection and switch to it.

    Returns:
        Whether the run succeeded; failed documents make it fail, though the others landed.
    """
    config = {
        "doc_ids": None if doc_ids is None else list(doc_ids),
        "delete_ids": list(delete_ids),
        "rewrite": rewrite,
        "rebuild": rebuild,
    }
    with dg.DagsterInstance.get() as instance:
        keys = [to_partition_key(parse_doc_id(doc_id)) for doc_id in doc_ids or ()]
        instance.add_dynamic_partitions(str(DOC_PARTITIONS.name), keys)
        result = definitions.resolve_job_def(INGEST_JOB.name).execute_in_process(
            run_config={
                "ops": {"ingestion": {"config": config}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            instance=instance,
            raise_on_error=False,
        )
    return result.success
