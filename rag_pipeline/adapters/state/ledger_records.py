"""The content of a ledger's files: one JSON object per entry or failure record."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, TypeVar

from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from pathlib import Path

    from upath import UPath

Record = TypeVar("Record", LedgerEntry, LedgerFailure)
"""An entry or a failure record."""


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
        record = record_class(**stored)
    except (ValueError, TypeError, AttributeError):
        return None
    for field in dataclasses.fields(record):
        if type(getattr(record, field.name)) is not (int if field.type == "int" else str):
            return None
    return record if path.stem == make_file_key(record.doc_id) else None
