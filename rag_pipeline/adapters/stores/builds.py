"""Names of a collection's builds, and the space that is stored with each."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Forget: TypeAlias = Callable[[str], None]
    """Deletes what is kept of a build elsewhere; called with its id right before it is deleted, so
    that a kill between the two leaves a build that is found again.
    """

_CELL: Final = "-sweep-"
_STAMP: Final = "%Y%m%dT%H%M%S"
_MODEL_FIELDS: Final = tuple(field.name for field in fields(EmbeddingModel))


def make_build_id(collection: str) -> str:
    """A new id: the collection's name, the moment in UTC, and six random hexadecimal digits."""
    stamp = datetime.now(UTC).strftime(_STAMP)
    return f"{collection}-{stamp}-{secrets.token_hex(3)}"


def is_build_id(text: str, collection: str) -> bool:
    """Whether a name was made by `make_build_id` for this collection."""
    return re.fullmatch(re.escape(collection) + r"-\d{8}T\d{6}-[0-9a-f]{6}", text) is not None


def name_cell(collection: str, digest: str) -> str:
    """Name of the collection of a design that a sweep compares with others of this collection.

    Args:
        collection: The book's own.
        digest: Of the design: eight hexadecimal digits.
    """
    return f"{collection}{_CELL}{digest}"


def find_cell(text: str, collection: str) -> str | None:
    """The design's collection that a name begins with or is, by `name_cell`; None where none."""
    match = re.match(re.escape(collection + _CELL) + r"[0-9a-f]{8}(?![^-])", text)
    return match.group() if match else None


def is_older_than(build_id: str, age: timedelta) -> bool:
    """Whether a build was begun longer ago than that."""
    begun = datetime.strptime(build_id.rsplit("-", 2)[1], _STAMP).replace(tzinfo=UTC)
    return datetime.now(UTC) - begun > age


def forget_nothing(_: str) -> None:
    """Nothing is kept of a build elsewhere."""


def write_space(space: EmbeddingSpace) -> str:
    """Serialize a space as JSON."""
    model = space.model
    return json.dumps(
        {
            "provider": model.provider,
            "model": model.model,
            "dim": model.dim,
            "max_input_tokens": model.max_input_tokens,
            "window_words": model.window_words,
            "format_version": space.format_version,
        },
        indent=1,
    )


def read_space(text: str) -> EmbeddingSpace:
    """Read what `write_space` of this or another release wrote.

    A field that this release lacks becomes part of the model's name, unless it is null: what was
    built by it differs from all that this release builds, and the refusal then says in what.

    Raises:
        StoreError: It is damaged.
    """
    try:
        stored = {name: value for name, value in json.loads(text).items() if value is not None}
        format_version = int(stored.pop("format_version"))
        known = {name: stored.pop(name) for name in _MODEL_FIELDS if name in stored}
        known["model"] += "".join(f" {name}={stored[name]}" for name in sorted(stored))
        return EmbeddingSpace(EmbeddingModel(**known), format_version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = "what the collection was built with cannot be read"
        raise StoreError(f"{message}. Run `rag-pipeline ingest --rebuild`") from error
