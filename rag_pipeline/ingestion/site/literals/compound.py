"""Read the expressions that consist of others: texts with values in them, lists and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from rag_pipeline.ingestion.site.literals.syntax import child, parts, text
from rag_pipeline.ingestion.site.literals.values import (
    Computed,
    Literal,
    ObjectLiteral,
    guess,
    is_known,
    is_true,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

_CONTROL_CHARACTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "\n": ""}


class Reader(Protocol):
    """A reader of expressions."""

    def read(self, node: Node, seen: frozenset[str] = frozenset()) -> Literal:
        """Return the value of an expression; `seen` are the variables that are being read."""

    def derive(self, node: Node, value: Literal, origins: Iterable[Literal]) -> Literal:
        """Return a value that follows from others. It is a guess if one of them is computed."""

    def compute(self, node: Node) -> Computed:
        """Return the value of an expression that is not stated literally."""


def read_string(reader: Reader, node: Node, seen: frozenset[str]) -> Literal:
    """Return the value of a string or a template."""
    pieces, values = [], []
    for one in node.named_children:
        if one.type == "template_substitution":
            value = reader.read(one.named_children[0], seen)
            values.append(value)
            if not isinstance(guess(value), str):
                return reader.compute(node)
            pieces.append(str(guess(value)))
        elif one.type == "escape_sequence":
            pieces.append(_unescape(text(one)))
        else:
            pieces.append(text(one))
    return reader.derive(node, "".join(pieces), values)


def read_array(reader: Reader, node: Node, seen: frozenset[str]) -> Literal:
    """Return the value of a list with its spread elements."""
    items: list[Literal] = []
    for one in parts(node):
        if one.type == "spread_element":
            more = reader.read(one.named_children[0], seen)
            items += more if isinstance(more, list) else [reader.compute(one)]
        else:
            items.append(reader.read(one, seen))
    return items


def read_object(reader: Reader, node: Node, seen: frozenset[str]) -> ObjectLiteral:
    """Return the value of an object with its spread properties."""
    properties: dict[str, Literal] = {}
    rest: Computed | None = None
    for one in parts(node):
        key = one.child_by_field_name("key")
        if one.type == "shorthand_property_identifier":
            properties[text(one)] = reader.read(one, seen)
            continue
        if one.type == "method_definition":
            properties[text(child(one, "name"))] = reader.read(one, seen)
            continue
        name: Literal = None
        if key is not None:
            name = _read_key(reader, key, seen)
        if isinstance(name, str):
            properties[name] = reader.read(child(one, "value"), seen)
            continue
        spread = one.type == "spread_element"
        more = reader.read(one.named_children[0], seen) if spread else None
        if isinstance(more, ObjectLiteral) and more.rest is None:
            properties |= more.properties
        elif not (spread and is_known(more) and not is_true(guess(more))):
            # It may replace each property before it.
            properties, rest = {}, reader.compute(one)
    return ObjectLiteral(properties, rest)


def _read_key(reader: Reader, key: Node, seen: frozenset[str]) -> Literal:
    if key.type == "computed_property_name":
        return reader.read(key.named_children[0], seen)
    return reader.read(key, seen) if key.type == "string" else text(key)


def _unescape(sequence: str) -> str:
    body = sequence[1:]
    if len(body) > 1 and body[0] in "ux":
        return chr(int(body[1:].strip("{}"), 16))
    return _CONTROL_CHARACTERS.get(body, body)
