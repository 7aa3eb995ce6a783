"""The values of a site's configuration, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rag_pipeline.ingestion.site.literals import Computed, ObjectLiteral, guess

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.ingestion.site.literals import Literal


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
    name: str,
    found: Literal,
    is_valid: Callable[[object], bool],
    *default: str | bool | None,
) -> ConfigValue:
    """Return a value of the configuration; `default` is Docusaurus's own, if it has one."""
    if isinstance(found, Computed):
        problem = f"`{name}` {found.problem}"
        known = read_value(name, found.fallback, is_valid, *default)
        if found.has_fallback and known.origin is not Origin.UNKNOWN:
            return replace(known, origin=Origin.GUESS, problem=problem)
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    if found is None:
        if default:
            return ConfigValue(name, default[0], Origin.DEFAULT)
        return ConfigValue(name, None, Origin.UNKNOWN, f"`{name}` is missing")
    if not is_valid(found):
        problem = f"`{name}` has the unexpected value {found!r:.60}"
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    return ConfigValue(name, _as_value(found), Origin.READ)


def take_value(name: str, found: Literal, guesses: list[str]) -> Literal:
    """Return a value of the configuration, and add a clause to `guesses` if it is one.

    Raises:
        ValueError: The value is computed, and there is no guess. The message is a clause.
    """
    items = found if isinstance(found, list) else [found]
    for item in items:
        if isinstance(item, Computed):
            problem = f"`{name}` {item.problem}"
            if not item.has_fallback:
                raise ValueError(problem)
            guesses.append(problem)
    return [guess(item) for item in found] if isinstance(found, list) else guess(found)


def get_property(options: Literal, name: str) -> Literal:
    """Return a property of a value; None if the value is no object or has no such property."""
    if isinstance(options, ObjectLiteral):
        return options.get(name)
    if not isinstance(options, Computed):
        return None
    inner = options.fallback
    return replace(options, fallback=inner.get(name) if isinstance(inner, ObjectLiteral) else None)


def is_text(value: object) -> bool:
    """Return True for a text."""
    return isinstance(value, str)


def _as_value(value: Literal) -> str | bool:
    return value if isinstance(value, bool) else str(value)
