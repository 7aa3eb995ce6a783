"""A collection on a Qdrant server.

It translates between core.protocols and the client's models. qdrant_catalog knows which collection
is in use; qdrant_connection turns failures into errors.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TypeVar

from qdrant_client import models

from rag_pipeline.adapters.stores.point_batches import split_points
from rag_pipeline.adapters.stores.stored_points import read_dense, read_id, to_stored_point
from rag_pipeline.adapters.stores.tie_order import search_in_tie_order
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter, StoredPoint
from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from qdrant_client import QdrantClient

    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, FloatVector, Point

_Entry = TypeVar("_Entry")

_PAGE: Final = 1_000  # points a request without vectors; bounds the size of one answer
_PAGE_WITH_VECTORS: Final = 100


class QdrantStore:
    """A `PointStore` over one collection of a server.

    Args:
        connection: Shared with the catalog, which outlives the store.
        space: What the collection was built with.
        collection_id: Its own name, not the alias: a switch does not move an open store.
    """

    def __init__(
        self, connection: QdrantConnection, space: EmbeddingSpace, collection_id: str
    ) -> None:
        self._connection = connection
        self._space = space
        self._collection_id = collection_id

    @property
    def space(self) -> EmbeddingSpace:
        """What the collection was built with."""
        return self._space

    @property
    def collection_id(self) -> str:
        """The collection's own name on the server."""
        return self._collection_id

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run searches in one request; see `VectorIndex.search_many`."""
        return search_in_tie_order(queries, self._search)

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Points by id, in the order asked for."""
        records = self._retrieve(
            point_ids,
            with_payload=True,
            with_vectors=with_vectors,
        )
        points = [to_stored_point(record, with_vectors=with_vectors) for record in records]
        by_id = {point.point_id: point for point in points}
        return [by_id[point_id] for point_id in point_ids if point_id in by_id]

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Some fields of points' payloads."""
        records = self._retrieve(point_ids, with_payload=list(fields), with_vectors=False)
        return {read_id(record): dict(record.payload or {}) for record in records}

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Dense vectors alone."""
        name = Channel.DENSE.value
        records = self._retrieve(point_ids, with_payload=False, with_vectors=[name])
        return read_dense(records)

    def count(self, where: PointFilter = PointFilter()) -> int:  # noqa: B008  # frozen and empty
        """How many points match."""
        answer = self._call(
            methodcaller("count", self._collection_id, count_filter=build_filter(where), exact=True)
        )
        return int(answer.count)

    def scroll(
        self,
        where: PointFilter = PointFilter(),  # noqa: B008  # frozen and empty
        *,
        with_vectors: bool = False,
    ) -> list[StoredPoint]:
        """All matching points by ascending id."""
        found: list[StoredPoint] = []
        offset = None
        while True:
            records, offset = self._call(
                methodcaller(
                    "scroll",
                    self._collection_id,
                    scroll_filter=build_filter(where),
                    limit=_PAGE_WITH_VECTORS if with_vectors else _PAGE,
                    offset=offset,
                    with_payload=True,
                    with_vectors=with_vectors,
                )
            )
            found.extend(to_stored_point(record, with_vectors=with_vectors) for record in records)
            if offset is None:
                return sorted(found, key=lambda point: point.point_id)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole, each request applied before the next is sent."""
        for batch in split_points(points):
            records = [
                models.PointStruct(
                    id=int(point.point_id),
                    vector={
                        Channel.DENSE.value: point.vectors.dense.tolist(),
                        Channel.WINDOWS.value: point.vectors.windows.tolist(),
                        Channel.BM25.value: _sparse(point.sparse),
                    },
                    payload=point.payload,
                )
                for point in batch
            ]
            self._call(methodcaller("upsert", self._collection_id, points=records, wait=True))

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace payloads, vectors untouched."""
        operations = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload=payload, points=[int(point_id)])
            )
            for point_id, payload in payloads.items()
        ]
        for page in _pages(operations, _PAGE_WITH_VECTORS):
            self._call(
                methodcaller(
                    "batch_update_points", self._collection_id, update_operations=page, wait=True
                )
            )

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete points by id."""
        for page in _pages(point_ids, _PAGE):
            selector = models.PointIdsList(points=[int(point_id) for point_id in page])
            self._call(
                methodcaller("delete", self._collection_id, points_selector=selector, wait=True)
            )

    def close(self) -> None:
        """Nothing to let go of: connections are the catalog's and close with it."""

    def _search(
        self, queries: Sequence[tuple[ChannelQuery, int]]
    ) -> list[list[tuple[PointId, float]]]:
        requests = [
            models.QueryRequest(
                query=_query_vector(query),
                using=query.channel.value,
                filter=build_filter(query.where),
                limit=limit,
                with_payload=False,
                with_vector=False,
            )
            for query, limit in queries
        ]
        answers = self._call(
            methodcaller("query_batch_points", self._collection_id, requests=requests)
        )
        if len(answers) != len(requests):
            detail = f"{len(answers)} answers to {len(requests)} searches"
            raise self._connection.service.describe_unreadable(detail)
        return [[(read_id(hit), float(hit.score)) for hit in hits.points] for hits in answers]

    def _retrieve(
        self,
        point_ids: Sequence[PointId],
        *,
        with_payload: bool | list[str],
        with_vectors: Any,  # noqa: ANN401  # a list of names or a truth value
    ) -> Iterator[Any]:
        for page in _pages(point_ids, _PAGE_WITH_VECTORS if with_vectors else _PAGE):
            yield from self._call(
                methodcaller(
                    "retrieve",
                    self._collection_id,
                    ids=[int(point_id) for point_id in page],
                    with_payload=with_payload,
                    with_vectors=with_vectors,
                )
            )

    def _call(self, action: Callable[[QdrantClient], Any]) -> Any:  # noqa: ANN401  # the client's own
        return self._connection.call(action, self._collection_id)


def build_filter(where: PointFilter) -> models.Filter | None:
    """Translate a filter; None for one that does not restrict."""
    fields = {
        "module": where.modules,
        "chapter": where.chapters,
        "content_type": where.content_types,
        "tags": where.tags,
        "doc_path": where.doc_paths,
    }
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        for key, values in fields.items()
        if values
    ]
    if where.point_ids is not None:
        must.append(models.HasIdCondition(has_id=[int(point_id) for point_id in where.point_ids]))
    return models.Filter(must=must) if must else None


def _pages(entries: Sequence[_Entry], size: int) -> Iterator[Sequence[_Entry]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]


def _query_vector(query: ChannelQuery) -> Any:  # noqa: ANN401  # list, matrix or sparse vector by channel
    if isinstance(query.vector, SparseVector):
        return _sparse(query.vector)
    return query.vector.tolist()


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
