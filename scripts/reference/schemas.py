"""JSON Schemas of the declared dataclasses, with the descriptions of their docstrings."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union

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

_STORED_IN = (models.Chunk, models.Document, retrieval.Citation)
"""Classes whose fields become payload fields of the same name and meaning."""

_SCALARS: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def build_schema(cls: type, title: str, *, without: frozenset[str] = frozenset()) -> Schema:
    """Build the JSON Schema of a dataclass as `core.json_form` and `json.dumps` write it.

    Args:
        cls: The dataclass. The dataclasses and enums that it refers to become `$defs`.
        title: What the document is.
        without: Fields, of any class, that the document does not have.
    """
    definitions: Schema = {}
    root = _describe_class(cls, definitions, without)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def build_payload_schema() -> Schema:
    """Build the JSON Schema of a point's payload from the declarations of its fields."""
    schema = build_schema(payload.ChunkMetadata, "Payload of a point")
    for field in payload.PAYLOAD_FIELDS:
        schema["properties"].setdefault(field.name, {"type": "string"})
        schema["properties"][field.name]["description"] = field.declared.description
    schema["required"] = [field.name for field in payload.PAYLOAD_FIELDS if not field.may_lack]
    return schema


def _describe_class(cls: type, definitions: Schema, without: frozenset[str]) -> Schema:
    hints = typing.get_type_hints(cls, localns=_NAMES, include_extras=True)
    described = read_attributes(cls)
    shared = _STORED if cls in _STORED_IN else {}
    properties: Schema = {}
    for field in dataclasses.fields(cls):
        if field.name in without:
            continue
        hint = hints[field.name]
        schema = _describe_type(hint, definitions, without)
        declared = getattr(hint, "__metadata__", ())
        texts = [entry.description for entry in declared if isinstance(entry, payload.Declared)]
        texts += [known[field.name] for known in (described, shared) if field.name in known]
        name = f"{cls.__name__}.{field.name}"
        if not texts and name not in MEANINGS:
            message = f"{name} has no description. Add it to the docstring of the class"
            raise LookupError(message)
        properties[field.name] = schema | {"description": (*texts, MEANINGS.get(name))[0]}
    return {
        "type": "object",
        "description": read_summary(cls),
        "properties": properties,
        "required": [key for key in properties if f"{cls.__name__}.{key}" not in _OPTIONAL],
        "additionalProperties": False,
    }


def _describe_type(  # noqa: PLR0911  # one return per kind of type
    hint: Any,  # noqa: ANN401  # any annotation
    definitions: Schema,
    without: frozenset[str],
) -> Schema:
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if isinstance(hint, NewType):
        return _describe_type(hint.__supertype__, definitions, without)
    if isinstance(hint, type) and (issubclass(hint, Enum) or dataclasses.is_dataclass(hint)):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a class may refer to itself
            definitions[hint.__name__] = (
                {
                    "type": "string",
                    "description": read_summary(hint),
                    "enum": [entry.value for entry in hint],
                }
                if issubclass(hint, Enum)
                else _describe_class(hint, definitions, without)
            )
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _describe_type(inner[0], definitions, without)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_describe_type(part, definitions, without) for part in inner]}
    if origin in (list, tuple):
        return {"type": "array", "items": _describe_type(inner[0], definitions, without)}
    if origin is dict:
        value: Any = True if inner[1] is Any else _describe_type(inner[1], definitions, without)
        return {"type": "object", "additionalProperties": value}
    message = f"no JSON Schema is known for {hint!r}. Add it to scripts/reference/schemas.py"
    raise TypeError(message)
