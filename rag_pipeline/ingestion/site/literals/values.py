"""The values of a module that is read and not run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that the source does not state literally.

    Attributes:
        place: The line of the expression, 1-based, and its file if it is in an imported module,
            such as `line 3` or `line 3 of locales.js`.
        source: The expression, shortened to one line.
        has_fallback: True if the value can be guessed: it depends on environment variables only, or
            the source names a value for other cases, as on the right of `||`.
        fallback: The guess; None for `undefined`, and if there is no guess.
    """

    place: str
    source: str
    has_fallback: bool = False
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


def as_literal(value: object) -> Literal:
    """Return a value of JSON as a value of a module."""
    if isinstance(value, dict):
        return ObjectLiteral({str(name): as_literal(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return [as_literal(inner) for inner in value]
    return value if isinstance(value, (str, float, int, bool)) else None


def is_known(value: Literal) -> bool:
    """Return True if a value is stated or can be guessed."""
    return not isinstance(value, Computed) or value.has_fallback


def guess(value: Literal) -> Literal:
    """Return a value, or the guess of a value that is computed."""
    return value.fallback if isinstance(value, Computed) and value.has_fallback else value


def is_true(value: Literal) -> bool:
    """Return True if JavaScript takes a known value as true in a condition."""
    return isinstance(value, (list, ObjectLiteral, FunctionLiteral)) or bool(value)
