"""Protocol of the catalog of a collection's builds (versions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.core.vectors import EmbeddingSpace


class CollectionCatalog(Protocol):
    """All builds of one collection: the current, the previous, and those being built.

    A build is one version of the collection with its own id. Queries use the current build; the
    previous build is kept so that `roll_back` can return to it.
    """

    @property
    def is_exclusive(self) -> bool:
        """True if no other process can write to the collection while this process has it open."""

    @property
    def timeout_s(self) -> float:
        """The longest wait in seconds for another process's lock or for an answer of the server."""

    def hold(self) -> AbstractContextManager[None]:
        """Return a context manager that keeps other processes from changing the set of builds.

        Each method that creates, switches or deletes builds holds it by itself. A thread that holds
        it may call them. Opening, reading and writing a build does not need it.

        Raises:
            StoreLockedError: Another process changed it during the whole wait.
        """

    def current_id(self) -> str | None:
        """Return the id of the current build, unopened; None before the first ingestion."""

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no such build.

        Raises:
            StoreError: The build is damaged, or the store cannot be reached.
        """

    def open_current(
        self, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open the current build for reading and writing, and return it.

        Args:
            space: Embedding space (model and format version) that the build must have; None
                accepts any.
            wait_s: Longest wait in seconds for another process's lock; None for `timeout_s`.

        Raises:
            CollectionMissingError: There is no current build.
            SpaceMismatchError: The build was made with another embedding space.
            StoreUnavailableError: The store cannot be reached, does not answer in time, or is
                locked by another process.
        """

    def open(
        self, collection_id: str, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> PointStore:
        """Open the build with the given id; otherwise the same as `open_current`."""

    def create(self, space: EmbeddingSpace) -> PointStore:
        """Create and open a new, empty build for vectors of an embedding space.

        Queries do not use the build before `switch_to` makes it the current one.
        """

    def switch_to(self, collection_id: str) -> None:
        """Make a build the current one in one atomic step.

        The build that was current becomes the previous one, and older builds are deleted.

        Raises:
            CollectionMissingError: There is no build with this id.
        """

    def end_loading(self, collection_id: str) -> None:
        """Prepare a build for fast searches, after all its points were written.

        `switch_to` does it too, for a build with points. A second call does nothing.
        """

    def sweep(self) -> None:
        """Delete the builds and files that killed processes left behind.

        Call it only while no other ingestion of the book runs on this machine.
        """

    def recover(self) -> None:
        """Find the current build again, with a warning, if the record of its id is lost.

        Call it only while no other ingestion of the book runs on this machine.
        """

    def find_cells(self) -> list[str]:
        """Return the names of the collections that earlier runs of `rag-pipeline sweep` left over.

        A sweep compares combinations of settings and builds a collection for each, beside the
        book's own. A collection that another machine may still be building is left out.
        """

    def drop(self) -> None:
        """Delete all builds of the collection, except builds that another process has open."""

    def roll_back(self) -> str:
        """Make the previous build the current one and return its id.

        The build that was current becomes the previous one.

        Raises:
            EarlierCollectionMissingError: No previous build is kept.
        """

    def is_wanted(self) -> bool:
        """Return True if another process waits until this process closes the collection.

        The result is always False for a store that several processes may open at the same time.
        """

    def discard(self, collection_id: str) -> None:
        """Delete the build with the given id, if it exists and is not the current build."""
