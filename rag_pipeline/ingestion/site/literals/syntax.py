"""Walk through the syntax tree of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.site.literals.values import ModuleSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

FUNCTIONS: Final = {
    "arrow_function",
    "function_declaration",
    "function_expression",
    "generator_function",
    "generator_function_declaration",
    "method_definition",
}


def returns(node: Node) -> bool:
    """Return True if a statement contains a `return` of the function that it is in."""
    if node.type in FUNCTIONS:
        return False
    return node.type == "return_statement" or any(returns(one) for one in node.named_children)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def parts(node: Node) -> list[Node]:
    """Return the named children of a node except comments."""
    return [one for one in node.named_children if one.type != "comment"]


def child(node: Node, name: str) -> Node:
    """Return a child that the grammar demands.

    Raises:
        ModuleSyntaxError: There is none.
    """
    found = node.child_by_field_name(name)
    if found is None:
        message = f"line {line(node)} has an unknown form"
        raise ModuleSyntaxError(message)
    return found


def text(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def line(node: Node) -> int:
    """Return the line of a node, 1-based."""
    return node.start_point.row + 1
