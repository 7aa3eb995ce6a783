"""Write the parts of an API page as Markdown: operations of OpenAPI, parameters and responses.

The components of docusaurus-plugin-openapi-docs get these parts as JSON: in their attributes, in
files beside the page, or together in the field `api` of the front matter.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

API_COMPONENTS: Final = re.compile(
    "MethodEndpoint|ParamsDetails|ParamsItem|RequestSchema|ResponseSchema|StatusCodes|Schema(?:Item)?"
)
"""Components of docusaurus-theme-openapi-docs that show a part of an operation."""

_MOST_UNPACKED: Final = 5_000_000  # bytes of one operation
_MOST_NESTED: Final = 20  # levels of a schema
_MOST_ROWS: Final = 2_000  # properties and parameters of one component
CUT: Final = "- ... (a part is left out, because there is too much of it)"
"""Last line of rows that are too many, or nested too deeply."""

_LIMITS: Final = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "multiple of",
    "minLength": "at least this many characters:",
    "maxLength": "at most this many characters:",
    "minItems": "at least this many items:",
    "maxItems": "at most this many items:",
    "pattern": "pattern",
}


def unpack_operation(packed: str) -> dict[str, Any] | None:
    """Return the operation in the field `api` of a front matter; None if it cannot be read.

    The field is Base64 of zlib, or plain JSON. An operation over 5 MB is not read.
    """
    try:
        data = packed.encode()
        if not packed.lstrip().startswith("{"):
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(base64.b64decode(data, validate=True), _MOST_UNPACKED)
            if not unpacking.eof:
                return None
        found = json.loads(data)
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_props(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of a component whose values are JSON; a plain text stays a text."""
    props: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            props[name] = json.loads(value)
        except (ValueError, RecursionError):
            if value[:1] not in {"{", "[", ""} and value != "undefined":
                props[name] = value
    return props


def write_component(name: str, props: Mapping[str, Any]) -> str:
    """Return the Markdown of what a component of an API page shows; empty if it shows nothing."""
    rows: Iterable[str]
    if name == "MethodEndpoint":
        method, path = _text(props.get("method")).upper(), _text(props.get("path"))
        return f"`{method} {path}`" if path else method
    if name == "ParamsItem":
        rows = _write_parameters([props.get("param")])
    elif name == "ParamsDetails":
        rows = _write_parameters(props.get("parameters"))
    elif name == "Schema":
        rows = _write_schema(props.get("schema"), 0)
    elif name == "SchemaItem":
        rows = _write_item(props)
    elif name == "StatusCodes":
        rows = _write_responses(props.get("responses"))
    else:
        rows = _write_body(props.get("body") or props.get("response"))
    return _join(rows)


def write_operation(operation: Mapping[str, Any]) -> str:
    """Return the Markdown of an operation, with its method and path, without a heading."""
    parts = [write_component("MethodEndpoint", operation)]
    parts.append("Deprecated." if operation.get("deprecated") is True else "")
    parts.append(_text(operation.get("description")))
    for title, rows in (
        ("Parameters", _write_parameters(operation.get("parameters"))),
        ("Request body", _write_body(operation.get("requestBody"))),
        ("Responses", _write_responses(operation.get("responses"))),
    ):
        if shown := _join(rows):
            parts.append(f"{title}:\n\n{shown}")
    return "\n\n".join(part for part in parts if part)


def _join(rows: Iterable[str]) -> str:
    shown = [*islice(rows, _MOST_ROWS + 1)]
    if len(shown) > _MOST_ROWS:
        shown[-1] = CUT
    return "\n".join(shown)


def _write_parameters(parameters: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    for entry in _list(parameters):
        if not isinstance(entry, dict):
            continue
        schema = _dict(entry.get("schema")) or entry
        facts = [_text(entry.get("in")), *_read_facts(schema)]
        yield from _write_row(entry, facts, required=entry.get("required") is True, depth=0)
        if entry.get("in") == "body":  # of Swagger 2
            yield from _write_schema(schema, 1)


def _write_item(props: Mapping[str, Any]) -> Iterator[str]:
    schema = _dict(props.get("schema"))
    facts = [_text(props.get("schemaName")), *_read_facts(schema)[1:]]
    facts.append(_text(props.get("qualifierMessage")))
    entry = {"description": schema.get("description"), **props}
    yield from _write_row(entry, facts, required=props.get("required") is True, depth=0)


def _write_body(body: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    described = _one_line(_dict(body).get("description"))
    if described:
        yield f"{described}\n"
    for media, content in _dict(_dict(body).get("content")).items():
        yield f"- `{media}`" + (" (required)" if _dict(body).get("required") is True else "")
        yield from _write_schema(_dict(content).get("schema"), 1)


def _write_responses(responses: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    for status, response in _dict(responses).items():
        described = _one_line(_dict(response).get("description"))
        yield f"- `{status}`" + (f": {described}" if described else "")
        for header, stated in _dict(_dict(response).get("headers")).items():
            row = {"name": header, "description": _dict(stated).get("description")}
            facts = ["header", *_read_facts(_dict(_dict(stated).get("schema")))]
            yield from _write_row(row, facts, required=False, depth=1)
        for content in _dict(_dict(response).get("content")).values():
            yield from _write_schema(_dict(content).get("schema"), 1)
        yield from _write_schema(_dict(response).get("schema"), 1)  # of Swagger 2


def _write_schema(value: Any, depth: int) -> Iterator[str]:  # noqa: ANN401  # JSON
    """Yield one list item for each property of a schema, nested items below it."""
    schema = _dict(value)
    if depth > _MOST_NESTED:
        yield f"{'  ' * depth}{CUT}"
        return
    if items := _dict(schema.get("items")):
        yield from _write_schema(items, depth)
        return
    for part in _list(schema.get("allOf")):
        yield from _write_schema(part, depth)
    for kind in ("oneOf", "anyOf"):
        for part in _list(schema.get(kind)):
            title = _text(_dict(part).get("title"))
            if title:
                yield f"{'  ' * depth}- {title}"
            yield from _write_schema(part, depth + bool(title))
    required, selector = _list(schema.get("required")), _dict(schema.get("discriminator"))
    for name, entry in _dict(schema.get("properties")).items():
        own = _dict(entry)
        if name == selector.get("propertyName"):
            own = {"enum": [*_dict(selector.get("mapping"))], **own}
        row = {"name": name, "description": own.get("description")}
        yield from _write_row(row, _read_facts(own), required=name in required, depth=depth)
        yield from _write_schema(own, depth + 1)


def _write_row(
    entry: Mapping[str, Any], facts: list[str], *, required: bool, depth: int
) -> Iterator[str]:
    """Yield the list item of a parameter or property."""
    name = _text(entry.get("name"))
    if not name:
        return
    shown = [fact for fact in dict.fromkeys([*facts, "required" * required]) if fact]
    if entry.get("deprecated") is True:
        shown.append("deprecated")
    described = _one_line(entry.get("description"))
    row = f"{'  ' * depth}- `{name}`" + (f" ({', '.join(shown)})" if shown else "")
    yield f"{row}: {described}" if described else row


def _read_facts(schema: Mapping[str, Any]) -> list[str]:
    """Return the type, default, values and limits of a schema as short texts."""
    for part in _list(schema.get("allOf")):  # a reference with a description of its own
        schema = {**_dict(part), **schema}
    items = _dict(schema.get("items"))
    facts = [_name_type(schema), _text(schema.get("format"))]
    if facts[0] == "array" and items:
        facts = [f"array of {_name_type(items) or 'items'}", _text(items.get("format"))]
    if "default" in schema:
        facts.append(f"default {_value(schema['default'])}")
    values = _list(schema.get("enum")) or _list(items.get("enum"))
    if values:
        facts.append("one of " + ", ".join(map(_value, values)))
    facts += [
        f"{words} {_value(schema[limit])}"
        for limit, words in _LIMITS.items()
        if limit in schema and not isinstance(schema[limit], bool)
    ]
    example = schema.get("example")
    if example is not None and not isinstance(example, dict | list):
        facts.append(f"example {_value(example)}")
    return facts


def _name_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema; an object has the title of its schema too."""
    kind = schema.get("type")
    name = " or ".join(map(_text, kind)) if isinstance(kind, list) else _text(kind)
    return f"object {_text(schema.get('title'))}".strip() if name == "object" else name


def _value(value: Any) -> str:  # noqa: ANN401  # JSON
    return (
        f"`{value}`"
        if isinstance(value, str) and value
        else json.dumps(value, ensure_ascii=False, default=str)
    )


def _text(value: Any) -> str:  # noqa: ANN401  # JSON
    return value.strip() if isinstance(value, str) else ""


def _one_line(value: Any) -> str:  # noqa: ANN401  # JSON
    return " ".join(_text(value).split())


def _dict(value: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401  # JSON
    return value if isinstance(value, list) else []
