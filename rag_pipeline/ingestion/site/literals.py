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
    return _Reader(find_root(path.parent), set() if files is None else files).read_file(path)


@dataclass(frozen=True, slots=True)
class _Module:
    """A module that was parsed: what it exports, and by name its constants, imports and changes."""

    path: Path
    exported: Node
    constants: dict[str, Node]
    imports: dict[str, str]
    changes: dict[str, dict[str, Node]]


@dataclass(slots=True)
class _Reader:
    """Reader of the expressions of a module, and of all modules that it imports.

    Attributes:
        root: The folder in which all files must be.
        files: The files that were opened.
        modules: The modules that were parsed.
        opened: The modules that are being read, each of which imports the next one.
        left: The number of expressions that may still be read.
    """

    root: Path
    files: set[Path]
    modules: dict[Path, _Module] = field(default_factory=dict)
    opened: list[_Module] = field(default_factory=list)
    left: int = MAX_NODES

    def read_file(self, path: Path, depth: int = 0) -> Literal:
        """Return the value that a module exports, or that of a JSON file.

        Raises:
            OSError: The file cannot be read.
            ModuleSyntaxError: The source is not valid, exports no value, or exceeds the limits.
        """
        if path not in self.modules:
            self.files.add(path)
            try:
                source = read_site_file(path, self.root, MAX_SOURCE_BYTES)
            except SiteFileError as error:
                raise ModuleSyntaxError(error.strerror) from error
            if path.suffix == ".json":
                self.left -= source.count(b",")
                try:
                    return as_literal(json.loads(source))
                except (ValueError, RecursionError) as error:
                    raise ModuleSyntaxError("it is not valid JSON") from error
            self.modules[path] = _parse_module(path, source)
        self.opened.append(self.modules[path])
        try:
            return self.read(self.modules[path].exported, depth)
        finally:
            self.opened.pop()

    def _import(self, target: str, node: Node, depth: int) -> Literal:
        """Return the value of a module beside this one; a package is computed."""
        place = Path(os.path.normpath(self.opened[-1].path.parent / target))
        places = [place.with_name(place.name + suffix) for suffix in _MODULE_SUFFIXES]
        if place.suffix == ".js":
            places.append(place.with_suffix(".ts"))
        path = next((one for one in places if one.is_file()), None)
        is_circle = any(path == module.path for module in self.opened)
        if not target.startswith(("./", "../")) or path is None or is_circle:
            return self._computed(node)
        try:
            return self.read_file(path, depth)
        except (OSError, ModuleSyntaxError):
            return self._computed(node)

    def read(self, node: Node, depth: int) -> Literal:
        """Return the value of an expression.

        Raises:
            ModuleSyntaxError: The expressions exceed the limits.
        """
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            message = f"line {node.start_point.row + 1} is nested too deeply, or has too many parts"
            raise ModuleSyntaxError(message)
        kind = node.type
        if kind in _WRAPPERS:
            return self.read(node.named_children[0], depth + 1)
        if kind in _FUNCTIONS:
            return FunctionLiteral(*self._quote(node))
        if kind in _WORDS:
            return _WORDS[kind]
        if kind == "number" and _text(node).isdecimal():
            return int(_text(node)[:20])
        read = _READERS.get(kind)
        return self._computed(node) if read is None else read(self, node, depth + 1)

    def _computed(self, node: Node, fallback: Literal = None) -> Computed:
        return Computed(*self._quote(node), fallback)

    def _quote(self, node: Node) -> tuple[str, str]:
        """Return the place of an expression and its source on one line, shortened."""
        source = " ".join(_text(node)[: 4 * _QUOTED_CHARACTERS].split())
        if len(source) > _QUOTED_CHARACTERS:
            source = source[: _QUOTED_CHARACTERS - 3] + "..."
        of_file = f" of {self.opened[-1].path.name}" if len(self.opened) > 1 else ""
        return f"line {node.start_point.row + 1}{of_file}", source

    def read_call(self, node: Node, depth: int) -> Literal:
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
            own = os.path.relpath(self.opened[-1].path.parent, self.opened[0].path.parent)
            parts = [own, *(self.read(part, depth) for part in named[1:])]
            texts = [part for part in parts if isinstance(part, str) and not part.startswith("/")]
            is_known = len(texts) == len(parts)
            return os.path.normpath("/".join(texts)) if is_known else self._computed(node)
        if not named or (name != "require.resolve" and (name != "require" or len(named) > 1)):
            return self._computed(node)
        target = self.read(named[0], depth)
        if name == "require" and isinstance(target, str):
            return self._import(target, node, depth)
        return target

    def read_member(self, node: Node, depth: int) -> Literal:
        """Return a property such as `sidebar.guides`; `.default` of a module is its value."""
        owner, name = self.read(node.named_children[0], depth), _text(node.named_children[-1])
        if isinstance(owner, ObjectLiteral) and owner.rest is None and name in owner.properties:
            return owner.properties[name]
        is_module = _text(node.named_children[0]).startswith("require(")
        if is_module and name == "default" and not isinstance(owner, Computed):
            return owner
        return self._computed(node)

    def read_item(self, node: Node, depth: int) -> Literal:
        """Return an item of a list, such as `versions[0]`."""
        items, index = (self.read(part, depth) for part in node.named_children[:2])
        if isinstance(items, list) and isinstance(index, int) and index < len(items):
            return items[index]
        return self._computed(node)

    def read_list(self, node: Node, depth: int) -> Literal:
        items: list[Literal] = []
        for part in _list_parts(node):
            is_spread = part.type == "spread_element"
            value = self.read(part.named_children[0] if is_spread else part, depth)
            if is_spread and isinstance(value, list):
                items += value
            else:
                items.append(self._computed(part) if is_spread else value)
        return items

    def read_string(self, node: Node, depth: int) -> Literal:
        pieces: list[str] = []
        for part in node.named_children:
            if part.type == "template_substitution":
                value = self.read(part.named_children[0], depth)
                if not isinstance(value, str):
                    return self._computed(node)
                pieces.append(value)
            else:
                is_escape = part.type == "escape_sequence"
                pieces.append(_unescape(_text(part)) if is_escape else _text(part))
            if sum(map(len, pieces)) > MAX_SOURCE_BYTES:
                return self._computed(node)
        return "".join(pieces)

    def read_object(self, node: Node, depth: int) -> ObjectLiteral:
        properties: dict[str, Literal] = {}
        rest: Computed | None = None
        for part in _list_parts(node):
            is_short = part.type == "shorthand_property_identifier"
            is_own = is_short or part.type == "method_definition"
            key = part.child_by_field_name("key") or part.child_by_field_name("name")
            key, value = part if is_short else key, part.child_by_field_name("value")
            name = None if key is None else self._read_name(key, depth)
            if name is not None and (is_own or value is not None):
                properties[name] = self.read(value or part, depth)
            else:
                spread = part.type == "spread_element"
                more = self.read(part.named_children[0], depth) if spread else None
                if isinstance(more, ObjectLiteral) and more.rest is None:
                    properties |= more.properties
                else:  # it may replace each property before it
                    properties, rest = {}, self._computed(part)
        return ObjectLiteral(properties, rest)

    def _read_name(self, key: Node, depth: int) -> str | None:
        """Return the name of a property; None if it is computed and not a known text."""
        if key.type == "string":
            key_text = self.read_string(key, depth)
        elif key.type == "computed_property_name":
            key_text = self.read(key.named_children[0], depth)
        else:
            key_text = _text(key)
        return key_text if isinstance(key_text, str) else None

    def read_constant(self, node: Node, depth: int) -> Literal:
        """Return the value of a constant; parts that the module changes are computed."""
        name = _text(node)
        module = self.opened[-1]
        if name in module.imports:
            value = self._import(module.imports[name], node, depth)
        elif name in module.constants:
            value = self.read(module.constants[name], depth)
        else:
            return self._computed(node)
        changes = module.changes.get(name, {})
        if not changes or isinstance(value, str | int | float | None):
            return value
        if not isinstance(value, ObjectLiteral) or "" in changes:
            return self._computed(next(iter(changes.values())))
        changed: dict[str, Literal] = {name: self._computed(by) for name, by in changes.items()}
        return ObjectLiteral(value.properties | changed, value.rest)

    def read_fallback(self, node: Node, depth: int) -> Literal:
        """Return a computed value with the literal on the right of `||` or `??` as its guess."""
        right = node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        fallback: Literal = None
        if right is not None and operator is not None and operator.type in {"||", "??"}:
            fallback = self.read(right, depth)
        return self._computed(node, None if isinstance(fallback, Computed) else fallback)


_WORDS: Final[dict[str, Literal]] = {"true": True, "false": False, "null": None, "undefined": None}
_READERS: Final = {
    "string": _Reader.read_string,
    "template_string": _Reader.read_string,
    "array": _Reader.read_list,
    "object": _Reader.read_object,
    "identifier": _Reader.read_constant,
    "shorthand_property_identifier": _Reader.read_constant,
    "binary_expression": _Reader.read_fallback,
    "member_expression": _Reader.read_member,
    "subscript_expression": _Reader.read_item,
    "call_expression": _Reader.read_call,
}


def _parse_module(path: Path, source: bytes) -> _Module:
    """Parse a module.

    Raises:
        ModuleSyntaxError: It has a syntax error, or exports no value.
        MissingDependencyError: The parser is not installed.
    """
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415  # an extra
        from tree_sitter_typescript import language_tsx, language_typescript  # noqa: PLC0415  # see above
    except ImportError as error:
        raise MissingDependencyError("tree-sitter-typescript", "pipeline") from error
    is_typescript = path.suffix in {".ts", ".mts", ".cts"}
    language = language_typescript() if is_typescript else language_tsx()
    root = Parser(Language(language)).parse(source).root_node
    if root.has_error:
        broken = next((node for node in _walk(root) if node.is_error or node.is_missing), root)
        name = "TypeScript" if is_typescript else "JavaScript"
        raise ModuleSyntaxError(f"line {broken.start_point.row + 1} is not valid {name}")
    exported, imports = _find_links(root)
    if exported is None:
        raise ModuleSyntaxError("it has neither `export default` nor `module.exports`")
    constants = _find_constants(root)
    named = constants.get(_text(exported), exported)
    exported, body = _find_returned(named if named.type in _FUNCTIONS else exported)
    constants |= _find_constants(body) if body is not None else {}
    return _Module(path, exported, constants, imports, _find_changes(root))


def _find_links(root: Node) -> tuple[Node | None, dict[str, str]]:
    """Return the expression that a module exports, the last one of several, and its imports.

    The imports are the modules in statements such as `import guides from "./guides"`, by name.
    """
    exported: Node | None = None
    imports: dict[str, str] = {}
    for statement in root.named_children:
        first = statement.named_children[0] if statement.named_children else statement
        source = statement.child_by_field_name("source")
        if statement.type == "import_statement" and source is not None:
            for name in first.named_children[:1]:
                imports |= {_text(name): _text(source)[1:-1]} if name.type == "identifier" else {}
        elif any(part.type == "default" for part in statement.children):
            declared = statement.child_by_field_name("declaration")
            exported = statement.child_by_field_name("value") or declared
        elif first.type == "assignment_expression":
            is_export = _text(first.named_children[0]) == "module.exports"
            exported = first.named_children[-1] if is_export else exported
    return exported, imports


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
            targets = [node.named_children[0]]
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
        names: The names of its parts in the configuration, such as `baseUrl`.
        value: The value; None if it is unknown, or if the site leaves `trailingSlash` open.
        origin: The source of the value.
        problem: A clause that says why the value is a guess or unknown; otherwise empty.
        setting: Name of the setting that has the value, in lower case, if there is one.
    """

    names: tuple[str, ...]
    value: str | bool | None
    origin: Origin
    problem: str = ""
    setting: str = ""


def read_value(
    name: str, found: Literal, is_valid: Callable[[object], bool], *default: str | bool | None
) -> ConfigValue:
    """Return a value of the configuration; `default` is Docusaurus's own, if it has one."""
    if isinstance(found, Computed):
        problem, guess = f"`{name}` {found.problem}", found.fallback
        is_local = _LOCAL.match(str(guess)) is not None  # it is for a preview only
        if guess is not None and is_valid(guess) and not is_local:
            return ConfigValue((name,), _as_value(guess), Origin.GUESS, problem)
    elif found is None and default:
        return ConfigValue((name,), default[0], Origin.DEFAULT)
    elif found is None:
        problem = f"`{name}` is missing"
    elif is_valid(found):
        return ConfigValue((name,), _as_value(found), Origin.READ)
    else:
        problem = f"`{name}` has the unexpected value {found!r:.60}"
    return ConfigValue((name,), None, Origin.UNKNOWN, problem)


def take_value(options: Literal, *names: str) -> Literal:
    """Return a property of a value, or of its properties by their names.

    Raises:
        ValueError: The value, or an item of a list, is computed. The message is a clause.
    """
    found = options
    for name in names:
        found = get_property(found, name)
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, Computed):
            raise ValueError(f"`{'.'.join(names)}` {item.problem}")  # noqa: TRY004  # the caller reports it
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
