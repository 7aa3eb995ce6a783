"""Tests of the OpenAPI documents that a site shows with Redocusaurus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.core.errors import DocumentReadError
from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.site.detection import detect_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import Chunk, ParsedDoc
    from rag_pipeline.ingestion.site.detection import DetectedSite

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "api-pages"
_YAML = (_FIXTURES / "crane.yaml").read_text(encoding="utf-8")
_HOOK = (_FIXTURES / "schemas" / "hook.yaml").read_text(encoding="utf-8")

_PLUGIN = (
    "plugins: ['content-docs', "
    "['docusaurus-plugin-redoc', {spec: './api/crane.yaml', route: 'crane-api'}]]"
)


def _write_site(root: Path, plugins: str, files: dict[str, str]) -> DetectedSite:
    config = f"export default {{url: 'https://cranes.example', baseUrl: '/x/', {plugins}}};"
    for name, text in {
        "docusaurus.config.js": config,
        "docs/a.md": "# A\n\nText.\n",
        **files,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return detect_site(root, lambda _: None, run_config=False)


def _classic(more: str) -> str:
    return f"presets: [['classic', {{blog: false}}], {more}]"


def _read(site: DetectedSite) -> dict[str, tuple[ParsedDoc, Sequence[Chunk]]]:
    """Parse and cut all documents of a site."""
    found = discover_docs(site.docs_dir, sources=site.sources)
    assert found.failures == ()
    settings = SiteSettings(base_url="https://cranes.example/x/")
    documents = {doc.doc_id: parse_doc(doc, settings) for doc in found.docs}
    return {
        doc_id: (parsed, chunk_doc(parsed, ChunkLimits())) for doc_id, parsed in documents.items()
    }


@pytest.mark.parametrize(
    "plugins",
    [
        _classic("['redocusaurus', {specs: [{spec: 'api/crane.yaml', route: '/crane-api/'}]}]"),
        _PLUGIN,
    ],
)
def test_each_operation_is_a_section_that_is_cited_by_its_heading(
    tmp_path: Path, plugins: str
) -> None:
    files = {"api/crane.yaml": _YAML, "api/schemas/hook.yaml": _HOOK, "api/other.yaml": _YAML}
    site = _write_site(tmp_path, plugins, files)
    assert site.notes == ()
    pages = _read(site)
    assert sorted(pages) == ["a.md", "crane/crane.yaml"]
    parsed, chunks = pages["crane/crane.yaml"]
    assert parsed.document.title == "Crane service"
    assert parsed.notes.warnings == ()
    places = {chunk.heading_breadcrumb: chunk.url for chunk in chunks}
    page = "https://cranes.example/x/crane-api/"
    move = ("Crane service", "Hook moves", "Move the hook")
    assert places == {
        ("Crane service",): page,
        ("Crane service", "Authentication"): f"{page}#section/Authentication",
        ("Crane service", "Hook moves"): f"{page}#tag/Hook-moves",
        move: f"{page}#tag/Hook-moves/operation/moveHook",
        ("Crane service", "Ask for the state"): f"{page}#paths/~1health/get",
    }
    text = next(chunk.text for chunk in chunks if chunk.heading_breadcrumb == move)
    assert "`PATCH /cranes/{craneId}/hook`" in text
    assert "- `craneId` (path, string, required): Number on the mast" in text
    assert "- `speed` (query, number, default 0.5, at most 2)" in text
    assert "- `height` (integer, at most 40, required): In metres" in text
    assert "- `423`: Another program holds the crane" in text
    assert "**Limits**\n\nNever over people." in text
    assert {chunk.content_type for chunk in chunks} == {"api"}


def test_the_preset_searches_its_folder_if_it_names_no_document(tmp_path: Path) -> None:
    spec = json.dumps({"openapi": "3.1.0", "info": {"title": "J"}, "paths": {"/a": {"get": {}}}})
    files = {
        "openapi/one.openapi.json": spec,
        "openapi/deep/openapi.yaml": _YAML,
        "openapi/index.openapi.yaml": _YAML,
        "openapi/not-a-spec.yaml": "a: 1",
    }
    site = _write_site(tmp_path, _classic("['redocusaurus', {}]"), files)
    routes = {source.include: source.route_base_path for source in site.sources[1:]}
    assert routes == {
        ("one.openapi.json",): "api/one",
        ("openapi.yaml",): "api/deep/openapi.yaml",
        ("index.openapi.yaml",): "api",
    }
    _, chunks = _read(site)["one/one.openapi.json"]
    assert chunks[0].url == "https://cranes.example/x/api/one/#paths/~1a/get"


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("'https://other.example/a.yaml'", "other.example"),
        ("makeSpec()", "spec"),
        ("'../b.yaml'", "b.yaml"),
    ],
)
def test_a_document_that_is_not_in_the_site_is_named(tmp_path: Path, spec: str, shown: str) -> None:
    plugins = _classic(f"['redocusaurus', {{specs: [{{spec: {spec}, route: '/r'}}]}}]")
    (note,) = _write_site(tmp_path, plugins, {}).notes
    assert shown in note


def _write_spec(root: Path, text: str, name: str = "a.yaml") -> DetectedSite:
    plugins = _classic(f"['redocusaurus', {{specs: [{{spec: '{name}', route: '/r'}}]}}]")
    return _write_site(root, plugins, {name: text})


@pytest.mark.parametrize(
    "text",
    [
        *("a: [1", "just text", "[1, 2]", "a: 1", "{" * 100_000),
        "openapi: 3.1.0\npaths: " + "[" * 100_000 + "]" * 100_000,
    ],
)
def test_a_file_that_is_no_openapi_document_fails_alone(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentReadError, match="OpenAPI"):
        _read(_write_spec(tmp_path, text))


def test_deep_circular_and_multiplied_schemas_end_with_a_warning(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"next": deep}}
    bomb: dict[str, Any] = {"s0": {"type": "string"}}
    for number in range(1, 9):
        inner = {f"p{n}": {"$ref": f"#/components/s{number - 1}"} for n in range(9)}
        bomb[f"s{number}"] = {"type": "object", "properties": inner}
    schema = {
        "properties": {
            "left": {"$ref": "#/components/tree"},
            "deep": deep,
            "wide": {"$ref": "#/components/s8"},
            "lost": {"$ref": "#/components/missing"},
        }
    }
    spec = {
        "openapi": "3.0.0",
        "paths": {"/a": {"get": {"responses": {"200": {"$ref": "#/components/r"}}}}},
        "components": {
            **bomb,
            "r": {
                "description": "Fine",
                "content": {"x": {"schema": {"$ref": "#/components/tree"}}},
            },
            "tree": schema,
        },
    }
    parsed, chunks = _read(_write_spec(tmp_path, json.dumps(spec), "a.json"))["a/a.json"]
    assert "- `200`: Fine" in chunks[0].text
    assert "- `left` (tree)" in chunks[0].text
    assert len(parsed.source) < 1_000_000
    assert any("too large" in warning for warning in parsed.notes.warnings)


def test_an_unknown_reference_is_named_in_the_report(tmp_path: Path) -> None:
    text = _YAML.replace("#/components/parameters/craneId", "#/components/parameters/gone")
    parsed, _ = _read(_write_spec(tmp_path, text))["a/a.yaml"]
    assert any("parameters/gone" in warning for warning in parsed.notes.warnings)
    assert any("schemas/hook.yaml" in warning for warning in parsed.notes.warnings)


def test_swagger_2_has_its_body_and_responses(tmp_path: Path) -> None:
    spec = {
        "swagger": "2.0",
        "info": {"title": "Old"},
        "paths": {
            "/a": {
                "post": {
                    "parameters": [
                        {"name": "load", "in": "body", "schema": {"$ref": "#/definitions/Load"}},
                        {"name": "n", "in": "query", "type": "integer", "default": 3},
                    ],
                    "responses": {
                        "200": {"description": "Done", "schema": {"$ref": "#/definitions/Load"}}
                    },
                }
            }
        },
        "definitions": {"Load": {"properties": {"mass": {"type": "number", "minimum": 1}}}},
    }
    _, (chunk,) = _read(_write_spec(tmp_path, json.dumps(spec), "a.json"))["a/a.json"]
    assert "- `n` (query, integer, default 3)" in chunk.text
    assert chunk.text.count("`mass` (number, at least 1)") == 2
