"""The part of the JSON of `rag-pipeline chunks --json` that the proof reads."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class HeadingRecord(TypedDict):
    """A heading of a document in the chunks JSON."""

    level: int
    text: str
    anchor: str | None
    line: int


class DocumentRecord(TypedDict):
    """What the proof reads of a document in the chunks JSON."""

    doc_path: str
    title: str
    url: str
    headings: list[HeadingRecord]


class ChunkRecord(TypedDict):
    """What the proof reads of a chunk in the chunks JSON."""

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
    """The JSON that `rag-pipeline chunks --json` prints."""

    documents: list[DocumentRecord]
    chunks: list[ChunkRecord]
    failures: NotRequired[list[dict[str, str]]]
