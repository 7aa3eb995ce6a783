"""Apply operators, methods and functions of Node to values that are known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.site.literals.values import (
    Computed,
    Literal,
    ObjectLiteral,
    guess,
    is_known,
    is_true,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.ingestion.site.literals.modules import Import

_SUFFIXES: Final = ("", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json")
_REFERENCES: Final = (list, ObjectLiteral, Computed)


def apply_operator(operator: str, left: Literal, right: Literal) -> list[Literal]:
    """Return the result of an operator with two operands.

    Returns:
        The result, followed by the operands that it depends on; empty if it is not known.
    """
    if operator in {"||", "??", "&&"}:
        if not is_known(left):
            return [] if operator == "&&" else [guess(right), left]
        known = guess(left)
        keeps_left = {"||": is_true(known), "??": known is not None, "&&": not is_true(known)}
        return [known, left] if keeps_left[operator] else [right, left]
    if is_known(left) and is_known(right):
        one, other = guess(left), guess(right)
        if operator == "+" and isinstance(one, str) and isinstance(other, str):
            return [one + other, left, right]
        is_scalar = not any(isinstance(value, _REFERENCES) for value in (one, other))
        if is_scalar and operator in {"===", "==", "!==", "!="}:
            is_equal = type(one) is type(other) and one == other
            return [is_equal == (operator[0] == "="), left, right]
    return []


def find_element(items: Literal, index: Literal) -> list[Literal]:
    """Return an element of a list, in a list; empty if it is not known."""
    if not isinstance(items, list) or not isinstance(index, int) or isinstance(index, bool):
        return []
    return [items[index] if 0 <= index < len(items) else None]


def call_method(
    owner: Literal, method: str, arguments: Sequence[Literal], names: Sequence[str]
) -> list[Literal] | None:
    """Return the list that `slice`, `concat` or `filter(Boolean)` makes of a list.

    Args:
        owner: The list.
        method: The name of the method.
        arguments: The arguments.
        names: The source of the arguments.

    Returns:
        None if the owner is no list, and for other methods and arguments.
    """
    if not isinstance(owner, list):
        return None
    values = [guess(value) for value in arguments]
    numbers = [value for value in values if isinstance(value, int)]
    if method == "slice" and len(numbers) == len(values):
        start, stop = (*numbers, None, None)[:2]
        return owner[start:stop]
    if method == "concat" and not any(isinstance(value, Computed) for value in values):
        more = [value if isinstance(value, list) else [value] for value in values]
        return [*owner, *(item for items in more for item in items)]
    if method == "filter" and list(names) == ["Boolean"]:
        return [item for item in owner if not is_known(item) or is_true(guess(item))]
    return None


def join_paths(values: Sequence[Literal]) -> str:
    """Return the path that `path.join` and `path.resolve` make; empty if it is not known."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return ""
    return os.path.normpath(os.path.join(*texts))  # noqa: PTH118  # relative paths stay relative


def find_file(folder: Path, specifier: str) -> Path | None:
    """Return the file of a module that is imported by a relative path."""
    if not specifier.startswith("."):
        return None
    place = Path(os.path.normpath(folder / specifier))
    places = [Path(f"{place}{suffix}") for suffix in _SUFFIXES]
    places += [place / f"index{suffix}" for suffix in _SUFFIXES[1:]]
    return next((one for one in places if one.is_file()), None)


def is_path_function(function: str, imports: Mapping[str, Import]) -> bool:
    """Return True for `join` and `resolve` of Node's module `path`, however they are imported."""
    *owner, name = function.split(".")
    imported = imports.get(owner[0] if owner else name)
    if imported is None or imported.specifier.removeprefix("node:") != "path":
        return False
    return (name if owner else imported.name) in {"join", "resolve"}
