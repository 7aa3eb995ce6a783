"""Write the parts of an API page as Markdown: operations of OpenAPI, parameters and responses.

The components of docusaurus-plugin-openapi-docs get these parts as JSON: in their attributes, in
files beside the page, or together in the field `api` of the front matter. A whole OpenAPI document
becomes a page as Redoc shows it; the ids of its headings are those of Redoc 2.5, so that a citation
opens the operation.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
import zlib
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import yaml

from rag_pipeline.ingestion.markdown.source import normalize_source

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


_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MOST_NODES: Final = 200_000  # values of one operation, after its references are replaced
_MOST_NESTED_VALUES: Final = 40  # levels of one operation
_MOST_LEVELS: Final = 500  # of a whole document
_REFERENCE: Final = re.compile(r"""["']?\$ref["']?\s*:\s*["']?(?P<file>[^"'#\s,}]+)""")
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE: Final = re.compile(r"[ \t]*(```|~~~)")
_NO_SLUG: Final = re.compile(r"[^\w\s$*+~.()'\"!\-:@]+")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class SpecPage:
    """An OpenAPI document as a page.

    Attributes:
        text: The page as Markdown, with a front matter.
        anchors: The id of each heading on the page of the site, by its line, 1-based.
        problems: Clauses about parts that are left out.
    """

    text: str
    anchors: Mapping[int, str]
    problems: tuple[str, ...] = ()


def find_references(text: str) -> Iterator[str]:
    """Yield the files that an OpenAPI document refers to; addresses are left out."""
    for match in _REFERENCE.finditer(text):
        if "://" not in match["file"]:
            yield match["file"]


def write_spec(text: str, place: str, files: Mapping[str, bytes | None]) -> SpecPage | None:
    """Return an OpenAPI document as a page; None if it is no OpenAPI document.

    Args:
        text: The document, as JSON or YAML.
        place: Its path below the folder of the site.
        files: The files that it refers to, by path below the folder of the site.
    """
    spec = _parse(text)
    if not isinstance(spec, dict) or not {"openapi", "swagger"} & spec.keys():
        return None
    resolver = _Resolver({place: spec}, files)
    info = _dict(spec.get("info"))
    parts = [*_write_description(str(info.get("description") or ""))]
    for tag, described, operations in _group(_list_operations(spec, place, resolver), spec):
        group = f"tag/{_slug(tag)}" if tag else ""
        if group:
            parts += (_write_heading(2, tag), group), (_embolden(described), "")
        for operation in operations:
            name = operation.get("summary") or operation.get("operationId") or operation["path"]
            own = f"operation/{operation.get('operationId')}"
            if not operation.get("operationId"):
                path = operation["path"].replace("~", "~0").replace("/", "~1")
                own = f"paths/{path}/{operation['method']}"
            heading = _write_heading(3 if group else 2, str(name))
            parts.append((heading, f"{group}/{own}" if group else own))
            shown = {**operation, "description": _embolden(operation.get("description"))}
            parts.append((text := write_operation(shown), ""))
            if CUT in text:
                resolver.problems.append(f"a part of the operation {name} is left out: too large")
    page = [f"---\ntitle: {json.dumps(str(info.get('title') or 'API'))}\n---"]
    anchors, line = dict[int, str](), 5  # after the front matter and an empty line
    for part, anchor in parts:
        if part.strip():
            page.append(part)
            anchors |= {line: anchor} if anchor else {}
            line += part.count("\n") + 2
    body = "\n\n".join(page)
    return SpecPage(f"{body}\n", anchors, tuple(dict.fromkeys(resolver.problems)))


def _write_description(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of the description of a document, whose headings begin sections."""
    above = ["section"]
    for level, part in _split_headings(text):
        if level in {1, 2}:
            above = [*above[:level], _slug(part)]
            yield _write_heading(2, part), "/".join(above)
        else:
            yield f"**{part}**" if level else part.strip("\n"), ""


def _write_heading(level: int, name: str) -> str:
    return f"{'#' * level} {' '.join(name.split())}"


def _parse(text: str) -> Any:  # noqa: ANN401  # JSON
    """Return JSON or YAML as a value; None if it is neither, or nested too deeply."""
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_LEVELS:  # the loader in C would overflow the stack
                return None
        return _LOADER(text).get_single_data()
    except (ValueError, yaml.YAMLError, RecursionError):
        return None


@dataclass(slots=True)
class _Resolver:
    """Replaces the references in an operation by what they refer to.

    Attributes:
        documents: The documents that were parsed, by path.
        files: The files that may be parsed.
        problems: Clauses about references that lead nowhere.
    """

    documents: dict[str, Any]
    files: Mapping[str, bytes | None]
    problems: list[str] = field(default_factory=list)
    _left: int = 0

    def resolve(self, operation: Any, place: str) -> Any:  # noqa: ANN401  # JSON
        """Return a value of a document with its references replaced."""
        self._left = _MOST_NODES
        found = self._resolve(operation, place, ())
        if self._left < 0:
            self.problems.append("an operation is too large, so a part of it is left out")
        return found

    def _resolve(self, value: Any, place: str, chain: tuple[str, ...], depth: int = 0) -> Any:  # noqa: ANN401  # JSON
        self._left -= 1
        if depth > _MOST_NESTED_VALUES or self._left < 0:
            return None
        if isinstance(value, list):
            return [self._resolve(one, place, chain, depth + 1) for one in value]
        if not isinstance(value, dict):
            return value
        target = value.get("$ref")
        if isinstance(target, str):
            return self._follow(target, place, chain, depth)
        return {name: self._resolve(one, place, chain, depth + 1) for name, one in value.items()}

    def _follow(self, target: str, place: str, chain: tuple[str, ...], depth: int) -> Any:  # noqa: ANN401  # JSON
        """Return what a reference in the document at `place` refers to."""
        name, _, pointer = target.partition("#")
        if name:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), name))
        key = f"{place}#{pointer}"
        if key in chain:  # a schema that contains itself
            return {"type": pointer.rpartition("/")[2]}
        if place not in self.documents:
            data = self.files.get(place)
            self.documents[place] = None if data is None else _parse(normalize_source(data))
        found = self.documents[place]
        for step in pointer.split("/")[1:]:
            own = step.replace("~1", "/").replace("~0", "~")
            found = found.get(own) if isinstance(found, dict) else None
        if found is None:
            self.problems.append(f"the reference {target} leads to nothing, so it is left out")
        return self._resolve(found, place, (*chain, key), depth + 1)


def _list_operations(
    spec: Mapping[str, Any], place: str, resolver: _Resolver
) -> Iterator[dict[str, Any]]:
    """Yield the operations of an OpenAPI document, each with its method and path."""
    for part in ("paths", "webhooks", "x-webhooks"):
        for path, stated in _dict(spec.get(part)).items():
            entries = stated
            if isinstance(stated, dict) and "$ref" in stated:
                entries = resolver.resolve(stated, place)
            if not isinstance(entries, dict):
                continue
            for method in _METHODS:
                if not isinstance(entries.get(method), dict):
                    continue
                operation = resolver.resolve(entries[method], place)
                shared = resolver.resolve(entries.get("parameters") or [], place)
                own = operation.get("parameters")
                # The operation's own parameters replace shared ones.
                given = [*_list_objects(shared), *_list_objects(own)]
                named = {(one.get("name"), one.get("in")): one for one in given}
                operation["parameters"] = [*named.values()]
                yield {**operation, "method": method, "path": str(path)}


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _group(
    operations: Iterator[dict[str, Any]], spec: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield name and description of each tag with its operations; an empty name for no tag."""
    stated = {
        str(tag.get("name")): str(tag.get("description") or "")
        for tag in _list_objects(spec.get("tags"))
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in stated}
    for operation in operations:
        tags = operation.get("tags")
        tag = str(tags[0]) if isinstance(tags, list) and tags else ""
        found.setdefault(tag, []).append(operation)
    for tag, members in found.items():
        if members or stated.get(tag):
            yield tag, stated.get(tag, ""), members


def _split_headings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the headings of a Markdown text with their level, and the texts between with 0."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and fence in {"", mark[1]}:
            fence = "" if fence else mark[1]
        heading = None if fence else _HEADING.fullmatch(line)
        if heading is None:
            lines.append(line)
            continue
        yield 0, "\n".join(lines)
        lines = []
        yield len(heading[1]), heading[2]
    yield 0, "\n".join(lines)


def _embolden(text: object) -> str:
    """Return a Markdown text whose headings are bold, because they begin no section."""
    if not isinstance(text, str):
        return ""
    parts = _split_headings(text)
    shown = (f"**{part}**" if level else part.strip("\n") for level, part in parts)
    return "\n\n".join(part for part in shown if part)


def _slug(name: str) -> str:
    """Return a name as Redoc writes it in an id."""
    return re.sub(r"\s+", "-", _NO_SLUG.sub("", name).strip())
