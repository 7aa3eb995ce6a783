"""One dynamic partition per document, and the way from a document id to its partition key and back.

Dagster takes any text as a key, but a comma splits the UI's backfill selection and `...` is the
command line's range separator: those are percent-encoded, and everything else stays readable.
"""

from typing import Final
from urllib.parse import unquote

import dagster as dg

from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import DocId, parse_doc_id

DOC_PARTITIONS: Final = dg.DynamicPartitionsDefinition(name="docs")

_ENCODED: Final = {"%": "%25", ",": "%2C", "..": "%2E%2E", "|": "%7C", "[": "%5B", "]": "%5D"}


def to_partition_key(doc_id: DocId) -> str:
    """Encode a document id; ids of plain characters stay as they are."""
    key = str(doc_id)
    for text, encoded in _ENCODED.items():
        key = key.replace(text, encoded)
    return key.replace(" ", "%20") if key != key.strip() else key


def to_doc_id(partition_key: str) -> DocId:
    """Decode a partition key.

    Raises:
        DocumentIdError: It is no key that `to_partition_key` makes.
    """
    doc_id = parse_doc_id(unquote(partition_key))
    if to_partition_key(doc_id) != partition_key:
        raise DocumentIdError(partition_key, "it is no partition key of a document")
    return doc_id
