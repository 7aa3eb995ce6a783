"""Builds of a collection: their life in every store, their names, space, and lock.

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

from rag_pipeline.core.errors import (
    CollectionMissingError,
    EarlierCollectionMissingError,
    SpaceMismatchError,
    StoreDamagedError,
)
from rag_pipeline.core.settings.file import warn_once
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.protocols import PointStore


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
    """Base class of the catalogs of builds: opening, switching, deleting and their lock.

    A subclass says how one kind of store creates, lists, names and deletes builds. The thread that
    holds the lock may take it again.

    Args:
        collection: Name of the collection, for messages and build ids.
        place: Folder or address of the store, for messages.
        forget: Function that takes the id of a build and deletes the data kept for it outside the
            store. It is called just before a build is deleted.
        take: Function that returns the lock between processes.
    """

    def __init__(self, collection: str, place: str | Path, forget: Forget, take: TakeLock) -> None:
        self._collection = collection
        self._place = place
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

    def current_id(self) -> str | None:
        """Return the id of the current build without opening the build; None if there is none."""
        return self._read_in_use()[0]

    def open_current(
        self, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open the current build; arguments and errors are those of `open`.

        Raises:
            CollectionMissingError: There is no current build.
            ConfigurationError: Another program uses the name of the collection on the server.
        """
        collection_id = self.current_id()
        if collection_id is None:
            raise self._describe_missing()
        return self.open(collection_id, space, wait_s)

    def open(
        self, collection_id: str, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open a build by its id.

        Args:
            collection_id: Id of the build.
            space: Embedding space (model and format) that the build must have; None accepts any.
            wait_s: Longest wait in seconds for another process's lock; None for the setting. A
                server has no lock to wait for.

        Raises:
            CollectionMissingError: There is no such build.
            SpaceMismatchError: The build has another embedding space.
            StoreUnavailableError: The server does not respond, or another process had the build
                open for all of `wait_s`.
            StoreError: A file is damaged or cannot be read.
        """
        stored = self.read_space(collection_id)
        if stored is None:
            raise self._describe_missing(collection_id)
        if space is not None and stored != space:
            remedy = stored.name_remedy(space)
            raise SpaceMismatchError(self._collection, str(stored), str(space), remedy)
        return self._open(collection_id, stored, wait_s)

    @alone
    def switch_to(self, collection_id: str) -> None:
        """Make a build the current one, and keep the build that was current as the previous one.

        All other builds are deleted, except those that a process has open.

        Raises:
            CollectionMissingError: There is no such build.
        """
        if not self._is_built(collection_id):
            raise CollectionMissingError(collection_id, self._place)
        before = self.current_id()
        if before == collection_id:
            return
        self.end_loading(collection_id, is_empty_left=True)
        self._write_in_use(collection_id, before)
        self._delete_builds({collection_id, before})

    @alone
    def roll_back(self) -> str:
        """Swap the current and the previous build, and return the id of the new current one.

        Raises:
            EarlierCollectionMissingError: There is no previous build.
        """
        current, previous = self._read_in_use()
        if previous is None or not self._is_built(previous):
            raise EarlierCollectionMissingError(self._collection, self._place)
        self._write_in_use(previous, current)
        return previous

    @alone
    def drop(self) -> None:
        """Delete the collection with all builds, except builds that a process has open."""
        self._delete_builds(set())

    @alone
    def discard(self, collection_id: str) -> None:
        """Delete a build of this collection, unless it is the current build."""
        if self._owns(collection_id) and collection_id != self.current_id():
            self._delete(collection_id)

    @abstractmethod
    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no build."""

    @abstractmethod
    def end_loading(self, collection_id: str, *, is_empty_left: bool = False) -> None:
        """Prepare a build for fast searches, after all its points were written.

        With `is_empty_left`, an empty build stays as it is, because it is loaded next.
        """

    def _owns(self, name: str) -> bool:
        """Return True if a name has the form of the id of a build of this collection."""
        return is_build_id(name, self._collection)

    def _delete_builds(self, kept: Collection[str | None]) -> None:
        """Delete all builds except the given ones and those that a process has open."""
        for name in self._list_builds():
            if name not in kept:
                self._delete_unless_open(name)

    def _use_newest(self, builds: Sequence[str], warning: str) -> None:
        """Make the last build the current one and the one before it the previous one, and warn."""
        if builds:
            self._write_in_use(builds[-1], builds[-2] if len(builds) > 1 else None)
            warn_once(f"{warning} {builds[-1]} is used")

    def _delete_unless_open(self, collection_id: str) -> None:
        """Delete a build. On a server, no process has a build open for itself."""
        self._delete(collection_id)

    @abstractmethod
    def _open(self, collection_id: str, space: EmbeddingSpace, wait_s: float | None) -> PointStore:
        """Open a build with the embedding space that was read from it."""

    @abstractmethod
    def _describe_missing(self, collection_id: str = "") -> RagPipelineError:
        """Return the error for a missing build; without an id, for a missing current build."""

    @abstractmethod
    def _read_in_use(self) -> tuple[str | None, str | None]:
        """Return the ids of the current and the previous build; None for one that is not set."""

    @abstractmethod
    def _write_in_use(self, current: str, previous: str | None) -> None:
        """Replace the ids of the current and the previous build in one step."""

    @abstractmethod
    def _list_builds(self) -> list[str]:
        """Return the ids of all builds of the collection, also of unfinished ones."""

    @abstractmethod
    def _is_built(self, collection_id: str) -> bool:
        """Return True if there is a complete build of the collection with this id."""

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
