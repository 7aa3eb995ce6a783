"""Protocols of a vector store: the points of a build, and the catalog of all builds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from rag_pipeline.core.payload import FILTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import (
        ChunkVectors,
        EmbeddingSpace,
        FloatMatrix,
        FloatVector,
        Point,
        SparseVector,
    )


class Channel(StrEnum):
    """A way to score points against a query.

    `DENSE` is the cosine of question and chunk, each embedded as a whole. `WINDOWS` is the
    late-interaction (MaxSim) score of the question's tokens with the chunk's windows (groups of
    words). `BM25` is the lexical score of the terms that question and chunk share.
    """

    DENSE = "dense"
    WINDOWS = "windows"
    BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class PointFilter:
    """A filter that matches points by payload fields and point ids. Build it with `any_of`.

    A point matches if each named field has one of the given values. The default matches all points.

    Attributes:
        fields: Pairs of the name of a payload field, which must have a keyword index, and its
            allowed values.
        point_ids: The only ids that match; None for no restriction. An empty tuple matches nothing.
        without: Names of payload fields that a matching point must not have.
    """

    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    point_ids: tuple[PointId, ...] | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def any_of(cls, **values: Iterable[str]) -> PointFilter:
        """Return a filter for points whose fields have one of the given values.

        Args:
            **values: Allowed values by name of the payload field. Empty values do not restrict.

        Raises:
            ValueError: The stores keep no keyword index for a field.
        """
        unindexed = values.keys() - FILTERS.keys()
        if unindexed:
            raise ValueError(f"the stores keep no index for {', '.join(sorted(unindexed))}")
        fields = ((name, tuple(allowed)) for name, allowed in values.items())
        return cls(tuple(field for field in fields if field[1]))


ALL_POINTS: Final = PointFilter()
"""The filter that matches all points."""


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """A search that scores points in one way (channel).

    Attributes:
        channel: The way to score points.
        vector: A sparse vector for `BM25`, an array of shape (dim,) for `DENSE`, and an array of
            shape (n, dim) for `WINDOWS`, with one row per token of the question.
        limit: Highest number of results, at least 1.
        where: Only points that match this filter are searched.
        corpus: The points over which `BM25` counts how rare a term is; the default counts all.
    """

    channel: Channel
    vector: FloatVector | FloatMatrix | SparseVector
    limit: int
    where: PointFilter = PointFilter()
    corpus: PointFilter = PointFilter()


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it is read from the store.

    Attributes:
        point_id: Id of the point.
        payload: All stored fields of the point.
        vectors: Dense vector and window vectors. None if vectors were not requested, or if the
            point lacks one of them.
        sparse: BM25 term weights. None if vectors were not requested. A vector without terms if the
            point has no term weights.
    """

    point_id: PointId
    payload: Payload
    vectors: ChunkVectors | None = None
    sparse: SparseVector | None = None


class VectorIndex(Protocol):
    """Read access to one build (version) of a collection in a vector store."""

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run several searches, if possible in one request.

        Returns:
            One list of point ids and scores per query, best first; equal scores are ordered by
            ascending point id. The score of `DENSE` is the cosine. For `WINDOWS`, each row of the
            query is compared with all windows of the point, and the score is the mean of the rows'
            highest cosines. For `BM25` it is the BM25 score; points without a term of the query are
            left out.

        Raises:
            StoreUnavailableError: The store cannot be reached, does not answer in time, or is
                locked by another process.
        """

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return the points with the given ids, in the same order.

        Ids that the store does not have are left out.

        Args:
            point_ids: Ids of the points to read.
            with_vectors: Also read the vectors and term weights of the points.
        """

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Return a part of each point's payload, by point id: only the given fields.

        Many stores read a few fields faster than whole payloads. Points and fields that the store
        does not have are left out.
        """

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Return only the dense vectors of the points, of unit length, by point id.

        Points that the store does not have, or that have no dense vector, are left out.
        """

    def count(self, where: PointFilter = PointFilter()) -> int:
        """Return the exact number of points that match the filter."""

    def find_late_fields(self) -> frozenset[str]:
        """Return the names of `payload.LATE_INDEXES` that points may have.

        No point of the collection has one of the other names. Nothing is scanned.
        """

    def scroll(
        self, where: PointFilter = PointFilter(), *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return all points that match the filter, by ascending id.

        Args:
            where: The filter; the default matches all points.
            with_vectors: Also read the vectors and term weights of the points.
        """

    def scroll_fields(
        self, fields: Sequence[str], where: PointFilter = PointFilter()
    ) -> Iterator[tuple[PointId, Payload]]:
        """Yield the id of each matching point and some fields of its payload, by ascending id.

        The points are read page by page, so the memory does not grow with their number.

        Args:
            fields: Names of the fields; a field that a point lacks is left out.
            where: The filter; the default matches all points.
        """

    def close(self) -> None:
        """Close the connection or files of the store. A second call does nothing."""


class PointStore(VectorIndex, Protocol):
    """Read and write access to one build (version) of a collection in a vector store.

    When a method that writes returns, readers see the change, and it survives the end of the
    process; see also `write_together`.
    """

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space (model and format version) that the build was made with."""

    @property
    def collection_id(self) -> str:
        """The id of the opened build, which no other build ever has.

        The ledger (the record of what is indexed) is stored under this id, so it is never used with
        another build.
        """

    def write_together(self) -> AbstractContextManager[None]:
        """Return a context manager for several changes, which writes them to the disk at its end.

        Only when the block has ended do all changes in it survive the end of the process.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write complete points. An existing point with the same id is replaced."""

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the whole payloads of existing points and keep their vectors."""

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete the points with the given ids. Ids that the store does not have are ignored."""


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
