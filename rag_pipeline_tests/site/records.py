"""Types of the JSON that `rag-pipeline chunks --json` prints, with the fields that tests use."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class HeadingRecord(TypedDict):
    """A heading of a document in the JSON."""

    level: int
    text: str
    anchor: str | None
    line: int


class DocumentRecord(TypedDict):
    """A document in the JSON."""

    doc_path: str
    title: str
    url: str
    headings: list[HeadingRecord]


class ChunkRecord(TypedDict):
    """A chunk in the JSON."""

    doc_path: str
    chunk_index: int
    title: str
    section_heading: str
    heading_level: int
    anchor: str | None
    url: str
    start_line: int
    text: str


class ChunksRecord(TypedDict):
    """The whole JSON document."""

    documents: list[DocumentRecord]
    chunks: list[ChunkRecord]
    failures: NotRequired[list[dict[str, str]]]
