"""Read the plain literals of the value that a JavaScript or TypeScript module exports.

The module is never run. Strings, numbers, booleans, lists and objects are read, names of constants
that the same module declares, and the values that it imports from modules and JSON files beside it.
Everything else becomes a `Computed` value with its place.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.errors import MissingDependencyError
from rag_pipeline.core.site.files import SiteFileError, find_root, read_site_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node


MAX_SOURCE_BYTES: Final = 1024 * 1024
"""The size of the largest module that is read."""

MAX_DEPTH: Final = 100
"""The deepest nesting of expressions that is read."""

MAX_NODES: Final = 50_000
"""The number of expressions that are read; a constant counts each time that it is used."""

_QUOTED_CHARACTERS: Final = 60
_TYPESCRIPT: Final = {".ts", ".mts", ".cts"}
_WRAPPERS: Final = {
    *("as_expression", "satisfies_expression", "parenthesized_expression"),
    "non_null_expression",
}
_FUNCTIONS: Final = {
    *("arrow_function", "function_declaration", "function_expression", "generator_function"),
    *("generator_function_declaration", "method_definition"),
}
_STATEMENTS: Final = {"expression_statement", "await_expression"}
_READING_METHODS: Final = {
    *("at", "concat", "every", "filter", "find", "findIndex", "flatMap", "includes", "indexOf"),
    *("join", "map", "slice", "some"),
}
_MODULE_SUFFIXES: Final = ("", ".js", ".ts", ".json", ".mjs", ".cjs", ".mts", ".cts")
_CONTROL_CHARACTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "\n": ""}


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that the source does not state literally.

    Attributes:
        place: The line of the expression, 1-based, such as `line 3`, or `line 3 of links.js` in a
            module that the first one imports.
        source: The expression, shortened to one line.
        fallback: The literal that the source names for other cases, on the right of `||` or `??`;
            None without one.
    """

    place: str
    source: str
    fallback: Literal = None

    @property
    def problem(self) -> str:
        """A clause that says where the value is computed."""
        return f"is computed in {self.place} (`{self.source}`)"


@dataclass(frozen=True, slots=True)
class FunctionLiteral(Computed):
    """A function that the source declares."""


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """An object with its properties.

    Attributes:
        properties: The properties by name.
        rest: A value from which properties that are not listed may come; None if all are listed.
    """

    properties: dict[str, Literal] = field(default_factory=dict)
    rest: Computed | None = None

    def get(self, name: str) -> Literal:
        """Return a property; None if the object has no such property."""
        return self.properties.get(name, self.rest)


Literal: TypeAlias = "str | float | bool | list[Literal] | ObjectLiteral | Computed | None"
"""A value of the source; None for `null`, `undefined` and a missing property."""


class ModuleSyntaxError(ValueError):
    """The module cannot be read: a syntax error, no exported value, or more than the limits."""


def as_literal(value: object) -> Literal:
    """Return a value of JSON as a value of a module."""
    if isinstance(value, dict):
        return ObjectLiteral({str(name): as_literal(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return [as_literal(inner) for inner in value]
    return value if isinstance(value, (str, float, int, bool)) else None


def read_exported_value(path: Path, files: set[Path] | None = None) -> Literal:
    """Return the value of `export default` or `module.exports`, or of a JSON file.

    Args:
        path: The module.
        files: Receives the path of each file that is read.

    Raises:
        OSError: The file cannot be read.
        ModuleSyntaxError: The source has a syntax error, is larger than the limits of this module,
            or exports no such value.
        MissingDependencyError: The parser is not installed.
    """
    progress = _Progress(find_root(path.parent), set() if files is None else files)
    return _Reader(path, progress).read_export()


@dataclass(slots=True)
class _Progress:
    """The state of reading a module, together with all modules that it imports.

    Attributes:
        root: The folder in which all files must be.
        files: The files that were opened.
        modules: The modules that were parsed.
        importers: The modules that are being read, each of which imports the next one.
        left: The number of expressions that may still be read.
    """

    root: Path
    files: set[Path]
    modules: dict[Path, _Reader] = field(default_factory=dict)
    importers: list[Path] = field(default_factory=list)
    left: int = MAX_NODES


class _Reader:
    """Reader of the expressions of one module, or of a JSON file."""

    def __init__(self, path: Path, progress: _Progress) -> None:
        self._path = path
        self._progress = progress
        progress.files.add(path)
        try:
            self._source = read_site_file(path, progress.root, MAX_SOURCE_BYTES)
        except SiteFileError as error:
            raise ModuleSyntaxError(error.strerror) from error
        if path.suffix == ".json":
            return
        root = _parse(self._source, typescript=path.suffix in _TYPESCRIPT)
        if root.has_error:
            broken = next((node for node in _walk(root) if node.is_error or node.is_missing), root)
            language = "TypeScript" if path.suffix in _TYPESCRIPT else "JavaScript"
            message = f"line {broken.start_point.row + 1} is not valid {language}"
            raise ModuleSyntaxError(message)
        exported = _find_export(root)
        if exported is None:
            message = "it has neither `export default` nor `module.exports`"
            raise ModuleSyntaxError(message)
        self._constants, self._changes = _find_constants(root), _find_changes(root)
        named = self._constants.get(_text(exported), exported)
        is_function = named.type in _FUNCTIONS
        self._exported, body = _find_returned(named if is_function else exported)
        self._constants |= _find_constants(body) if body is not None else {}
        self._imports = _find_imports(root)
        progress.modules[path] = self

    def read_export(self, depth: int = 0) -> Literal:
        """Return the exported value.

        Raises:
            ModuleSyntaxError: The expressions exceed the limits, or the JSON is not valid.
        """
        if self._path.suffix == ".json":
            self._progress.left -= self._source.count(b",")
            return _read_json(self._source)
        self._progress.importers.append(self._path)
        try:
            return self.read(self._exported, depth)
        finally:
            self._progress.importers.pop()

    def _import(self, target: str, node: Node, depth: int) -> Literal:
        """Return the value of a module beside this one; a package is computed."""
        place = Path(os.path.normpath(self._path.parent / target))
        places = [place.with_name(place.name + suffix) for suffix in _MODULE_SUFFIXES]
        if place.suffix == ".js":
            places.append(place.with_suffix(".ts"))
        path = next((one for one in places if one.is_file()), None)
        is_circle = path in self._progress.importers
        if not target.startswith(("./", "../")) or path is None or is_circle:
            return Computed(*self._quote(node))
        try:
            module = self._progress.modules.get(path) or _Reader(path, self._progress)
            return module.read_export(depth)
        except (OSError, ModuleSyntaxError):
            return Computed(*self._quote(node))

    def read(self, node: Node, depth: int = 0) -> Literal:  # noqa: C901, PLR0911, PLR0912  # one case per kind of expression
        """Return the value of an expression.

        Raises:
            ModuleSyntaxError: The expressions exceed the limits.
        """
        self._progress.left -= 1
        if depth > MAX_DEPTH or self._progress.left < 0:
            message = f"line {node.start_point.row + 1} is nested too deeply, or has too many parts"
            raise ModuleSyntaxError(message)
        depth += 1
        kind = node.type
        if kind in _WRAPPERS:
            return self.read(node.named_children[0], depth)
        if kind in {"string", "template_string"}:
            return self._read_text(node, depth)
        if kind in {"true", "false"}:
            return kind == "true"
        if kind in {"null", "undefined"}:
            return None
        if kind == "number" and _text(node).isdecimal():
            return int(_text(node)[:20])
        if kind == "array":
            return self._read_list(node, depth)
        if kind == "object":
            return self._read_object(node, depth)
        if kind in _FUNCTIONS:
            return FunctionLiteral(*self._quote(node))
        if kind in {"identifier", "shorthand_property_identifier"}:
            return self._read_constant(node, depth)
        if kind == "binary_expression":
            return self._read_fallback(node, depth)
        if kind == "member_expression":
            return self._read_member(node, depth)
        if kind == "subscript_expression":
            return self._read_item(node, depth)
        if kind == "call_expression":
            return self._read_call(node, depth)
        return Computed(*self._quote(node))

    def _quote(self, node: Node) -> tuple[str, str]:
        """Return the place of an expression and its source on one line, shortened."""
        source = " ".join(_text(node)[: 4 * _QUOTED_CHARACTERS].split())
        if len(source) > _QUOTED_CHARACTERS:
            source = source[: _QUOTED_CHARACTERS - 3] + "..."
        is_imported = self._path != self._progress.importers[0]
        of_file = f" of {self._path.name}" if is_imported else ""
        return f"line {node.start_point.row + 1}{of_file}", source

    def _read_call(self, node: Node, depth: int) -> Literal:
        """Return the value of `require(...)`, the path in `require.resolve(...)`, or a list.

        `[...].filter(Boolean)` is the list without the items that are false or missing, and
        `path.join(__dirname, ...)` is a path below the folder of the first module.
        """
        name, named = _text(node.named_children[0]), _list_parts(node.named_children[-1])
        if name.endswith("].filter") and [_text(one) for one in named] == ["Boolean"]:
            items = self.read(node.named_children[0].named_children[0], depth)
            return [one for one in items if one] if isinstance(items, list) else items
        if name in {"path.join", "path.resolve"} and [_text(one) for one in named[:1]] == [
            "__dirname"
        ]:
            own = os.path.relpath(self._path.parent, self._progress.importers[0].parent)
            parts = [own, *(self.read(part, depth) for part in named[1:])]
            texts = [part for part in parts if isinstance(part, str) and not part.startswith("/")]
            is_known = len(texts) == len(parts)
            return os.path.normpath("/".join(texts)) if is_known else Computed(*self._quote(node))
        if not named or (name != "require.resolve" and (name != "require" or len(named) > 1)):
            return Computed(*self._quote(node))
        target = self.read(named[0], depth)
        if name == "require" and isinstance(target, str):
            return self._import(target, node, depth)
        return target

    def _read_member(self, node: Node, depth: int) -> Literal:
        """Return a property such as `sidebar.guides`; `.default` of a module is its value."""
        owner, name = self.read(node.named_children[0], depth), _text(node.named_children[-1])
        if isinstance(owner, ObjectLiteral) and owner.rest is None and name in owner.properties:
            return owner.properties[name]
        is_module = _text(node.named_children[0]).startswith("require(")
        if is_module and name == "default" and not isinstance(owner, Computed):
            return owner
        return Computed(*self._quote(node))

    def _read_item(self, node: Node, depth: int) -> Literal:
        """Return an item of a list, such as `versions[0]`."""
        items, index = (self.read(part, depth) for part in node.named_children[:2])
        if isinstance(items, list) and isinstance(index, int) and index < len(items):
            return items[index]
        return Computed(*self._quote(node))

    def _read_list(self, node: Node, depth: int) -> Literal:
        items: list[Literal] = []
        for part in _list_parts(node):
            is_spread = part.type == "spread_element"
            value = self.read(part.named_children[0] if is_spread else part, depth)
            if is_spread and isinstance(value, list):
                items += value
            else:
                items.append(Computed(*self._quote(part)) if is_spread else value)
        return items

    def _read_text(self, node: Node, depth: int) -> Literal:
        pieces: list[str] = []
        for part in node.named_children:
            if part.type == "template_substitution":
                value = self.read(part.named_children[0], depth)
                if not isinstance(value, str):
                    return Computed(*self._quote(node))
                pieces.append(value)
            else:
                is_escape = part.type == "escape_sequence"
                pieces.append(_unescape(_text(part)) if is_escape else _text(part))
            if sum(map(len, pieces)) > MAX_SOURCE_BYTES:
                return Computed(*self._quote(node))
        return "".join(pieces)

    def _read_object(self, node: Node, depth: int) -> ObjectLiteral:
        properties: dict[str, Literal] = {}
        rest: Computed | None = None
        for part in _list_parts(node):
            key = part.child_by_field_name("key") or part.child_by_field_name("name")
            value = part.child_by_field_name("value")
            name = None if key is None else self._read_name(key, depth)
            if part.type == "shorthand_property_identifier":
                properties[_text(part)] = self.read(part, depth)
            elif part.type == "method_definition" and name is not None:
                properties[name] = self.read(part, depth)
            elif value is not None and name is not None:
                properties[name] = self.read(value, depth)
            else:
                spread = part.type == "spread_element"
                more = self.read(part.named_children[0], depth) if spread else None
                if isinstance(more, ObjectLiteral) and more.rest is None:
                    properties |= more.properties
                else:  # it may replace each property before it
                    properties, rest = {}, Computed(*self._quote(part))
        return ObjectLiteral(properties, rest)

    def _read_name(self, key: Node, depth: int) -> str | None:
        """Return the name of a property; None if it is computed and not a known text."""
        if key.type == "string":
            key_text = self._read_text(key, depth)
        elif key.type == "computed_property_name":
            key_text = self.read(key.named_children[0], depth)
        else:
            key_text = _text(key)
        return key_text if isinstance(key_text, str) else None

    def _read_constant(self, node: Node, depth: int) -> Literal:
        """Return the value of a constant; parts that the module changes are computed."""
        name = _text(node)
        if name in self._imports:
            value = self._import(self._imports[name], node, depth)
        elif name in self._constants:
            value = self.read(self._constants[name], depth)
        else:
            return Computed(*self._quote(node))
        changes = self._changes.get(name, {})
        if not changes or isinstance(value, str | int | float | None):
            return value
        if not isinstance(value, ObjectLiteral) or "" in changes:
            return Computed(*self._quote(next(iter(changes.values()))))
        changed: dict[str, Literal] = {
            name: Computed(*self._quote(by)) for name, by in changes.items()
        }
        return ObjectLiteral(value.properties | changed, value.rest)

    def _read_fallback(self, node: Node, depth: int) -> Literal:
        """Return a computed value with the literal on the right of `||` or `??` as its guess."""
        right = node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        fallback: Literal = None
        if right is not None and operator is not None and operator.type in {"||", "??"}:
            fallback = self.read(right, depth)
        return Computed(*self._quote(node), None if isinstance(fallback, Computed) else fallback)


def _parse(source: bytes, *, typescript: bool) -> Node:
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415  # an extra
        from tree_sitter_typescript import language_tsx, language_typescript  # noqa: PLC0415  # see above
    except ImportError as error:
        raise MissingDependencyError("tree-sitter-typescript", "pipeline") from error
    language = language_typescript() if typescript else language_tsx()
    return Parser(Language(language)).parse(source).root_node


def _read_json(source: bytes) -> Literal:
    """Return the value of a JSON file.

    Raises:
        ModuleSyntaxError: It is not valid JSON.
    """
    try:
        return as_literal(json.loads(source))
    except (ValueError, RecursionError) as error:
        message = "it is not valid JSON"
        raise ModuleSyntaxError(message) from error


def _find_export(root: Node) -> Node | None:
    """Return the expression that the module exports; the last one if there are several."""
    found = None
    for statement in root.named_children:
        if statement.type == "export_statement":
            if any(part.type == "default" for part in statement.children):
                declared = statement.child_by_field_name("declaration")
                found = statement.child_by_field_name("value") or declared
        elif statement.named_children and statement.named_children[0].type == (
            "assignment_expression"
        ):
            left, right = _split(statement.named_children[0])
            found = right if _text(left) == "module.exports" else found
    return found


def _find_returned(exported: Node) -> tuple[Node, Node | None]:
    """Return the value that an exported function returns at its end, and the function's body.

    A value that is no such function is returned unchanged, without a body.
    """
    body = exported.child_by_field_name("body") if exported.type in _FUNCTIONS else None
    if body is None or body.type != "statement_block":
        return body or exported, None
    last = body.named_children[-1] if body.named_children else body
    is_plain = last.type == "return_statement" and len(last.named_children) == 1
    has_others = sum(node.type == "return_statement" for node in _walk(body)) > 1
    return (last.named_children[0], body) if is_plain and not has_others else (exported, None)


def _find_constants(root: Node) -> dict[str, Node]:
    """Return the values of the `const` variables and the functions at the top level, by name."""
    constants: dict[str, Node] = {}
    for statement in root.named_children:
        declared = statement.child_by_field_name("declaration") or statement
        if declared.type == "lexical_declaration" and declared.children[0].type == "const":
            for one in declared.named_children:
                name, value = (one.child_by_field_name(part) for part in ("name", "value"))
                if name is not None and value is not None and name.type == "identifier":
                    constants[_text(name)] = value
        elif declared.type in _FUNCTIONS and (name := declared.child_by_field_name("name")):
            constants[_text(name)] = declared
    return constants


def _find_imports(root: Node) -> dict[str, str]:
    """Return the modules in statements such as `import guides from "./guides"`, by name."""
    imports: dict[str, str] = {}
    for statement in root.named_children:
        source = statement.child_by_field_name("source")
        clause = statement.named_children[0] if statement.named_children else None
        if statement.type != "import_statement" or source is None or clause is None:
            continue
        if clause.named_children and clause.named_children[0].type == "identifier":
            imports[_text(clause.named_children[0])] = _text(source)[1:-1]
    return imports


def _find_changes(root: Node) -> dict[str, dict[str, Node]]:
    """Return the expressions that may change a variable, by its name and property.

    These are assignments to a property, calls of a method of it or of a property except those that
    only read a list, and calls of a method, or of a function whose result is not used, that is
    given the variable. A function whose result is used, as in `template: make(config)`, is expected
    to change nothing.
    """
    changes: dict[str, dict[str, Node]] = {}
    for node in _walk(root):
        targets: list[Node] = []
        if node.type in {"assignment_expression", "augmented_assignment_expression"}:
            targets = [_split(node)[0]]
        elif node.type == "call_expression":
            function, arguments = (
                node.child_by_field_name(part) for part in ("function", "arguments")
            )
            is_statement = node.parent is not None and node.parent.type in _STATEMENTS
            is_method = function is not None and function.type == "member_expression"
            if arguments is not None and (is_statement or is_method):
                targets = [one for one in arguments.named_children if one.type == "identifier"]
            if function is not None and is_method:
                is_reading = _text(function.named_children[-1]) in _READING_METHODS
                targets += [] if is_reading else [function]
        for target in targets:
            owner, name = target, ""
            while owner.type in {"member_expression", "subscript_expression"}:
                key = owner.child_by_field_name("property")
                name = "" if key is None or node.type == "call_expression" else _text(key)
                owner = owner.named_children[0]
            if owner.type == "identifier":
                changes.setdefault(_text(owner), {}).setdefault(name, node)
    return changes


def _walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def _list_parts(node: Node) -> list[Node]:
    return [one for one in node.named_children if one.type != "comment"]


def _split(assignment: Node) -> tuple[Node, Node]:
    return assignment.named_children[0], assignment.named_children[-1]


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _unescape(sequence: str) -> str:
    body = sequence[1:]
    if len(body) > 1 and body[0] in "ux":
        code = int(body[1:].strip("{}"), 16)
        return chr(code) if code <= 0x10FFFF else ""  # the last character of Unicode
    return _CONTROL_CHARACTERS.get(body, body)


_LOCAL: Final = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\])")


class Origin(StrEnum):
    """The source of a value of the site's configuration, from the most to the least certain."""

    READ = "read"
    DEFAULT = "default"
    GUESS = "guess"
    UNKNOWN = "unknown"

    @property
    def is_certain(self) -> bool:
        """True if the value was read or is Docusaurus's default."""
        return self in {Origin.READ, Origin.DEFAULT}


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value of the site's configuration.

    Attributes:
        name: Name in the configuration, such as `baseUrl`.
        value: The value; None if it is unknown, or if the site leaves `trailingSlash` open.
        origin: The source of the value.
        problem: A clause that says why the value is a guess or unknown; otherwise empty.
    """

    name: str
    value: str | bool | None
    origin: Origin
    problem: str = ""


def read_value(
    name: str, found: Literal, is_valid: Callable[[object], bool], *default: str | bool | None
) -> ConfigValue:
    """Return a value of the configuration; `default` is Docusaurus's own, if it has one."""
    if isinstance(found, Computed):
        problem = f"`{name}` {found.problem}"
        is_local = _LOCAL.match(str(found.fallback)) is not None  # it is for a preview only
        if found.fallback is not None and is_valid(found.fallback) and not is_local:
            return ConfigValue(name, _as_value(found.fallback), Origin.GUESS, problem)
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    if found is None:
        if default:
            return ConfigValue(name, default[0], Origin.DEFAULT)
        return ConfigValue(name, None, Origin.UNKNOWN, f"`{name}` is missing")
    if not is_valid(found):
        problem = f"`{name}` has the unexpected value {found!r:.60}"
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    return ConfigValue(name, _as_value(found), Origin.READ)


def take_value(name: str, found: Literal) -> Literal:
    """Return a value of the configuration.

    Raises:
        ValueError: The value, or an item of a list, is computed. The message is a clause.
    """
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, Computed):
            raise ValueError(f"`{name}` {item.problem}")  # noqa: TRY004  # the caller reports it
    return found


def get_property(options: Literal, name: str) -> Literal:
    """Return a property of a value; None if the value is no object or has no such property."""
    if isinstance(options, ObjectLiteral):
        return options.get(name)
    return options if isinstance(options, Computed) else None


def is_text(value: object) -> bool:
    """Return True for a text."""
    return isinstance(value, str)


def _as_value(value: Literal) -> str | bool:
    return value if isinstance(value, bool) else str(value)
