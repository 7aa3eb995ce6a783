"""Dynamic partitions, one per document, and conversion between document ids and partition keys.

Dagster accepts any text as a partition key, but its UI and command line give a meaning to some
characters: for example, a comma separates keys, and `...` separates the ends of a range. Such
characters are percent-encoded, and all others stay readable.
"""

from typing import Final
from urllib.parse import unquote

import dagster as dg

from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import DocId, parse_doc_id

DOC_PARTITIONS: Final = dg.DynamicPartitionsDefinition(name="docs")

_ENCODED: Final = {"%": "%25", ",": "%2C", "..": "%2E%2E", "|": "%7C", "[": "%5B", "]": "%5D"}


def to_partition_key(doc_id: DocId) -> str:
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
