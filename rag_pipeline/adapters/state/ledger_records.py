"""The content of a ledger's files: one JSON object per entry or failure record."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rag_pipeline.core.buckets import bucket_of_key
from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure
from rag_pipeline.core.site.source_entries import RecordedSite, dump_sources, read_sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from upath import UPath

Record = TypeVar("Record", LedgerEntry, LedgerFailure)
"""An entry or a failure record."""

_REPEATED: Final = ("pipeline_fingerprint", "collection_id", "run_id")
_TYPES: Final = {
    kind: [(one.name, int if one.type == "int" else str) for one in dataclasses.fields(kind)]
    for kind in (LedgerEntry, LedgerFailure)
}


def select_names(
    names: Iterable[str], buckets: Collection[int] | None, bucket_count: int
) -> list[str]:
    """Return the sorted names of files with records of these buckets; None stands for all buckets.

    The content of the other files need not be read. A name that no ledger wrote is included, so
    that its reader reports it.
    """
    return sorted(
        name
        for name in names
        if name.endswith(".json") and (buckets is None or _is_in(name, buckets, bucket_count))
    )


def dump_record(record: LedgerEntry | LedgerFailure) -> bytes:
    """Return the content of the file of a record."""
    return (json.dumps(dataclasses.asdict(record), indent=1) + "\n").encode()


def read_version(path: Path | UPath, data: bytes) -> int:
    """Return the version of an entry; 0 if it is damaged, so that it can be replaced."""
    entry = parse_record(path, data, LedgerEntry)
    return entry.version if entry is not None else 0


def parse_record(path: Path | UPath, data: bytes, record_class: type[Record]) -> Record | None:
    """Return the record in a file; None if it is damaged or belongs to a file of another name."""
    try:
        stored = json.loads(data)
        if record_class is LedgerEntry:
            stored.setdefault("version", 1)  # an earlier release wrote no versions
        record = make_record(record_class, stored)
    except (ValueError, TypeError, AttributeError):
        return None
    if any(type(getattr(record, name)) is not kind for name, kind in _TYPES[record_class]):
        return None
    return record if path.stem == make_file_key(record.doc_id) else None


def make_record(record_class: type[Record], stored: dict[str, Any]) -> Record:
    """Return the record with the stored values.

    A text that most records of a book have is one object for all of them. A book of 100,000
    documents so needs 30 MB less memory.

    Raises:
        TypeError: The values are not those of such a record.
    """
    for name in _REPEATED:
        if type(stored.get(name)) is str:
            stored[name] = sys.intern(stored[name])
    return record_class(**stored)


def _is_in(name: str, buckets: Collection[int], bucket_count: int) -> bool:
    try:
        return bucket_of_key(name.removesuffix(".json"), bucket_count) in buckets
    except ValueError:
        return True


def dump_site(recorded: RecordedSite) -> dict[str, Any]:
    """Return a recorded site as a JSON object."""
    stored = dataclasses.asdict(recorded.site)
    return (
        stored if recorded.sources is None else stored | {"sources": dump_sources(recorded.sources)}
    )


def load_site(stored: Any) -> RecordedSite | None:  # noqa: ANN401  # damaged JSON may be anything
    """Return the recorded site of a JSON object; None if it is damaged."""
    try:
        values = dict(stored)
        values["markdown_format"] = MarkdownFormat(values["markdown_format"])
        sources = read_sources(values.pop("sources", None))
        return RecordedSite(SiteSettings(**values), sources)
    except (ValueError, TypeError, KeyError):
        return None
