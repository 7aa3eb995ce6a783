"""Builds of a collection: their names, their embedding space, and the lock for changing them.

A build is one version of a collection; a rebuild creates a new one beside the current one.
"""

from __future__ import annotations

import json
import re
import secrets
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from rag_pipeline.core.errors import SpaceMismatchError, StoreDamagedError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


TakeLock: TypeAlias = "Callable[[], AbstractContextManager[None]]"
"""Function that returns a context manager that holds the lock of one collection."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Self = TypeVar("_Self", bound="BuildCatalog")


Forget: TypeAlias = "Callable[[str], None]"
"""Function that deletes the data kept outside the store for a build, given the build's id.

It is called just before the build is deleted. If the process is killed in between, the build
still exists and is found by the next cleanup.
"""


def alone(
    method: Callable[Concatenate[_Self, _Parameters], _Result],
) -> Callable[Concatenate[_Self, _Parameters], _Result]:
    """Run a method of a catalog while it holds the lock of its collection."""

    @wraps(method)
    def run(
        catalog: _Self, /, *arguments: _Parameters.args, **named: _Parameters.kwargs
    ) -> _Result:
        with catalog.hold():
            return method(catalog, *arguments, **named)

    return run


class BuildCatalog(ABC):
    """Base class of the catalogs of builds, with their lock.

    The thread that holds the lock may take it again.

    Args:
        collection: Name of the collection, for messages and build ids.
        forget: Function that takes the id of a build and deletes the data kept for it outside the
            store. It is called just before a build is deleted.
        take: Function that returns the lock between processes.
    """

    def __init__(self, collection: str, forget: Forget, take: TakeLock) -> None:
        self._collection = collection
        self._forget = forget
        self._take = take
        self._of_threads = RLock()
        self._depth = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes from changing the set of builds during a `with` block.

        Raises:
            StoreLockedError: Another process changed it during the whole wait.
        """
        with self._of_threads, nullcontext() if self._depth else self._take():
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    @alone
    def discard(self, collection_id: str) -> None:
        """Delete a build of this collection, unless it is the current build."""
        if self._owns(collection_id) and collection_id != self.current_id():
            self._delete(collection_id)

    def _owns(self, name: str) -> bool:
        """Return True if a name has the form of the id of a build of this collection."""
        return is_build_id(name, self._collection)

    def _check_space(self, stored: EmbeddingSpace, wanted: EmbeddingSpace | None) -> None:
        """Check that a build has the wanted embedding space; None accepts any.

        Raises:
            SpaceMismatchError: The build has another embedding space.
        """
        if wanted is not None and stored != wanted:
            remedy = stored.name_remedy(wanted)
            raise SpaceMismatchError(self._collection, str(stored), str(wanted), remedy)

    @abstractmethod
    def current_id(self) -> str | None:
        """Return the id of the current build, or None if there is none, without opening it."""

    @abstractmethod
    def _delete(self, collection_id: str) -> None:
        """Delete a build, after `forget` was called with its id."""


_CELL: Final = "-sweep-"
_STAMP: Final = "%Y%m%dT%H%M%S"
_MODEL_FIELDS: Final = tuple(field.name for field in fields(EmbeddingModel))


def make_build_id(collection: str) -> str:
    """Return a new build id, `<collection>-<UTC time>-<six random hex digits>`."""
    stamp = datetime.now(UTC).strftime(_STAMP)
    return f"{collection}-{stamp}-{secrets.token_hex(3)}"


def is_build_id(text: str, collection: str) -> bool:
    """Return True if a text has the form of a build id of the given collection."""
    return re.fullmatch(re.escape(collection) + r"-\d{8}T\d{6}-[0-9a-f]{6}", text) is not None


def name_cell(collection: str, digest: str) -> str:
    """Return the name of the collection that `rag-pipeline sweep` builds for one sweep cell.

    A sweep cell is one combination of settings that the sweep compares with others.

    Args:
        collection: Name of the book's own collection.
        digest: Eight hexadecimal digits that identify the combination of settings.
    """
    return f"{collection}{_CELL}{digest}"


def find_cell(text: str, collection: str) -> str | None:
    """Return the name of the sweep cell's collection with which a text begins, or None.

    A sweep cell is one combination of settings that `rag-pipeline sweep` compares with others. Its
    collection has the name that `name_cell` returns.

    Args:
        text: Name of a collection, or id of a build (which begins with its collection's name).
        collection: Name of the book's own collection.
    """
    match = re.match(re.escape(collection + _CELL) + r"[0-9a-f]{8}(?![^-])", text)
    return match.group() if match else None


def name_book(collection: str) -> str:
    """Return the name of the book's own collection, given that or the name of a sweep cell's."""
    return re.sub(re.escape(_CELL) + r"[0-9a-f]{8}$", "", collection)


def read_stamp(build_id: str) -> datetime:
    """Return the time in a build id, at which the build was started."""
    return datetime.strptime(build_id.rsplit("-", 2)[1], _STAMP).replace(tzinfo=UTC)


def is_older_than(build_id: str, age: timedelta) -> bool:
    """Return True if a build was started longer ago than `age`, according to the time in its id."""
    return datetime.now(UTC) - read_stamp(build_id) > age


def write_space(space: EmbeddingSpace) -> str:
    """Return an embedding space (model and format version) as JSON, which `read_space` reads."""
    fields = asdict(space.model) | {"format_version": space.format_version}
    return json.dumps(fields, indent=1)


def read_space(text: str) -> EmbeddingSpace:
    """Return the embedding space (model and format version) that a JSON text describes.

    Another release may have written the text. A field that this release does not know is appended
    to the model's name, unless it is null. The result then differs from every space of this
    release, and the error about the difference shows the field.

    Raises:
        StoreDamagedError: The text is damaged.
    """
    try:
        stored = {name: value for name, value in json.loads(text).items() if value is not None}
        format_version = int(stored.pop("format_version"))
        known = {name: stored.pop(name) for name in _MODEL_FIELDS if name in stored}
        known["model"] += "".join(f" {name}={stored[name]}" for name in sorted(stored))
        return EmbeddingSpace(EmbeddingModel(**known), format_version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamagedError("the collection's embedding model cannot be read") from error


def list_folder(folder: Path) -> list[Path]:
    """Return the entries of a folder in any order; empty if there is no such folder."""
    return list(folder.iterdir()) if folder.is_dir() else []
