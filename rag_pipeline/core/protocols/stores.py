"""Protocols of a vector store: searching, writing, and the catalog of collections."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from rag_pipeline.core.payload import INDEXED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
    """A way to score points against a query."""

    DENSE = "dense"
    WINDOWS = "windows"
    BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class PointFilter:
    """Points that have one of the given values in each of the fields; see `any_of`.

    Attributes:
        fields: Names of payload fields that have a keyword index, each with its values.
        point_ids: None for no restriction. An empty tuple matches nothing.
    """

    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    point_ids: tuple[PointId, ...] | None = None

    @classmethod
    def any_of(cls, **values: Iterable[str]) -> PointFilter:
        """Restrict payload fields to the given values; a field without values is not restricted.

        Raises:
            ValueError: A field has no keyword index.
        """
        unindexed = values.keys() - set(INDEXED_FIELDS)
        if unindexed:
            raise ValueError(f"the stores do not index {', '.join(sorted(unindexed))}")
        fields = ((name, tuple(allowed)) for name, allowed in values.items())
        return cls(tuple(field for field in fields if field[1]))


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """One scored search.

    Attributes:
        vector: Sparse for BM25; of shape (dim,) for dense, and (n, dim) for windows, a row for each
            of a question's tokens.
        limit: 1 or more.
    """

    channel: Channel
    vector: FloatVector | FloatMatrix | SparseVector
    limit: int
    where: PointFilter = PointFilter()


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it lies in the store; vectors and terms only where vectors were asked for.

    Attributes:
        vectors: None also where the point has not all of them.
        sparse: Terms of BM25; none at all where the point has no such vector.
    """

    point_id: PointId
    payload: Payload
    vectors: ChunkVectors | None = None
    sparse: SparseVector | None = None


class VectorIndex(Protocol):
    """The reading side of a collection."""

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run searches in one round trip where the store can.

        Returns:
            A list per query, best first, ties by ascending point id; cosine for dense; for windows
            the mean over the query's rows of each one's cosine with the window nearest to it; BM25
            for sparse, points without a common term left out.

        Raises:
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Points by id in the order asked for; ids that are not there are left out."""

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Some fields of points' payloads, which many stores read faster than all; fields and
        points that are not there are left out.
        """

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Dense vectors alone, of unit length; points that are not there or lack theirs are left
        out.
        """

    def count(self, where: PointFilter = PointFilter()) -> int:
        """How many points match, exactly."""

    def scroll(
        self, where: PointFilter = PointFilter(), *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """All matching points by ascending id."""

    def close(self) -> None:
        """Let go of the store; closing twice is fine."""


class PointStore(VectorIndex, Protocol):
    """The writing side of a collection; every write is applied when the call returns and survives
    a kill.
    """

    @property
    def space(self) -> EmbeddingSpace:
        """What the collection was built with."""

    @property
    def collection_id(self) -> str:
        """Changes whenever the collection is made anew, so that a ledger of an older one is not
        believed.
        """

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole, over those of the same id."""

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the payloads of existing points, vectors untouched."""

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete points; ids that are not there are passed over."""


class CollectionCatalog(Protocol):
    """The builds of one collection: in use, being built, and the one before (decision 7)."""

    @property
    def is_exclusive(self) -> bool:
        """Whether nobody else can write the collection while it is open here."""

    @property
    def timeout_s(self) -> float:
        """The longest wait, for another process's lock or for an answer of the server."""

    def current_id(self) -> str | None:
        """Id of the collection in use; None before the first ingest. Does not open the store."""

    def open_current(self, space: EmbeddingSpace | None = None) -> PointStore:
        """Open the collection in use.

        Args:
            space: What the settings ask for; None opens whatever is there.

        Raises:
            CollectionMissingError: Nothing has been built yet.
            SpaceMismatchError: It was built with another space.
            StoreUnavailableError: Not reached, not in time, or held by another process.
        """

    def open(self, collection_id: str, space: EmbeddingSpace | None = None) -> PointStore:
        """Open a collection by id, in use or not; raises as `open_current`."""

    def create(self, space: EmbeddingSpace) -> PointStore:
        """Make an empty collection beside the one in use; it is not in use before `switch_to`."""

    def switch_to(self, collection_id: str) -> None:
        """Put a collection in use in one step; the one before stays for `roll_back`, older ones
        are deleted.
        """

    def sweep(self) -> None:
        """Delete what killed processes left behind; only while no other ingestion runs here."""

    def find_cells(self) -> list[str]:
        """Names of the collections that `rag-pipeline sweep` built of designs for this one and
        that no other machine can still be at.
        """

    def drop(self) -> None:
        """Delete the collection with all its builds, but for one that a process has open."""

    def roll_back(self) -> str:
        """Put the collection before in use and return its id.

        Raises:
            EarlierCollectionMissingError: There is none.
        """

    def is_wanted(self) -> bool:
        """Whether another process waits to open the collection; False where many may at once."""

    def discard(self, collection_id: str) -> None:
        """Delete a collection that is not in use; one that is not there is passed over."""
