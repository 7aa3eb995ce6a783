"""The JSON form of the package's data classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def to_json(value: Any) -> Any:  # noqa: ANN401  # any data class, and any JSON
    """Return a data class as `json.loads` would read it: dictionaries, lists, texts and numbers."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_json(entry) for name, entry in value.items()}
    return [to_json(entry) for entry in value] if isinstance(value, tuple | list) else value
