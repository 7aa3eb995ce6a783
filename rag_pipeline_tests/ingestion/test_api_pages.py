"""Tests of pages that docusaurus-plugin-openapi-docs generates."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from rag_pipeline.core.models import Chunk, ParsedDoc

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "api-pages"
_OPERATION: dict[str, Any] = json.loads((_FIXTURES / "operation.json").read_bytes())


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _make_page(api: str, body: str) -> bytes:
    head = f'title: "Move the hook"\nhide_title: true\napi: {api}'
    return f"---\n{head}\n---\n\nimport Heading from '@theme/Heading';\n\n{body}\n".encode()


def _chunk(
    source: bytes, imported: dict[str, bytes | None] | None = None
) -> tuple[ParsedDoc, tuple[Chunk, ...]]:
    doc_id = parse_doc_id("crane.api.mdx")
    path = Path("/site/docs/crane.api.mdx")
    doc = DiscoveredDoc(doc_id, path, "", 0, 0)
    parsed = parse_doc(doc, SiteSettings(), source, imported or {})
    return parsed, chunk_doc(parsed, ChunkLimits())


def test_the_components_of_an_operation_are_text_under_their_headings() -> None:
    components = (_FIXTURES / "components.mdx").read_text(encoding="utf-8")
    parsed, (intro, request, responses) = _chunk(
        _make_page(_pack(json.dumps(_OPERATION).encode()), components)
    )
    assert parsed.notes.warnings == ()
    assert parsed.notes.components == ()
    assert "`PATCH /cranes/{craneId}/hook`" in intro.text
    assert "Moves the hook of one crane." in intro.text
    assert (request.section_heading, request.anchor) == ("Request", "request")
    assert request.text.split("\n")[-8:] == [
        "- `craneId` (path, string, pattern `^C[0-9]+$`, required): Number on the mast",
        "- `speed` (query, number, default 0.5)",
        "",
        "- `application/json` (required)",
        "  - `height` (integer, at most 40, required): In metres",
        "  - `mode` (string, one of `slow`, `fast`)",
        "  - `load` (object)",
        "    - `mass` (number, at least 0)",
    ]
    assert (responses.section_heading, responses.anchor) == ("Responses", "responses")
    assert "- `423`: Locked" in responses.text
    assert {chunk.content_type for chunk in (intro, request, responses)} == {"api"}
    assert [(heading.level, heading.text) for heading in parsed.document.headings] == [
        (1, "Move the hook"),
        (2, "Request"),
        (2, "Responses"),
    ]


def test_the_packed_operation_is_the_text_of_a_page_without_components() -> None:
    parsed, (chunk,) = _chunk(_make_page(_pack(json.dumps(_OPERATION).encode()), "See below."))
    assert chunk.text.startswith("See below.")
    assert "`PATCH /cranes/{craneId}/hook`" in chunk.text
    assert "- `speed` (query, number, default 0.5)" in chunk.text
    assert "- `202`: The hook moves" in chunk.text
    assert chunk.sources == ()
    assert parsed.document.content_type == "api"


def test_json_beside_the_page_is_read_for_its_component() -> None:
    body = '<StatusCodes\n  {...require("./crane.StatusCodes.json")}\n>\n\n</StatusCodes>'
    source = _make_page(_pack(b"{}"), body)
    data = json.dumps({"responses": _OPERATION["responses"]}).encode()
    parsed, (chunk,) = _chunk(source, {"docs/crane.StatusCodes.json": data})
    assert chunk.text == "Responses:\n\n- `202`: The hook moves\n- `423`: Locked"
    assert parsed.notes.warnings == ()
    missing, chunks = _chunk(source, {"docs/crane.StatusCodes.json": None})
    assert chunks == ()
    assert "docs/crane.StatusCodes.json" in missing.notes.warnings[0]


def test_headers_of_a_response_and_schema_pages_are_text() -> None:
    headers = {"X-Left": {"description": "Calls left", "schema": {"type": "integer"}}}
    responses = json.dumps({"200": {"description": "Fine", "headers": headers}})
    schema = json.dumps({"properties": {"mass": {"type": "number", "description": "In tons"}}})
    body = f"<StatusCodes responses={{{responses}}}>\n</StatusCodes>\n\n"
    body += f"<Schema schema={{{schema}}}>\n</Schema>"
    _, (chunk,) = _chunk(_make_page(_pack(b"{}"), body))
    assert "- `200`: Fine\n  - `X-Left` (header, integer): Calls left" in chunk.text
    assert "- `mass` (number): In tons" in chunk.text


@pytest.mark.parametrize(
    "packed",
    [
        "eJyrVkrLz1eyUkpKLFKqBQAhpAQW",
        "bm90IHBhY2tlZCBhdCBhbGw=",
        _pack(b"not json"),
        _pack(b"[1, 2]"),
        _pack(b'{"method": 5, "path": null, "parameters": "x", "responses": [1]}'),
        _pack(b'{"a": "' + b"x" * 6_000_000 + b'"}'),
        _pack(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ],
)
def test_a_damaged_or_huge_operation_is_reported_and_the_page_is_indexed(packed: str) -> None:
    parsed, (chunk,) = _chunk(_make_page(packed, "Text of the page."))
    assert chunk.text == "Text of the page."
    assert len(parsed.notes.warnings) == 1
    assert "crane.api.mdx" in parsed.notes.warnings[0]


@pytest.mark.parametrize("kind", ["deep", "wide"])
def test_a_part_that_is_left_out_of_an_operation_is_marked_and_reported(kind: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(60 if kind == "deep" else 0):
        schema = {"type": "object", "properties": {"next": schema}}
    if kind == "wide":
        schema = {"properties": {f"p{number}": schema for number in range(3_000)}}
    body = {"content": {"application/json": {"schema": schema}}}
    packed = _pack(json.dumps({**_OPERATION, "requestBody": body}).encode())
    parsed, chunks = _chunk(_make_page(packed, "Text."))
    assert "- ... (a part is left out" in chunks[0].text + chunks[-1].text + parsed.source
    assert ["crane.api.mdx" in warning for warning in parsed.notes.warnings] == [True]


def test_a_schema_page_has_its_example_and_the_facts_of_references() -> None:
    schema = {
        "properties": {
            "id": {"description": "Number", "allOf": [{"type": "integer", "format": "int64"}]},
            "hooks": {"type": "array", "items": {"type": "object", "title": "Hook"}},
            "kind": {"type": "string"},
        },
        "discriminator": {"propertyName": "kind", "mapping": {"tower": "T", "mobile": "M"}},
    }
    head = 'title: Crane\nschema: true\nsample: {"id": 7, "kind": "tower"}'
    page = f"---\n{head}\n---\n\n<Schema schema={{{json.dumps(schema)}}}>\n</Schema>\n"
    _, (chunk,) = _chunk(page.encode())
    assert chunk.text.split("\n")[:3] == [
        "- `id` (integer, int64): Number",
        "- `hooks` (array of object Hook)",
        "- `kind` (string, one of `tower`, `mobile`)",
    ]
    assert chunk.text.endswith('```json\n{\n  "id": 7,\n  "kind": "tower"\n}\n```')


def test_a_component_without_parameters_is_not_reported() -> None:
    body = "Text.\n\n<ParamsDetails parameters={[]} id={undefined}>\n</ParamsDetails>"
    parsed, _ = _chunk(_make_page(_pack(b"{}"), body))
    assert parsed.notes.components == ()


def test_data_of_a_component_that_is_no_json_is_reported() -> None:
    parsed, _ = _chunk(_make_page(_pack(b"{}"), "<StatusCodes responses={load()}>\n</StatusCodes>"))
    assert parsed.notes.components == ("StatusCodes",)


def test_ordinary_front_matter_called_api_is_no_operation() -> None:
    parsed, _ = _chunk(b"---\napi: v2\n---\n\nText.\n")
    assert parsed.document.content_type == "prose"
