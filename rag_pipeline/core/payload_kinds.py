"""The filters and the types that payload fields are declared with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.models import TextBlock, TextBlockKind

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that lets queries find only points with given values in one payload field.

    Attributes:
        name: Name of the filter's attribute in `QueryFilters`.
        flags: Names of its option in `rag-pipeline search` and `rag-pipeline query`.
        help: Help text of the options.
        values: The only allowed values; empty if any value is allowed.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of payload field, with the functions that check, write and read its values.

    Attributes:
        label: Name of the type in docs/reference/payload.md.
        accepts: Function that returns True if a stored value has the type.
        write: Function that converts a Python value to the JSON value that is stored.
        read: Function that converts a stored value that `accepts` approved to a Python value.
    """

    label: str
    accepts: Callable[[object], bool]
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], object] = lambda value: value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_block(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != TextBlock.__dataclass_fields__.keys():
        return False
    kind, start, end, first, last, links = (value[name] for name in TextBlock.__dataclass_fields__)
    is_valid = kind in tuple(TextBlockKind) and all(map(_is_int, (start, end, first, last)))
    return is_valid and 0 <= start <= end and 1 <= first <= last and isinstance(links, bool)


KINDS: Final[dict[object, Kind]] = {
    str: Kind("text", lambda value: isinstance(value, str), write=str),
    str | None: Kind("text or null", lambda value: value is None or isinstance(value, str)),
    bool: Kind("boolean", lambda value: isinstance(value, bool)),
    int: Kind("integer", _is_int),
    float | None: Kind(
        "number or null",
        lambda value: value is None or isinstance(value, float) or _is_int(value),
    ),
    tuple[str, ...]: Kind(
        "list of texts",
        lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
        write=list,
        read=tuple,
    ),
    tuple[TextBlock, ...]: Kind(
        "list of `{kind, start, end, start_line, end_line, opens_with_link}`",
        lambda value: isinstance(value, list) and all(map(_is_block, value)),
        write=lambda blocks: [{**asdict(block), "kind": block.kind.value} for block in blocks],
        read=lambda blocks: tuple(
            TextBlock(**{**block, "kind": TextBlockKind(block["kind"])}) for block in blocks
        ),
    ),
}
"""The type of payload field for each type of attribute."""
