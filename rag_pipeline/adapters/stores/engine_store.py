"""The part of a store that Qdrant's engine in this process and a Qdrant server have in common: the
client and the engine name the parts of points, records and hits alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter, StoredPoint
from rag_pipeline.core.vectors import ChunkVectors, SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, FloatMatrix, FloatVector, Point

    Hits: TypeAlias = list[tuple[PointId, float]]

_MARGIN: Final = 16  # hits asked for beyond the limit; repeated passages are rarely more
_GROWTH: Final = 4

_MAX_FLOATS: Final = 400_000
"""Vector components per write: about 8 MB of JSON, a quarter of what a Qdrant server accepts."""


class EngineStore(ABC):
    """The calls of a `PointStore` that do not depend on how the engine is reached.

    Args:
        space: What the collection was built with.
        collection_id: The build's own name.
    """

    def __init__(self, space: EmbeddingSpace, collection_id: str) -> None:
        self._space = space
        self._collection_id = collection_id

    @property
    def space(self) -> EmbeddingSpace:
        """What the collection was built with."""
        return self._space

    @property
    def collection_id(self) -> str:
        """The build's own name: a switch does not move an open store."""
        return self._collection_id

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[Hits]:
        """Run searches so that equal scores are ordered, and cut, by ascending point id.

        The engine returns equal scores in the order of its storage, which differs between a clean
        build and an updated one. So each list is asked for with some more hits, and again with many
        more if all of those still tie with the last hit that is kept. Queries that cannot match (no
        terms, no ids) are answered without the engine.
        """
        answers: list[Hits] = [[] for _ in queries]
        limits = {
            number: query.limit + _MARGIN
            for number, query in enumerate(queries)
            if _can_match(query)
        }
        while limits:
            found = self._search([(queries[number], limit) for number, limit in limits.items()])
            cut_through: dict[int, int] = {}
            for (number, asked), hits in zip(limits.items(), found, strict=True):
                limit = queries[number].limit
                if len(hits) == asked and hits[-1][1] == hits[limit - 1][1]:
                    cut_through[number] = asked * _GROWTH
                else:
                    ordered = sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]
                    rows = _count_rows(queries[number])
                    if rows > 1:
                        ordered = [(point_id, score / rows) for point_id, score in ordered]
                    answers[number] = ordered
            limits = cut_through
        return answers

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Return points by id, in the order asked for."""
        records = self._retrieve(point_ids, with_payload=True, with_vectors=with_vectors)
        points = [_to_stored_point(record, with_vectors=with_vectors) for record in records]
        by_id = {point.point_id: point for point in points}
        return [by_id[point_id] for point_id in point_ids if point_id in by_id]

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Return some fields of points' payloads."""
        records = self._retrieve(point_ids, with_payload=list(fields), with_vectors=False)
        return {read_id(record): dict(record.payload or {}) for record in records}

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Return dense vectors by id; a point that was altered by hand may lack its own."""
        name = Channel.DENSE.value
        records = self._retrieve(point_ids, with_payload=False, with_vectors=[name])
        vectors = [
            (read_id(record), record.vector) for record in records
        ]  # each look makes it anew
        return {
            point_id: np.asarray(named[name], dtype=np.float32)
            for point_id, named in vectors
            if isinstance(named, dict) and name in named
        }

    def scroll(
        self,
        where: PointFilter = PointFilter(),  # noqa: B008  # frozen and empty
        *,
        with_vectors: bool = False,
    ) -> list[StoredPoint]:
        """Return all matching points by ascending id."""
        found: list[StoredPoint] = []
        offset: Any = None
        while True:
            records, offset = self._scroll_page(where, offset, with_vectors=with_vectors)
            found.extend(_to_stored_point(record, with_vectors=with_vectors) for record in records)
            if offset is None:
                return sorted(found, key=lambda point: point.point_id)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole, each batch applied before the next is sent."""
        for batch in _split_points(points):
            self._write(batch)

    @abstractmethod
    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        """Run queries with their limits in one request.

        Returns:
            Hits by descending score; a query of several rows has the sum over its rows.
        """

    @abstractmethod
    def _retrieve(
        self,
        point_ids: Sequence[PointId],
        *,
        with_payload: bool | list[str],
        with_vectors: bool | list[str],
    ) -> Iterable[Any]:
        """Return records by id, in any order; lists name payload fields and vectors."""

    @abstractmethod
    def _scroll_page(
        self,
        where: PointFilter,
        offset: Any,  # noqa: ANN401  # the engine's own
        *,
        with_vectors: bool,
    ) -> tuple[list[Any], Any]:
        """Return records from an offset on, and the next offset; None after the last page."""

    @abstractmethod
    def _write(self, batch: Sequence[Point]) -> None:
        """Write points in one request."""


def read_id(record: Any) -> PointId:  # noqa: ANN401  # record classes differ by call
    """Return the id of a record or hit.

    Raises:
        StoreError: The id is not a number, so somebody else wrote the point.
    """
    if isinstance(record.id, int):
        return PointId(record.id)
    raise StoreError(
        f"point {record.id} of the collection is not by rag-pipeline, whose ids are numbers. "
        "Delete it there, or run `rag-pipeline ingest --rebuild`"
    )


def to_engine_vector(
    vector: FloatVector | FloatMatrix | SparseVector, sparse_class: Callable[..., Any]
) -> Any:  # noqa: ANN401  # a list, a list of lists or the sparse class
    """Return a vector as the engine or the client takes it."""
    if isinstance(vector, SparseVector):
        return sparse_class(indices=list(vector.indices), values=list(vector.values))
    return vector.tolist()


def to_named_vectors(point: Point, sparse_class: Callable[..., Any]) -> dict[str, Any]:
    """Return a point's vectors by channel, as the engine or the client takes them."""
    return {
        Channel.DENSE.value: point.vectors.dense.tolist(),
        Channel.WINDOWS.value: point.vectors.windows.tolist(),
        Channel.BM25.value: to_engine_vector(point.sparse, sparse_class),
    }


def _to_stored_point(record: Any, *, with_vectors: bool) -> StoredPoint:  # noqa: ANN401  # record classes differ by call
    """Translate a record; a point that was altered by hand may lack some of its vectors."""
    payload = dict(record.payload or {})
    if not with_vectors:
        return StoredPoint(read_id(record), payload)
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
    return StoredPoint(read_id(record), payload, vectors, sparse)


def _split_points(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield points in order, in batches of at most `_MAX_FLOATS` components; a larger point stands
    alone.
    """
    batch: list[Point] = []
    batch_floats = 0
    for point in points:
        floats = point.vectors.dense.size + point.vectors.windows.size
        if batch and batch_floats + floats > _MAX_FLOATS:
            yield batch
            batch, batch_floats = [], 0
        batch.append(point)
        batch_floats += floats
    if batch:
        yield batch


def _count_rows(query: ChannelQuery) -> int:
    if isinstance(query.vector, SparseVector) or query.vector.ndim == 1:
        return 1
    return len(query.vector)


def _can_match(query: ChannelQuery) -> bool:
    no_terms = isinstance(query.vector, SparseVector) and not query.vector.indices
    return not no_terms and query.where.point_ids != ()
