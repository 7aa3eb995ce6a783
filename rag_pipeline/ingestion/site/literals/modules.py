"""Parse a module, and find what it exports, imports, declares and changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rag_pipeline.core.errors import MissingDependencyError
from rag_pipeline.ingestion.site.literals.changes import WHOLE, find_changes
from rag_pipeline.ingestion.site.literals.syntax import FUNCTIONS, child, line, parts, text, walk
from rag_pipeline.ingestion.site.literals.values import ModuleSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tree_sitter import Node

DEFAULT: Final = "default"
COMMON_JS: Final = "module.exports"
WRAPPERS: Final = {
    *("as_expression", "satisfies_expression", "parenthesized_expression"),
    *("non_null_expression", "await_expression"),
}

_TYPESCRIPT: Final = {".ts", ".mts", ".cts"}
_DECLARATIONS: Final = {"lexical_declaration", "variable_declaration"}


class Import(NamedTuple):
    """A name that a module imports.

    Attributes:
        specifier: The module, such as `./versions.json`.
        name: The name of the export: `default`, `*` for all of them, or another name.
    """

    specifier: str
    name: str


class Binding(NamedTuple):
    """The value of a variable: an expression, or one of its properties if `key` is not None."""

    value: Node
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A module that was parsed.

    Attributes:
        path: Its file.
        exports: The exported expressions by name; `module.exports` for the whole of a CommonJS
            module.
        imports: The imported names.
        bindings: The initial values of the variables and functions at its top level.
        changes: The nodes that change properties of a variable, by variable and property.
    """

    path: Path
    exports: dict[str, Node]
    imports: dict[str, Import]
    bindings: dict[str, Binding]
    changes: dict[str, dict[str, Node]]


def parse_module(path: Path) -> Module:
    """Parse a module.

    Raises:
        OSError: The file cannot be read.
        ModuleSyntaxError: The source has a syntax error.
        MissingDependencyError: The parser is not installed.
    """
    root = _parse(path.read_bytes(), typescript=path.suffix in _TYPESCRIPT)
    if broken := next((node for node in walk(root) if node.is_error or node.is_missing), None):
        language = "TypeScript" if path.suffix in _TYPESCRIPT else "JavaScript"
        raise ModuleSyntaxError(f"line {line(broken)} is not valid {language}")
    bindings = find_bindings(root)
    return Module(path, _find_exports(root), _find_imports(root), bindings, find_changes(root))


def _parse(source: bytes, *, typescript: bool) -> Node:
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415  # an extra
        from tree_sitter_typescript import language_tsx, language_typescript  # noqa: PLC0415  # see above
    except ImportError as error:
        raise MissingDependencyError("tree-sitter-typescript", "pipeline") from error
    language = language_typescript() if typescript else language_tsx()
    return Parser(Language(language)).parse(source).root_node


def _find_exports(root: Node) -> dict[str, Node]:
    exports: dict[str, Node] = {}
    for statement in root.named_children:
        if statement.type == "export_statement":
            exports |= dict(_list_exports(statement))
            continue
        assigned = statement.named_children[0] if statement.named_children else statement
        if assigned.type == "assignment_expression":
            target, value = text(child(assigned, "left")), child(assigned, "right")
            owner, _, name = target.rpartition(".")
            if target == COMMON_JS:
                exports[COMMON_JS] = value
            elif owner in {"exports", COMMON_JS}:
                exports[name] = value
    return exports


def _list_exports(statement: Node) -> Iterator[tuple[str, Node]]:
    """Yield name and value of each export of a statement; values of other modules are left out."""
    declared = statement.child_by_field_name("declaration")
    value = statement.child_by_field_name("value") or declared
    if value is not None and any(part.type == "default" for part in statement.children):
        yield DEFAULT, value
    elif declared is not None:
        for name, binding in _list_bindings(declared):
            if binding.key is None:
                yield name, binding.value
    elif statement.child_by_field_name("source") is None:
        for clause in statement.named_children:
            for one in clause.named_children if clause.type == "export_clause" else ():
                exported = one.child_by_field_name("alias") or child(one, "name")
                yield text(exported), child(one, "name")


def _find_imports(root: Node) -> dict[str, Import]:
    """Return the names that `import` and `require` declare at the top level of a module."""
    imports: dict[str, Import] = {}
    for statement in root.named_children:
        if statement.type == "import_statement":
            source = statement.child_by_field_name("source")
            if source is None:  # import x = require('y')
                continue
            specifier = text(source).strip("'\"")
            for node in walk(statement):
                parent = node.parent.type if node.parent else ""
                if node.type == "namespace_import":
                    imports[text(node.named_children[0])] = Import(specifier, WHOLE)
                elif node.type == "import_specifier":
                    named = child(node, "name")
                    alias = node.child_by_field_name("alias") or named
                    imports[text(alias)] = Import(specifier, text(named))
                elif node.type == "identifier" and parent == "import_clause":
                    imports[text(node)] = Import(specifier, DEFAULT)
        for name, binding in _list_bindings(statement):
            required = find_required(binding.value)
            if required:
                imports[name] = Import(required, binding.key or WHOLE)
    return imports


def find_required(node: Node) -> str:
    """Return the module that a call of `require` names; empty if the node is no such call."""
    if node.type != "call_expression" or text(child(node, "function")) != "require":
        return ""
    arguments = parts(child(node, "arguments"))
    return text(arguments[0]).strip("'\"`") if arguments else ""


def find_bindings(block: Node) -> dict[str, Binding]:
    """Return the initial values of the variables and functions that a block declares."""
    bindings: dict[str, Binding] = {}
    for statement in block.named_children:
        bindings |= dict(_list_bindings(statement))
    return bindings


def _list_bindings(statement: Node) -> Iterator[tuple[str, Binding]]:
    if statement.type == "export_statement":
        declared = statement.child_by_field_name("declaration")
        if declared is not None:
            yield from _list_bindings(declared)
    elif statement.type in FUNCTIONS:
        name = statement.child_by_field_name("name")
        if name is not None:
            yield text(name), Binding(statement)
    elif statement.type in _DECLARATIONS:
        for declared in statement.named_children:
            target, value = (declared.child_by_field_name(part) for part in ("name", "value"))
            if target is not None and value is not None:
                yield from _bind(target, value)


def _bind(target: Node, value: Node) -> Iterator[tuple[str, Binding]]:
    """Yield the variables of a declaration such as `{a, b: c} = value`."""
    if target.type == "identifier":
        yield text(target), Binding(value)
    for part in target.named_children if target.type == "object_pattern" else ():
        if part.type == "shorthand_property_identifier_pattern":
            yield text(part), Binding(value, text(part))
        elif part.type == "pair_pattern" and child(part, "value").type == "identifier":
            yield text(child(part, "value")), Binding(value, text(child(part, "key")))


def find_function(node: Node, bindings: dict[str, Binding]) -> Node | None:
    """Return the function without parameters that an expression is; None if it is none."""
    while node.type in WRAPPERS:
        node = node.named_children[0]
    if node.type == "identifier" and text(node) in bindings:
        value, key = bindings[text(node)]
        if key is None and value.type in FUNCTIONS:
            node = value
    parameters = node.child_by_field_name("parameters")
    takes_none = parameters is not None and not parts(parameters)
    return node if node.type in FUNCTIONS and takes_none else None
