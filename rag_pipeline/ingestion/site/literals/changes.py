"""Find what a module changes after it declared it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.site.literals.syntax import child, text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

WHOLE: Final = "*"
"""All properties of an object, or all exports of a module."""

_READING_METHODS: Final = {
    *("at", "concat", "entries", "every", "filter", "find", "flat", "flatMap", "forEach"),
    *("includes", "indexOf", "join", "keys", "map", "reduce", "slice", "some", "values"),
}
_READING_FUNCTIONS: Final = {
    *("Object.entries", "Object.keys", "Object.values", "JSON.stringify", "Boolean", "String"),
    *("console.log", "structuredClone"),
}


def find_changes(root: Node) -> dict[str, dict[str, Node]]:
    """Return the nodes that may change properties of a variable, by variable and property.

    These are assignments to a property, calls of a property's methods, and calls of a function that
    is given the variable, except those that are known to change nothing.
    """
    changes: dict[str, dict[str, Node]] = defaultdict(dict)
    for node in walk(root):
        if node.type in {"assignment_expression", "augmented_assignment_expression"}:
            targets = [child(node, "left")]
        elif node.type == "call_expression":
            function, arguments = child(node, "function"), child(node, "arguments")
            reads = text(function) in _READING_FUNCTIONS
            targets = [one for one in arguments.named_children if one.type == "identifier"]
            targets = [] if reads else targets
            if function.type == "member_expression":
                method = text(child(function, "property"))
                targets += [] if method in _READING_METHODS else [child(function, "object")]
        else:
            continue
        for target in targets:
            name, key = _split_target(target)
            if name:
                changes[name].setdefault(key, node)
    return changes


def _split_target(node: Node) -> tuple[str, str]:
    """Return the variable and the property of an expression such as `config.presets[0]`."""
    key = WHOLE
    while node.type in {"member_expression", "subscript_expression"}:
        member = node.type == "member_expression"
        key = text(child(node, "property")) if member else WHOLE
        node = child(node, "object")
    return (text(node), key) if node.type == "identifier" else ("", key)
