"""Read the value that a JavaScript or TypeScript module exports, without running the module.

Only values that the source states literally are read. Everything else becomes a `Computed` value
with its place, so that the caller can say which part of the file cannot be read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_QUOTED_CHARACTERS: Final = 60
_WRAPPERS: Final = {"as_expression", "satisfies_expression", "parenthesized_expression"}
_CONTROL_CHARACTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "\n": ""}
_WHOLE: Final = "*"  # stands for all properties of an object


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that the source does not state literally.

    Attributes:
        line: Line of the expression, 1-based.
        source: The expression, shortened to one line.
        fallback: The literal value on the right of `||` or `??`, or in the last part of a
            condition; None if there is none.
    """

    line: int
    source: str
    fallback: Literal = None


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """An object with its properties.

    Attributes:
        properties: The properties by name.
        rest: A value from which properties that are not listed may come; None if there are none.
    """

    properties: dict[str, Literal] = field(default_factory=dict)
    rest: Computed | None = None

    def get(self, name: str) -> Literal:
        """Return a property; None if the object has no such property."""
        return self.properties.get(name, self.rest)


Literal: TypeAlias = "str | float | bool | list[Literal] | ObjectLiteral | Computed | None"
"""A value of the source; None for `null`, `undefined` and a missing property."""


class ModuleSyntaxError(ValueError):
    """The source is not valid JavaScript or TypeScript, or exports no value."""


def read_exported_value(source: bytes, *, typescript: bool) -> Literal:
    """Return the value of `export default` or `module.exports`.

    A constant of the module is followed to its declaration. A part of it that the module changes
    afterwards is a `Computed` value.

    Args:
        source: The module in UTF-8.
        typescript: True for TypeScript, False for JavaScript, which may contain JSX.

    Raises:
        ModuleSyntaxError: The source has a syntax error, or there is no such export.
        MissingDependencyError: The parser is not installed.
    """
    root = _parse(source, typescript=typescript)
    if broken := next((node for node in _walk(root) if node.is_error or node.is_missing), None):
        language = "TypeScript" if typescript else "JavaScript"
        raise ModuleSyntaxError(f"line {_line(broken)} is not valid {language}")
    exported = _find_export(root)
    if exported is None:
        message = "it has neither `export default` nor `module.exports`"
        raise ModuleSyntaxError(message)
    return _Reader(_find_constants(root), _find_changes(root)).read(exported)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of expressions.

    Attributes:
        constants: The initial value of each constant of the module.
        changes: The nodes that change properties of a constant, by constant and property.
    """

    constants: dict[str, Node]
    changes: dict[str, dict[str, Node]]

    def read(self, node: Node, seen: frozenset[str] = frozenset()) -> Literal:  # noqa: C901, PLR0911  # one case per kind of expression
        """Return the value of an expression; `seen` are the constants that are being read."""
        kind, text = node.type, _text(node)
        if kind in _WRAPPERS:
            return self.read(node.named_children[0], seen)
        if kind in {"string", "template_string"}:
            return self._read_string(node, seen)
        if kind in {"true", "false"}:
            return kind == "true"
        if kind in {"null", "undefined"}:
            return None
        if kind == "number" and text.isdecimal():
            return int(text)
        if kind == "array":
            return [self.read(child, seen) for child in _parts(node)]
        if kind == "object":
            return self._read_object(node, seen)
        if kind in {"identifier", "shorthand_property_identifier"} and text not in seen:
            return self._read_constant(node, seen)
        if kind == "member_expression":
            owner = self.read(_child(node, "object"), seen)
            if isinstance(owner, ObjectLiteral):
                return owner.get(_text(_child(node, "property")))
        if kind == "call_expression" and _text(_child(node, "function")) == "require.resolve":
            arguments = _parts(_child(node, "arguments"))
            return self.read(arguments[0], seen) if arguments else _compute(node)
        return _compute(node, self._read_fallback(node, seen))

    def _read_string(self, node: Node, seen: frozenset[str]) -> Literal:
        pieces = []
        for child in node.named_children:
            if child.type == "template_substitution":
                value = self.read(child.named_children[0], seen)
                if not isinstance(value, str):
                    return _compute(node)
                pieces.append(value)
            elif child.type == "escape_sequence":
                pieces.append(_unescape(_text(child)))
            else:
                pieces.append(_text(child))
        return "".join(pieces)

    def _read_object(self, node: Node, seen: frozenset[str]) -> ObjectLiteral:
        properties: dict[str, Literal] = {}
        rest: Computed | None = None
        for child in _parts(node):
            key = child.child_by_field_name("key")
            if child.type == "shorthand_property_identifier":
                properties[_text(child)] = self.read(child, seen)
            elif child.type == "method_definition":
                properties[_text(_child(child, "name"))] = _compute(child)
            elif key is not None and key.type != "computed_property_name":
                name = self.read(key, seen) if key.type == "string" else _text(key)
                properties[str(name)] = self.read(_child(child, "value"), seen)
            else:
                spread = child.type == "spread_element"
                more = self.read(child.named_children[0], seen) if spread else None
                if isinstance(more, ObjectLiteral) and more.rest is None:
                    properties |= more.properties
                else:  # it may replace each property before it
                    properties, rest = {}, _compute(child)
        return ObjectLiteral(properties, rest)

    def _read_constant(self, node: Node, seen: frozenset[str]) -> Literal:
        name = _text(node)
        if name not in self.constants:
            return _compute(node)
        value, changes = self.read(self.constants[name], seen | {name}), self.changes.get(name, {})
        if not changes:
            return value
        if not isinstance(value, ObjectLiteral) or _WHOLE in changes:
            return _compute(next(iter(changes.values())))
        changed: dict[str, Literal] = {key: _compute(change) for key, change in changes.items()}
        return ObjectLiteral(value.properties | changed, value.rest)

    def _read_fallback(self, node: Node, seen: frozenset[str]) -> Literal:
        operator = node.child_by_field_name("operator")
        is_choice = operator is not None and _text(operator) in {"||", "??"}
        last = node.child_by_field_name("right" if is_choice else "alternative")
        return self.read(last, seen) if last is not None else None


def _parse(source: bytes, *, typescript: bool) -> Node:
    try:
        from tree_sitter import Language, Parser  # noqa: PLC0415  # an extra
        from tree_sitter_typescript import language_tsx, language_typescript  # noqa: PLC0415  # see above
    except ImportError as error:
        raise MissingDependencyError("tree-sitter-typescript", "pipeline") from error
    language = language_typescript() if typescript else language_tsx()
    return Parser(Language(language)).parse(source).root_node


def _find_export(root: Node) -> Node | None:
    for statement in root.named_children:
        if statement.type == "export_statement":
            value = statement.child_by_field_name("value")
            if value is not None:
                return value
            declared = statement.child_by_field_name("declaration")
            kinds = {child.type for child in statement.children}
            if declared is not None and "default" in kinds:
                return declared
        assigned = statement.named_children[0] if statement.named_children else statement
        if assigned.type == "assignment_expression" and (
            _text(_child(assigned, "left")) == "module.exports"
        ):
            return _child(assigned, "right")
    return None


def _find_constants(root: Node) -> dict[str, Node]:
    """Return the initial value of each `const` at the top level of a module, by name."""
    constants = {}
    for statement in root.named_children:
        if statement.type == "lexical_declaration" and statement.children[0].type == "const":
            for declared in statement.named_children:
                name, value = (declared.child_by_field_name(part) for part in ("name", "value"))
                if name is not None and value is not None and name.type == "identifier":
                    constants[_text(name)] = value
    return constants


def _find_changes(root: Node) -> dict[str, dict[str, Node]]:
    """Return the nodes that may change properties of a variable, by variable and property.

    These are assignments to a property, calls of a property's methods, and calls of a function that
    is given the variable.
    """
    changes: dict[str, dict[str, Node]] = defaultdict(dict)
    for node in _walk(root):
        if node.type in {"assignment_expression", "augmented_assignment_expression"}:
            targets = [_child(node, "left")]
        elif node.type == "call_expression":
            function, arguments = _child(node, "function"), _child(node, "arguments")
            targets = [child for child in arguments.named_children if child.type == "identifier"]
            if function.type == "member_expression":
                targets.append(_child(function, "object"))
        else:
            continue
        for target in targets:
            name, key = _split_target(target)
            if name:
                changes[name].setdefault(key, node)
    return changes


def _split_target(node: Node) -> tuple[str, str]:
    """Return the variable and the property of an expression such as `config.presets[0]`."""
    key = _WHOLE
    while node.type in {"member_expression", "subscript_expression"}:
        member = node.type == "member_expression"
        key = _text(_child(node, "property")) if member else _WHOLE
        node = _child(node, "object")
    return (_text(node), key) if node.type == "identifier" else ("", key)


def _walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def _compute(node: Node, fallback: Literal = None) -> Computed:
    source = " ".join(_text(node).split())
    if len(source) > _QUOTED_CHARACTERS:
        source = source[: _QUOTED_CHARACTERS - 3] + "..."
    is_literal = not isinstance(fallback, (Computed, ObjectLiteral, list))
    return Computed(_line(node), source, fallback if is_literal else None)


def _unescape(sequence: str) -> str:
    body = sequence[1:]
    if len(body) > 1 and body[0] in "ux":
        return chr(int(body[1:].strip("{}"), 16))
    return _CONTROL_CHARACTERS.get(body, body)


def _parts(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _child(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        message = f"line {_line(node)} has an unknown form"
        raise ModuleSyntaxError(message)
    return child


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _line(node: Node) -> int:
    return node.start_point.row + 1
