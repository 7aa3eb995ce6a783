"""JSON Schemas of the declared dataclasses, with the descriptions of their docstrings."""

from __future__ import annotations

import sys
from typing import Any

from pydantic import TypeAdapter

from rag_pipeline.answering import confidence
from rag_pipeline.answering import models as answering
from rag_pipeline.core import ids, models, payload, protocols, sources
from rag_pipeline.core.text import sentences
from rag_pipeline.evaluation import gates, records
from rag_pipeline.retrieval import models as retrieval
from reference.docstrings import read_attributes, read_summary
from reference.meanings import MEANINGS

Schema = dict[str, Any]

_NAMES = {
    name: value
    for module in (
        sources,
        ids,
        models,
        sentences,
        payload,
        retrieval,
        answering,
        confidence,
        protocols,
        records,
        gates,
    )
    for name, value in vars(module).items()
    if not name.startswith("__")
}
"""What annotations may name: modules import some of these names for type checkers only."""

_STORED = {field.name: field.declared.description for field in payload.PAYLOAD_FIELDS}
"""The meanings of payload fields, by name."""

_OPTIONAL = frozenset({"Chunk.sources", "Chunk.tabs", "Chunk.figures", "Document.edition"})
"""Fields that the JSON leaves out when they are empty."""

_STORED_IN = (models.Chunk, models.Document, retrieval.Citation, payload.ChunkMetadata)
"""Classes whose fields become payload fields of the same name and meaning."""

_KEPT = ("$ref", "type", "enum", "const", "items", "anyOf", "additionalProperties")
"""The keywords of pydantic's schema of a field that are kept, in this order."""


def build_schema(cls: type, title: str, *, without: frozenset[str] = frozenset()) -> Schema:
    """Build the JSON Schema of a dataclass as `core.json_form` and `json.dumps` write it.

    Args:
        cls: The dataclass. The dataclasses and enums that it refers to become `$defs`.
        title: What the document is.
        without: Fields, of any class, that the document does not have.
    """
    adapter = TypeAdapter(cls)
    adapter.rebuild(_types_namespace=_NAMES)
    found = adapter.json_schema(mode="serialization")
    known = _NAMES | vars(sys.modules[cls.__module__])
    root = _describe_class(cls, found, without)
    definitions = {
        name: _describe_class(known[name], part, without)
        for name, part in sorted(found.get("$defs", {}).items())
    }
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **root, "$defs": definitions}


def build_payload_schema() -> Schema:
    """Build the JSON Schema of a point's payload from the declarations of its fields."""
    schema = build_schema(payload.ChunkMetadata, "Payload of a point")
    for field in payload.PAYLOAD_FIELDS:
        schema["properties"].setdefault(field.name, {"type": "string"})
        schema["properties"][field.name]["description"] = field.declared.description
    schema["required"] = [field.name for field in payload.PAYLOAD_FIELDS if not field.may_lack]
    return schema


def _describe_class(cls: type, found: Schema, without: frozenset[str]) -> Schema:
    """Return pydantic's schema of a class with the descriptions of its fields."""
    if "enum" in found:
        return {"type": "string", "description": read_summary(cls), "enum": found["enum"]}
    described = read_attributes(cls)
    if cls in _STORED_IN:
        described = _STORED | described
    properties: Schema = {}
    for field, schema in found["properties"].items():
        if field in without:
            continue
        name = f"{cls.__name__}.{field}"
        text = described.get(field) or MEANINGS.get(name)
        if text is None:
            message = f"{name} has no description. Add it to the docstring of the class"
            raise LookupError(message)
        properties[field] = _clean(schema) | {"description": text}
    return {
        "type": "object",
        "description": read_summary(cls),
        "properties": properties,
        "required": [key for key in properties if f"{cls.__name__}.{key}" not in _OPTIONAL],
        "additionalProperties": False,
    }


def _clean(schema: Any) -> Any:  # noqa: ANN401  # JSON
    """Return the schema of a field without titles and defaults."""
    if isinstance(schema, list):
        return [_clean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "prefixItems" in schema:  # a tuple of some length, whose items have one type
        schema = schema | {"items": schema["prefixItems"][0]}
    return {key: _clean(schema[key]) for key in _KEPT if key in schema}
