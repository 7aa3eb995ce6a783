"""Read the value that a JavaScript or TypeScript module exports, without running the module.

Values that the source states are read, also those of JSON files and modules of the site that it
imports. The rest becomes `Computed` values with their places. The guess of a value that depends on
environment variables only is the value without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.site.literals.changes import WHOLE
from rag_pipeline.ingestion.site.literals.compound import read_array, read_object, read_string
from rag_pipeline.ingestion.site.literals.modules import (
    COMMON_JS,
    DEFAULT,
    WRAPPERS,
    Binding,
    Import,
    Module,
    find_bindings,
    find_function,
    find_required,
    parse_module,
)
from rag_pipeline.ingestion.site.literals.operators import (
    apply_operator,
    call_method,
    find_element,
    find_file,
    is_path_function,
    join_paths,
)
from rag_pipeline.ingestion.site.literals.syntax import (
    FUNCTIONS,
    child,
    line,
    parts,
    returns,
    text,
)
from rag_pipeline.ingestion.site.literals.values import (
    Computed,
    FunctionLiteral,
    Literal,
    ModuleSyntaxError,
    ObjectLiteral,
    as_literal,
    guess,
    is_known,
    is_true,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tree_sitter import Node

_QUOTED_CHARACTERS: Final = 60
_FOLDER_NAMES: Final = {"__dirname", "import.meta.dirname"}
_ENVIRONMENT: Final = {"NODE_ENV": "production"}  # that of a build of the site


def read_exported_value(path: Path) -> Literal:
    """Return the value of `export default` or `module.exports`.

    A variable of the module is followed to its declaration, and an import to its file if that is
    part of the site. A part of it that the module changes afterwards is a `Computed` value. If the
    value is a function without parameters, it is what the function returns.

    Raises:
        OSError: The file cannot be read.
        ModuleSyntaxError: The source has a syntax error, or there is no such export.
        MissingDependencyError: The parser is not installed.
    """
    module = parse_module(path)
    exported = module.exports.get(DEFAULT) or module.exports.get(COMMON_JS)
    if exported is None:
        message = "it has neither `export default` nor `module.exports`"
        raise ModuleSyntaxError(message)
    reader = _Reader(module, module.bindings, path)
    function = find_function(exported, module.bindings)
    return reader.read_result(function, frozenset()) if function else reader.read(exported)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of the expressions of a module.

    Attributes:
        module: The module.
        bindings: The variables that an expression can use.
        main: The file that was asked for, which may have imported the module.
    """

    module: Module
    bindings: dict[str, Binding]
    main: Path

    def read(self, node: Node, seen: frozenset[str] = frozenset()) -> Literal:  # noqa: C901, PLR0911, PLR0912  # one case per kind of expression
        """Return the value of an expression; `seen` are the variables that are being read."""
        kind = node.type
        if kind in WRAPPERS:
            return self.read(node.named_children[0], seen)
        if kind in {"string", "template_string"}:
            return read_string(self, node, seen)
        if kind in {"true", "false"}:
            return kind == "true"
        if kind in {"null", "undefined"}:
            return None
        if kind == "number" and text(node).isdecimal():
            return int(text(node))
        if kind == "array":
            return read_array(self, node, seen)
        if kind == "object":
            return read_object(self, node, seen)
        if kind in FUNCTIONS:
            return FunctionLiteral(self.compute(node).place, self.compute(node).source)
        if kind in {"identifier", "shorthand_property_identifier"}:
            return self._read_name(node, seen)
        if kind in {"member_expression", "subscript_expression"}:
            return self._read_member(node, seen)
        if kind == "call_expression":
            return self._read_call(node, seen)
        if kind in {"binary_expression", "unary_expression"}:
            return self._read_operation(node, seen)
        if kind == "ternary_expression":
            condition = self.read(child(node, "condition"), seen)
            chosen = is_known(condition) and is_true(guess(condition))
            value = self.read(child(node, "consequence" if chosen else "alternative"), seen)
            return self.derive(node, value, [condition])
        return self.compute(node)

    def read_result(self, function: Node, seen: frozenset[str]) -> Literal:
        """Return what a function without parameters returns."""
        body = child(function, "body")
        if body.type != "statement_block":
            return self.read(body, seen)
        inner = replace(self, bindings=self.bindings | find_bindings(body))
        returned = inner._run(parts(body), seen)  # noqa: SLF001  # the same class
        return returned[0] if returned else None

    def _run(self, statements: Iterable[Node], seen: frozenset[str]) -> list[Literal]:
        """Return the value that statements return, in a list; empty if they return nothing."""
        conditions: list[Literal] = []
        for statement in statements:
            if not returns(statement):
                continue
            returned: list[Literal] = []
            if statement.type == "return_statement":
                values = parts(statement)
                returned = [self.read(values[0], seen) if values else None]
            elif statement.type in {"statement_block", "else_clause"}:
                returned = self._run(parts(statement), seen)
            elif statement.type == "if_statement":
                condition = self.read(child(statement, "condition"), seen)
                if not is_known(condition):
                    return [self.compute(statement)]
                conditions.append(condition)
                name = "consequence" if is_true(guess(condition)) else "alternative"
                branch = statement.child_by_field_name(name)
                returned = self._run([] if branch is None else [branch], seen)
            else:
                return [self.compute(statement)]
            if returned:
                return [self.derive(statement, returned[0], conditions)]
        return []

    def _read_name(self, node: Node, seen: frozenset[str]) -> Literal:
        name = text(node)
        if name in _FOLDER_NAMES:
            return str(self.module.path.parent.absolute())
        key = f"{self.module.path}#{name}"
        if key in seen or (name not in self.bindings and name not in self.module.imports):
            return self.compute(node)
        is_local = name in self.bindings and self.bindings[name] != self.module.bindings.get(name)
        if name in self.module.imports and not is_local:
            value = self._read_import(node, self.module.imports[name], seen | {key})
        else:
            bound, property_name = self.bindings[name]
            value = self.read(bound, seen | {key})
            if property_name is not None:
                value = self._get(node, value, property_name)
        return self._mark_changes(value, self.module.changes.get(name, {}))

    def _mark_changes(self, value: Literal, changes: dict[str, Node]) -> Literal:
        """Return the value of a variable; what the module changes is computed."""
        if isinstance(value, str | int | float):  # a method or function cannot change it
            whole = changes.get(WHOLE)
            is_changed = whole is not None and whole.type != "call_expression"
            return self.compute(whole) if whole is not None and is_changed else value
        if not changes:
            return value
        if not isinstance(value, ObjectLiteral) or WHOLE in changes:
            return self.compute(next(iter(changes.values())))
        changed: dict[str, Literal] = {one: self.compute(by) for one, by in changes.items()}
        return ObjectLiteral(value.properties | changed, value.rest)

    def _read_member(self, node: Node, seen: frozenset[str]) -> Literal:
        if text(node) == "process.env":
            rest = replace(self.compute(node), has_fallback=True)
            return ObjectLiteral(dict(_ENVIRONMENT), rest)
        if text(node) in _FOLDER_NAMES:
            return str(self.module.path.parent.absolute())
        owner = self.read(child(node, "object"), seen)
        if node.type == "member_expression":
            return self._get(node, owner, text(child(node, "property")))
        index = self.read(child(node, "index"), seen)
        if isinstance(guess(index), str):
            return self.derive(node, self._get(node, owner, str(guess(index))), [index])
        found = find_element(guess(owner), guess(index))
        return self.derive(node, found[0], [owner, index]) if found else self.compute(node)

    def _get(self, node: Node, owner: Literal, name: str) -> Literal:
        """Return a property of a value; `node` is the expression that asks for it."""
        known = guess(owner)
        if not isinstance(known, ObjectLiteral):
            return self.compute(node)
        if name not in known.properties and known.rest is not None:
            return replace(self.compute(node), has_fallback=known.rest.has_fallback)
        return self.derive(node, known.get(name), [owner])

    def _read_call(self, node: Node, seen: frozenset[str]) -> Literal:
        function, arguments = child(node, "function"), child(node, "arguments")
        specifier = find_required(node)
        if specifier:
            return self._read_import(node, Import(specifier, WHOLE), seen)
        called = find_function(function, self.bindings)
        if called is not None:
            key = f"{self.module.path}@{called.start_byte}"
            return self.compute(node) if key in seen else self.read_result(called, seen | {key})
        values = [self.read(one, seen) for one in parts(arguments)]
        if text(function) == "require.resolve":
            return values[0] if values else self.compute(node)
        if is_path_function(text(function), self.module.imports):
            joined = join_paths([guess(value) for value in values])
            return self.derive(node, joined, values) if joined else self.compute(node)
        if function.type == "member_expression":
            owner = self.read(child(function, "object"), seen)
            names = [text(one) for one in parts(arguments)]
            found = call_method(guess(owner), text(child(function, "property")), values, names)
            if found is not None:
                return self.derive(node, found, [owner, *filter(is_known, values)])
        return self.compute(node)

    def _read_operation(self, node: Node, seen: frozenset[str]) -> Literal:
        operator = text(child(node, "operator"))
        if node.type == "unary_expression":
            value = self.read(child(node, "argument"), seen)
            if operator != "!" or not is_known(value):
                return self.compute(node)
            return self.derive(node, not is_true(guess(value)), [value])
        left, right = (self.read(child(node, name), seen) for name in ("left", "right"))
        found = apply_operator(operator, left, right)
        return self.derive(node, found[0], found[1:]) if found else self.compute(node)

    def _read_import(self, node: Node, imported: Import, seen: frozenset[str]) -> Literal:
        """Return what a module of the site exports; packages are not read."""
        path = find_file(self.module.path.parent, imported.specifier)
        if path is None:
            return self.compute(node)
        try:
            if path.suffix == ".json":
                value = as_literal(json.loads(path.read_bytes()))
                return self._choose_export(node, value, imported.name)
            module = parse_module(path)
        except (OSError, ValueError):
            return self.compute(node)
        reader = replace(self, module=module, bindings=module.bindings)
        exports = module.exports
        if COMMON_JS in exports:
            value = reader.read(exports[COMMON_JS], seen)
            return self._choose_export(node, value, imported.name)
        if imported.name == WHOLE:
            return ObjectLiteral({name: reader.read(one, seen) for name, one in exports.items()})
        named = exports.get(imported.name)
        return reader.read(named, seen) if named is not None else self.compute(node)

    def _choose_export(self, node: Node, value: Literal, name: str) -> Literal:
        return value if name in {DEFAULT, WHOLE} else self._get(node, value, name)

    def derive(self, node: Node, value: Literal, origins: Iterable[Literal]) -> Literal:
        """Return a value that follows from others. It is a guess if one of them is computed."""
        if isinstance(value, Computed) and not value.has_fallback:
            return value
        if any(isinstance(one, Computed) for one in origins):
            return replace(self.compute(node), has_fallback=True, fallback=guess(value))
        return value

    def compute(self, node: Node) -> Computed:
        source = " ".join(text(node).split())
        if len(source) > _QUOTED_CHARACTERS:
            source = source[: _QUOTED_CHARACTERS - 3] + "..."
        place = f"line {line(node)}"
        if self.module.path != self.main:
            place += f" of {self.module.path.name}"
        return Computed(place, source)
