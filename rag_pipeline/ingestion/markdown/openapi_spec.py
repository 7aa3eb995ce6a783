"""Write an OpenAPI document as Markdown: one section for each operation, as Redoc shows it.

The ids of the headings are those of Redoc 2.5, so that a citation opens the operation.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from rag_pipeline.ingestion.markdown.openapi import CUT, write_operation
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MOST_NODES: Final = 200_000  # values of one operation, after its references are replaced
_MOST_NESTED: Final = 40  # levels of one operation
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


@dataclass(slots=True)
class _Page:
    """The parts of a page while it is written.

    Attributes:
        parts: The parts, which empty lines separate.
        anchors: The id of each heading on the page of the site, by its line.
        line: Line of the next part, 1-based.
    """

    parts: list[str]
    anchors: dict[int, str] = field(default_factory=dict)
    line: int = 5  # after the front matter and an empty line

    def add(self, part: str, anchor: str = "") -> None:
        if part.strip():
            self.parts.append(part)
            if anchor:
                self.anchors[self.line] = anchor
            self.line += part.count("\n") + 2

    def add_heading(self, level: int, name: str, anchor: str) -> None:
        self.add(f"{'#' * level} {' '.join(name.split())}", anchor)


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
    stated = spec.get("info")
    info = stated if isinstance(stated, dict) else {}
    page = _Page([f"---\ntitle: {json.dumps(str(info.get('title') or 'API'))}\n---"])
    _add_description(page, str(info.get("description") or ""))
    for tag, described, operations in _group(_list_operations(spec, place, resolver), spec):
        group = f"tag/{_slug(tag)}" if tag else ""
        if group:
            page.add_heading(2, tag, group)
            page.add(_embolden(described))
        for operation in operations:
            name = operation.get("summary") or operation.get("operationId") or operation["path"]
            page.add_heading(3 if group else 2, str(name), _name_anchor(operation, group))
            shown = {**operation, "description": _embolden(operation.get("description"))}
            page.add(text := write_operation(shown))
            if CUT in text:
                resolver.problems.append(f"a part of the operation {name} is left out: too large")
    body = "\n\n".join(page.parts)
    return SpecPage(f"{body}\n", page.anchors, tuple(dict.fromkeys(resolver.problems)))


def _add_description(page: _Page, text: str) -> None:
    """Add the description of the whole document, whose headings begin sections."""
    above = ["section"]
    for level, part in _split_headings(text):
        if level in {1, 2}:
            above = [*above[:level], _slug(part)]
            page.add_heading(2, part, "/".join(above))
        else:
            page.add(f"**{part}**" if level else part.strip("\n"))


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
        if depth > _MOST_NESTED or self._left < 0:
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
        paths = spec.get(part)
        for path, stated in (paths if isinstance(paths, dict) else {}).items():
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
                given = [*_list(shared), *_list(own)]  # the operation's own replace shared ones
                named = {(one.get("name"), one.get("in")): one for one in given}
                operation["parameters"] = [*named.values()]
                yield {**operation, "method": method, "path": str(path)}


def _list(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _group(
    operations: Iterator[dict[str, Any]], spec: Mapping[str, Any]
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield name and description of each tag with its operations; an empty name for no tag."""
    stated = {
        str(tag.get("name")): str(tag.get("description") or "") for tag in _list(spec.get("tags"))
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in stated}
    for operation in operations:
        tags = operation.get("tags")
        tag = str(tags[0]) if isinstance(tags, list) and tags else ""
        found.setdefault(tag, []).append(operation)
    for tag, members in found.items():
        if members or stated.get(tag):
            yield tag, stated.get(tag, ""), members


def _name_anchor(operation: Mapping[str, Any], group: str) -> str:
    """Return the id that Redoc gives an operation below a tag with the id `group`."""
    if operation.get("operationId"):
        own = f"operation/{operation['operationId']}"
    else:
        path = operation["path"].replace("~", "~0").replace("/", "~1")
        own = f"paths/{path}/{operation['method']}"
    return f"{group}/{own}" if group else own


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
