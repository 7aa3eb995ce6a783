"""Dagster partitions, one per document: their keys, and their state in the Dagster UI.

Dagster accepts any text as a partition key, but its UI and command line give a meaning to some
characters: for example, a comma separates keys, and `...` separates the ends of a range. Such
characters are percent-encoded, and all others stay readable.

A document has a partition if it is indexed (green) or if its last ingestion failed (red).
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import dagster as dg

from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import DocId, parse_doc_id
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols import LedgerEntry
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.ingestion.planning import Scan

DOC_PARTITIONS: Final = dg.DynamicPartitionsDefinition(name="docs")
CODE_VERSION: Final = str(FORMAT_VERSION)
"""The code version of all assets of a document; the UI marks assets of another version."""

BOOK_INDEX: Final = "book_index"
"""Name of the asset that stands for the whole index. It has no partitions."""

_DATA_VERSION: Final = "dagster/data_version"
_CODE_VERSION: Final = "dagster/code_version"
_PAGE: Final = 500  # partitions in one query
_RUNS: Final = 10  # failed runs whose reports are compared with the ledger
_NAME: Final = str(DOC_PARTITIONS.name)
_ENCODED: Final = {"%": "%25", ",": "%2C", "..": "%2E%2E", "|": "%7C", "[": "%5B", "]": "%5D"}
_LATE: Final = {"note": "Recorded later, because the run that indexed the document was killed."}


def to_partition_key(doc_id: str) -> str:
    """Return the partition key of a document id.

    The characters `%`, `,`, `|`, `[`, `]` and two dots in a row are percent-encoded. If the id
    starts or ends with white space, all its spaces are encoded too. Any other id is its own key.
    """
    key = str(doc_id)
    for text, encoded in _ENCODED.items():
        key = key.replace(text, encoded)
    return key.replace(" ", "%20") if key != key.strip() else key


def to_doc_id(partition_key: str) -> DocId:
    """Return the document id of a partition key; the inverse of `to_partition_key`.

    Raises:
        DocumentIdError: The key is not one that `to_partition_key` returns.
    """
    doc_id = parse_doc_id(unquote(partition_key))
    if to_partition_key(doc_id) != partition_key:
        raise DocumentIdError(partition_key, "it is not the partition key of a document")
    return doc_id


def read_selected_keys(run: dg.DagsterRun, instance: dg.DagsterInstance) -> list[str]:
    """Return the partition keys that a run was started for; an empty list if it names none."""
    key = run.tags.get("dagster/partition")
    if key:
        return [key]
    first, last = (run.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    keys = list(instance.get_dynamic_partitions(_NAME))
    if first not in keys or last not in keys:
        return []
    return keys[keys.index(first) : keys.index(last) + 1]


def add_partitions(instance: dg.DagsterInstance, keys: Iterable[str]) -> set[str]:
    """Add the partitions that Dagster does not know yet, and return those that it knew."""
    wanted = set(keys)
    known = wanted.intersection(instance.get_dynamic_partitions(_NAME))
    if known != wanted:
        instance.add_dynamic_partitions(_NAME, sorted(wanted - known))
    return known


def find_newest(
    instance: dg.DagsterInstance, stage: Stage, keys: Collection[str]
) -> dict[str, dg.EventLogRecord]:
    """Return the newest materialization of each partition that has one."""
    newest: dict[str, dg.EventLogRecord] = {}
    wanted = list(keys)
    for start in range(0, len(wanted), _PAGE):
        left, cursor = wanted[start : start + _PAGE], None
        while left:
            chosen = dg.AssetRecordsFilter(dg.AssetKey(stage.value), left)
            found = instance.fetch_materializations(chosen, limit=len(left), cursor=cursor)
            for record in found.records:
                newest.setdefault(str(record.partition_key), record)
            left = [key for key in left if key not in newest] if found.has_more else []
            cursor = found.cursor
    return newest


def read_version(record: dg.EventLogRecord) -> tuple[str | None, str | None]:
    """Return the data version and the code version of a recorded materialization."""
    known = record.asset_materialization
    tags = (known.tags if known else None) or {}
    return tags.get(_DATA_VERSION), tags.get(_CODE_VERSION)


def mark_failed(instance: dg.DagsterInstance, run: dg.DagsterRun, failure: DocFailure) -> None:
    """Log that a document failed in a run, which makes its partitions red from that stage on.

    Dagster shows a partition as failed if a run that failed had planned to materialize it and did
    not. The run's own plan does not name documents, so this function logs such a plan for one
    document. Nothing is logged about a folder that could not be read.
    """
    if not failure.doc_path.endswith((*MARKDOWN_SUFFIXES, ".json", ".yaml", ".yml")):
        return
    key = to_partition_key(failure.doc_path)
    add_partitions(instance, [key])
    stages = [stage.value for stage in Stage]
    for name in stages[stages.index(failure.stage) if failure.stage in stages else 0 :]:
        asset = {"__class__": "AssetKey", "path": [name]}
        planned = {"__class__": "AssetMaterializationPlannedData", "asset_key": asset}
        data: Any = dg.deserialize_value(json.dumps(planned | {"partition": key}))
        event = dg.DagsterEvent(
            event_type_value=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value,
            job_name=run.job_name,
            message=f"{failure.doc_path} failed in {failure.stage}: {failure.message}",
            event_specific_data=data,
        )
        instance.report_dagster_event(event, run.run_id)


def reconcile_partitions(
    instance: dg.DagsterInstance, scan: Scan
) -> tuple[dict[str, DocId], set[str]]:
    """Make the partitions show what the ledger records, after a run was killed.

    A document without an entry or a failure loses its partition. An indexed document becomes green,
    and a failed one red, if they are not. A document cannot become red before any run has failed.

    Args:
        instance: The Dagster instance.
        scan: A scan of all documents against the ledger, which records what is indexed.

    Returns:
        The indexed documents by partition key, and those keys whose last version Dagster did not
        know.
    """
    failed = {
        to_partition_key(doc_id): failure
        for doc_id, failure in scan.failures.items()
        if doc_id not in scan.delete
    }
    indexed = {
        to_partition_key(doc_id): entry
        for doc_id, entry in scan.entries.items()
        if entry.sha256 and doc_id not in scan.failures
    }
    unread = [to_partition_key(one.doc_path) for one in scan.discovery.failures]
    remove_partitions(instance, scan, {*failed, *indexed, *unread})
    add_partitions(instance, [*failed, *indexed])
    runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_RUNS)
    # A document is red, or without a state, in its last stage whenever it is so in another one.
    states = read_states(instance, Stage.POINTS, [*indexed, *failed])
    late = _find_late(instance, indexed, {run.run_id for run in runs})
    late |= {key for key in indexed if states.get(key) not in {"MATERIALIZED", "IN_PROGRESS"}}
    for stage in Stage:
        for key, entry in indexed.items():
            if key in late:
                version = entry.data_version if stage is Stage.POINTS else entry.sha256[:16]
                instance.report_runless_asset_event(materialize(stage, key, version, _LATE))
    left = [it for key, it in failed.items() if states.get(key) not in {"FAILED", "IN_PROGRESS"}]
    for it in left if runs else ():
        mark_failed(instance, runs[0], DocFailure(it.doc_id, it.stage, it.error, it.message))
    return {key: entry.doc_id for key, entry in indexed.items()}, late


def _find_late(
    instance: dg.DagsterInstance, indexed: Mapping[str, LedgerEntry], failed_runs: Collection[str]
) -> set[str]:
    """Return the keys whose version was indexed by a failed run that did not report it."""
    doubtful = [key for key, entry in indexed.items() if entry.run_id in failed_runs]
    known = find_newest(instance, Stage.POINTS, doubtful)
    return {
        key
        for key in doubtful
        if key not in known or read_version(known[key])[0] != indexed[key].data_version
    }


def remove_partitions(instance: dg.DagsterInstance, scan: Scan, kept: Collection[str]) -> None:
    """Delete the partitions of all documents except some.

    A document that could not be read, or whose folder could not be read, keeps its partition.

    Args:
        instance: The Dagster instance.
        scan: A scan of all documents.
        kept: Keys of the partitions to keep.
    """
    for key in instance.get_dynamic_partitions(_NAME):
        if key not in kept and not scan.discovery.is_hidden(unquote(key)):
            instance.delete_dynamic_partition(_NAME, key)


def read_states(instance: dg.DagsterInstance, stage: Stage, keys: Iterable[str]) -> dict[str, str]:
    """Return the state of partitions of a stage in the UI, such as `MATERIALIZED` or `FAILED`."""
    found = instance.get_status_by_partition(dg.AssetKey(stage.value), list(keys), DOC_PARTITIONS)
    return {key: status.name for key, status in (found or {}).items() if status}


def materialize(
    stage: Stage, key: str, data_version: str, metadata: Mapping[str, Any]
) -> dg.AssetMaterialization:
    """Return the event that an asset of a document has been materialized, not yet recorded."""
    return dg.AssetMaterialization(
        stage.value,
        partition=key,
        metadata=metadata,
        tags={_DATA_VERSION: data_version, _CODE_VERSION: CODE_VERSION},
    )
