"""Payload fields: writing, reading, checking, and what is derived from their declarations."""

from __future__ import annotations

import dataclasses
from dataclasses import fields, replace

import pytest

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.models import Chunk, Document, TextBlock, TextBlockKind
from rag_pipeline.core.payload import (
    FILTERS,
    INDEXED_FIELDS,
    LATE_INDEXES,
    PAYLOAD_FIELDS,
    ChunkMetadata,
    build_payload,
    read_metadata,
    read_text,
)
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.sources import Edition
from rag_pipeline.retrieval import QueryFilters
from rag_pipeline_tests.ingestion.records import TIME, make_chunk, make_document

BLOCKS = (
    TextBlock(TextBlockKind.LIST, 0, 10, 7, 8),
    TextBlock(TextBlockKind.LIST_ITEM, 0, 4, 7, 7, opens_with_link=True),
)
BLOCK = {
    "kind": "code",
    "start": 0,
    "end": 4,
    "start_line": 2,
    "end_line": 3,
    "opens_with_link": False,
}
CHUNK = replace(make_chunk(), blocks=BLOCKS)
FRENCH = Edition(
    source="docs",
    version="2.0",
    version_label="2.0.x",
    is_latest=False,
    locale="fr",
    is_default_locale=False,
    common_path="page.md",
)


def test_a_payload_contains_every_field_as_json() -> None:
    assert build_payload(CHUNK, make_document(), TIME) == {
        "chunk_id": CHUNK.chunk_id,
        "doc_path": "module-1/page.md",
        "module": "module-1",
        "chapter": "chapter-1",
        "title": "Title",
        "description": "What it is about",
        "section_heading": "Section",
        "heading_breadcrumb": ["Title", "Section"],
        "heading_level": 2,
        "anchor": "section",
        "url": "/docs/module-1/page",
        "chunk_index": 0,
        "content_type": "prose",
        "tags": ["ros"],
        "learning_objectives": ["Know it"],
        "sidebar_label": "Label",
        "sidebar_position": 1.5,
        "content_hash": CHUNK.content_hash,
        "word_count": 2,
        "token_count": 2,
        "start_line": 1,
        "end_line": 1,
        "start_byte": 0,
        "end_byte": 10,
        "tabs": [],
        "figures": [],
        "blocks": [
            {
                "kind": "list",
                "start": 0,
                "end": 10,
                "start_line": 7,
                "end_line": 8,
                "opens_with_link": False,
            },
            {
                "kind": "list_item",
                "start": 0,
                "end": 4,
                "start_line": 7,
                "end_line": 7,
                "opens_with_link": True,
            },
        ],
        "text": "Some text.",
        "embedding_hash": "a7cb570d51156553d1f800f5777eebff3076577697768cca0d3b678896e02c78",
        "ingested_at": TIME,
    }


def test_a_payload_contains_only_the_parts_of_an_edition_that_differ_from_the_default() -> None:
    plain = build_payload(CHUNK, make_document(), TIME)
    french = build_payload(CHUNK, replace(make_document(), edition=FRENCH), TIME)
    assert {name: french[name] for name in french if name not in plain} == {
        "source": "docs",
        "version": "2.0",
        "version_label": "2.0.x",
        "is_latest": False,
        "locale": "fr",
        "is_default_locale": False,
        "common_path": "page.md",
    }
    post = Edition("blog", is_post=True)
    blog = build_payload(CHUNK, replace(make_document(), edition=post), TIME)
    assert blog == {**plain, "source": "blog", "is_post": True}
    metadata = read_metadata(plain)
    assert (metadata.source, metadata.version, metadata.locale) == (None, None, None)
    assert metadata.is_latest
    assert metadata.is_default_locale


def test_a_payload_is_read_as_it_was_written() -> None:
    document = replace(make_document(), edition=FRENCH)
    payload = build_payload(CHUNK, document, TIME)
    metadata = read_metadata(payload)
    origins = {"chunk": CHUNK, "document": document, "edition": FRENCH}
    for field in PAYLOAD_FIELDS:
        if field.shown and field.declared.source != "writing":
            origin = origins[field.declared.source]
            assert getattr(metadata, field.name) == getattr(origin, field.name), field.name
    assert metadata.ingested_at == TIME
    assert metadata.blocks == BLOCKS
    assert read_text(payload) == CHUNK.text


@pytest.mark.parametrize(
    "name", [field.name for field in PAYLOAD_FIELDS if field.shown and not field.may_lack]
)
def test_the_error_names_a_field_that_is_missing_or_has_another_type(name: str) -> None:
    payload = build_payload(CHUNK, make_document(), TIME)
    damaged = [{key: value for key, value in payload.items() if key != name}]
    damaged += [{**payload, name: value} for value in (True, {"a": 1}, [7])]
    for one in damaged:
        with pytest.raises(PayloadError) as caught:
            read_metadata(one)
        assert caught.value.field == name
    with pytest.raises(PayloadError, match="field is_latest has the invalid value 'no'"):
        read_metadata({**payload, "is_latest": "no"})
    with pytest.raises(PayloadError, match="field anchor has the invalid value 5"):
        read_metadata({**payload, "anchor": 5})
    with pytest.raises(PayloadError, match="field anchor has no value"):
        read_metadata({key: value for key, value in payload.items() if key != "anchor"})


@pytest.mark.parametrize(
    "block",
    [
        {**BLOCK, "kind": "poem"},
        {**BLOCK, "kind": ["list"]},
        {**BLOCK, "start": 5},
        {**BLOCK, "start": -1},
        {**BLOCK, "end": True},
        {**BLOCK, "start": 0.5},
        {**BLOCK, "start_line": 0},
        {**BLOCK, "end_line": 1},
        {**BLOCK, "end_line": None},
        {**BLOCK, "opens_with_link": 1},
        {"kind": "code", "start": 0, "end": 4},
        {**BLOCK, "line": 1},
        "code",
    ],
)
def test_an_invalid_block_makes_the_payload_invalid(block: object) -> None:
    payload = build_payload(CHUNK, make_document(), TIME)
    payload["blocks"] = [BLOCK, block]  # type: ignore[list-item]  # damaged on purpose
    with pytest.raises(PayloadError, match="payload field blocks"):
        read_metadata(payload)


def test_the_error_names_a_missing_text() -> None:
    with pytest.raises(PayloadError, match="payload field text has no value"):
        read_text({"chunk_id": "x"})


def test_every_field_names_an_existing_source() -> None:
    attributes = {
        "chunk": {field.name for field in fields(Chunk)},
        "document": {field.name for field in fields(Document)},
        "edition": {field.name for field in fields(Edition)},
        "writing": {"embedding_hash", "ingested_at"},
    }
    for field in PAYLOAD_FIELDS:
        assert field.name in attributes[field.declared.source], field.name
    shown = [field.name for field in PAYLOAD_FIELDS if field.shown]
    assert shown == [field.name for field in dataclasses.fields(ChunkMetadata)]


def test_the_fields_of_filters_are_indexed() -> None:
    assert set(INDEXED_FIELDS) == {"module", "chapter", "content_type", "tags", "doc_path"}
    booleans = {"is_latest": True, "is_default_locale": True}
    assert {"source": False, "version": False, "locale": False, **booleans} == LATE_INDEXES
    assert {*INDEXED_FIELDS, *LATE_INDEXES} == {*FILTERS, *booleans}


def test_query_filters_has_a_field_for_every_declared_filter() -> None:
    names = {field.name for field in fields(QueryFilters)}
    assert names == {"top_k", *(declared.name for declared in FILTERS.values())}


def test_a_point_filter_accepts_only_indexed_fields() -> None:
    where = PointFilter.any_of(module=["module-1"], tags=[])
    assert where == PointFilter((("module", ("module-1",)),))
    assert PointFilter.any_of(module=[]) == PointFilter()
    with pytest.raises(ValueError, match="title"):
        PointFilter.any_of(title=["Title"])
