"""Base class of the two vector stores, the embedded store and the Qdrant server.

The embedded engine and the server's client use the same names for the fields of points and hits.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.payload import LATE_INDEXES
from rag_pipeline.core.protocols import Channel, ChannelQuery, PointFilter, PointStore, StoredPoint
from rag_pipeline.core.vectors import ChunkVectors, SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, FloatMatrix, FloatVector, Point


Parts: TypeAlias = "bool | list[str]"
"""Parts of a record: True for all of them, False for none, or their names."""

Offset: TypeAlias = "int | str | None"
"""Place in a list of records, as the engine returns it; None for its beginning or its end."""

_Entry = TypeVar("_Entry")

_MAX_BATCH_BYTES: Final = 8_000_000  # a quarter of what a Qdrant server accepts by default
_FLOAT_BYTES: Final = 20  # the length of a number in JSON, at most


def check_id(point_id: object) -> PointId:
    """Return the id of a stored point.

    Raises:
        StoreError: The id is not a number, so another program wrote the point.
    """
    if isinstance(point_id, int):
        return PointId(point_id)
    raise StoreError(
        f"point {point_id} in the collection was not written by rag-pipeline, because its id is "
        "not a number. Delete the point, or run `rag-pipeline ingest --rebuild`"
    )


def to_engine_vector(
    vector: FloatVector | FloatMatrix | SparseVector, sparse_class: Callable[..., Any]
) -> Any:  # noqa: ANN401  # a list, a list of lists or the sparse class
    """Return a vector in the form that the embedded engine or the server's client accepts.

    Args:
        vector: Dense vector, matrix of several rows, or sparse vector.
        sparse_class: Class for sparse vectors of the engine or the client.
    """
    if isinstance(vector, SparseVector):
        return sparse_class(indices=list(vector.indices), values=list(vector.values))
    return vector.tolist()


def to_named_vectors(point: Point, sparse_class: Callable[..., Any]) -> dict[str, Any]:
    """Return all vectors of a point by name (dense, windows, BM25), in the form for the engine.

    Args:
        point: The point.
        sparse_class: Class for sparse vectors of the engine or the server's client.
    """
    return {
        Channel.DENSE.value: point.vectors.dense.tolist(),
        Channel.WINDOWS.value: point.vectors.windows.tolist(),
        Channel.BM25.value: to_engine_vector(point.sparse, sparse_class),
    }


def to_stored_point(record: Any, *, with_vectors: bool) -> StoredPoint:  # noqa: ANN401  # record classes differ by call
    """Convert a record of the embedded engine or of the server's client to a `StoredPoint`.

    `vectors` is None if the record lacks its dense or its window vectors. This happens only if
    another program changed the point.
    """
    payload = dict(record.payload or {})
    if not with_vectors:
        return StoredPoint(check_id(record.id), payload)
    vector = record.vector
    named = vector if isinstance(vector, dict) else {}
    dense, windows, terms = (
        named.get(channel.value) for channel in (Channel.DENSE, Channel.WINDOWS, Channel.BM25)
    )
    vectors = None
    if dense is not None and windows is not None:
        vectors = ChunkVectors(
            np.asarray(dense, dtype=np.float32), np.asarray(windows, dtype=np.float32)
        )
    pairs = sorted(zip(terms.indices, terms.values, strict=True)) if terms is not None else ()
    sparse = SparseVector(tuple(index for index, _ in pairs), tuple(value for _, value in pairs))
    return StoredPoint(check_id(record.id), payload, vectors, sparse)


def measure_point(point: Point) -> int:
    """Return the approximate size of a point as JSON, in bytes."""
    numbers = point.vectors.dense.size + point.vectors.windows.size + 2 * len(point.sparse.indices)
    return int(numbers) * _FLOAT_BYTES + measure_payload(point.payload)


def measure_payload(payload: Payload) -> int:
    """Return the approximate size of a payload as JSON, in bytes."""
    return len(json.dumps(payload, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def split_by_size(
    entries: Iterable[_Entry], measure: Callable[[_Entry], int]
) -> Iterator[list[_Entry]]:
    """Yield entries in order, in batches of at most 8 MB as JSON.

    A larger entry gets its own batch.

    Args:
        entries: The entries.
        measure: Function that returns the size of an entry in bytes.
    """
    batch: list[_Entry] = []
    batch_bytes = 0
    for entry in entries:
        size_bytes = measure(entry)
        if batch and batch_bytes + size_bytes > _MAX_BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(entry)
        batch_bytes += size_bytes
    if batch:
        yield batch


def can_match(query: ChannelQuery) -> bool:
    """Return False for a query without terms, or whose filter allows no point."""
    no_terms = isinstance(query.vector, SparseVector) and not query.vector.indices
    return not no_terms and query.where.point_ids != ()


Hits: TypeAlias = "list[tuple[PointId, float]]"

_MARGIN: Final = 16  # extra hits per request; more equal scores are rare
_GROWTH: Final = 4  # factor for the next request if all extra hits have equal scores


class EngineStore(PointStore, ABC):
    """Base class of the embedded store and of the store on a Qdrant server.

    It contains all that does not depend on how Qdrant's engine is called.

    Args:
        space: Embedding space (model and format version) of the collection.
        collection_id: Id of the opened build (version) of the collection.
    """

    def __init__(self, space: EmbeddingSpace, collection_id: str) -> None:
        self._space = space
        self._collection_id = collection_id
        self._late_indexes: set[str] = set()

    @property
    def space(self) -> EmbeddingSpace:
        """Embedding space (model and format version) that the collection was built with."""
        return self._space

    @property
    def collection_id(self) -> str:
        """Id of the opened build; it stays the same if another build becomes the current one."""
        return self._collection_id

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[Hits]:
        """Run several searches and return the hits of each query, best first.

        Hits with equal scores are in ascending order of point id. The engine itself returns them in
        the order of its storage, and that can differ between two builds of the same content. So
        that the same hits are within the limit, the engine is asked for more hits than the limit,
        until all hits with the score of the last one are known. A query that cannot match (no
        terms, or an empty tuple of ids) is answered without the engine.

        Returns:
            For each query, at most `limit` pairs of point id and score. The score of a query with
            several rows is the mean over its rows.
        """
        return self._search_until_clear(queries, self._search)

    def search_and_fetch(
        self, queries: Sequence[ChannelQuery], point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> tuple[list[Hits], dict[PointId, Payload]]:
        """Return the results of `search_many` and of `fetch_fields`."""
        return self.search_many(queries), self.fetch_fields(point_ids, fields)

    def _search_until_clear(
        self,
        queries: Sequence[ChannelQuery],
        search: Callable[[Sequence[tuple[ChannelQuery, int]]], list[Hits]],
    ) -> list[Hits]:
        """Repeat a search with higher limits until it is clear which hits are the best."""
        answers: list[Hits] = [[] for _ in queries]
        limits = {
            number: query.limit + _MARGIN
            for number, query in enumerate(queries)
            if can_match(query)
        }
        while limits:
            found = search([(queries[number], limit) for number, limit in limits.items()])
            tied: dict[int, int] = {}
            for (number, requested), hits in zip(limits.items(), found, strict=True):
                if not hits:
                    continue
                limit = queries[number].limit
                if len(hits) == requested and hits[-1][1] == hits[limit - 1][1]:
                    tied[number] = requested * _GROWTH
                else:
                    ordered = sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]
                    vector = queries[number].vector
                    rows = (
                        1 if isinstance(vector, SparseVector) or vector.ndim == 1 else len(vector)
                    )
                    if rows > 1:
                        ordered = [(point_id, score / rows) for point_id, score in ordered]
                    answers[number] = ordered
            limits = tied
        return answers

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return the points with the given ids, in that order; missing points are left out."""
        records = self._retrieve(point_ids, with_payload=True, with_vectors=with_vectors)
        points = [to_stored_point(record, with_vectors=with_vectors) for record in records]
        by_id = {point.point_id: point for point in points}
        return [by_id[point_id] for point_id in point_ids if point_id in by_id]

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Return the given payload fields of points, by point id.

        Missing points, and fields that a point does not have, are left out.
        """
        records = self._retrieve(point_ids, with_payload=list(fields), with_vectors=False)
        return {check_id(record.id): dict(record.payload or {}) for record in records}

    def fetch_with_dense(
        self, point_ids: Sequence[PointId]
    ) -> dict[PointId, tuple[Payload, FloatVector | None]]:
        """Return the payloads and the dense vectors of points, by point id.

        Missing points are left out. The vector of a point changed by hand may be None.
        """
        name = Channel.DENSE.value
        found: dict[PointId, tuple[Payload, FloatVector | None]] = {}
        for record in self._retrieve(point_ids, with_payload=True, with_vectors=[name]):
            named = record.vector  # each access converts the vectors again
            has_dense = isinstance(named, dict) and name in named
            vector = np.asarray(named[name], dtype=np.float32) if has_dense else None
            found[check_id(record.id)] = dict(record.payload or {}), vector
        return found

    def scroll(
        self,
        where: PointFilter = PointFilter(),  # noqa: B008  # frozen and empty
        *,
        with_vectors: bool = False,
    ) -> list[StoredPoint]:
        """Return all points that match a filter, in ascending order of id."""
        records = self._scroll_records(where, with_payload=True, with_vectors=with_vectors)
        found = [to_stored_point(record, with_vectors=with_vectors) for record in records]
        return sorted(found, key=lambda point: point.point_id)

    def scroll_fields(
        self,
        fields: Sequence[str],
        where: PointFilter = PointFilter(),  # noqa: B008  # frozen and empty
    ) -> Iterator[tuple[PointId, Payload]]:
        """Yield the id of each matching point and some fields of its payload, page by page."""
        names = list(fields)
        for record in self._scroll_records(where, with_payload=names, with_vectors=False):
            yield check_id(record.id), dict(record.payload or {})

    def write_together(self) -> AbstractContextManager[None]:
        """Return a context manager without effect: a server stores each change by itself."""
        return nullcontext()

    def upsert(self, points: Sequence[Point]) -> None:
        """Write complete points in batches; a point with the same id is replaced."""
        self._index_late_fields(point.payload for point in points)
        for batch in split_by_size(points, measure_point):
            self._write(batch)

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the payloads of existing points; their vectors stay unchanged."""
        self._index_late_fields(payloads.values())
        self._overwrite(payloads)

    def _index_late_fields(self, payloads: Iterable[Payload]) -> None:
        """Create the indexes of the fields that only some sites have, if a payload has them.

        A site with one docs folder, no versions and one language pays nothing for them.
        """
        names = {name for payload in payloads for name in payload.keys() & LATE_INDEXES.keys()}
        if names <= self._late_indexes:
            return
        self._late_indexes |= self.describe().late_fields
        for name in sorted(names - self._late_indexes):
            self.create_index(name, is_boolean=LATE_INDEXES[name])
            self._late_indexes.add(name)

    @abstractmethod
    def create_index(self, field: str, *, is_boolean: bool) -> None:
        """Create the index of a payload field, of texts or of booleans."""

    @abstractmethod
    def _overwrite(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace the payloads of existing points."""

    @abstractmethod
    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        """Run queries, each with its own limit, in one request.

        Returns:
            For each query, its hits by descending score. The score of a query with several rows is
            the sum over its rows.
        """

    @abstractmethod
    def _retrieve(
        self, point_ids: Sequence[PointId], *, with_payload: Parts, with_vectors: Parts
    ) -> Iterable[Any]:
        """Return the records of points by id, in any order; missing points are left out.

        Args:
            point_ids: Ids of the points.
            with_payload: The fields of the payload.
            with_vectors: The vectors.
        """

    def _scroll_records(
        self, where: PointFilter, *, with_payload: Parts, with_vectors: bool
    ) -> Iterator[Any]:
        offset: Offset = None
        while True:
            records, offset = self._scroll_page(where, offset, with_payload, with_vectors)
            yield from records
            if offset is None:
                return

    @abstractmethod
    def _scroll_page(
        self, where: PointFilter, offset: Offset, with_payload: Parts, with_vectors: Parts
    ) -> tuple[list[Any], Offset]:
        """Return one page of the records that match a filter, and the offset of the next page.

        Args:
            where: The filter.
            offset: The offset that the call for the previous page returned; None for the first
                page.
            with_payload: The fields of the payload.
            with_vectors: The vectors.

        Returns:
            The records, and the offset of the next page. The offset is None after the last page.
        """

    @abstractmethod
    def _write(self, batch: Sequence[Point]) -> None:
        """Write the points of one batch in one request; return when they are stored."""
