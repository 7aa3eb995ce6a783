"""A collection on a Qdrant server.

qdrant_catalog knows which collection is in use; qdrant_connection turns failures into errors.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TypeVar

from qdrant_client import models

from rag_pipeline.adapters.stores.engine_store import (
    EngineStore,
    read_id,
    to_engine_vector,
    to_named_vectors,
)
from rag_pipeline.core.protocols.stores import ChannelQuery, PointFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from qdrant_client import QdrantClient

    from rag_pipeline.adapters.stores.engine_store import Hits
    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, Point

_Entry = TypeVar("_Entry")

_PAGE: Final = 1_000  # points a request without vectors; bounds the size of one answer
_PAGE_WITH_VECTORS: Final = 100


class QdrantStore(EngineStore):
    """A `PointStore` over one collection of a server.

    Args:
        connection: Shared with the catalog, which outlives the store.
        space: What the collection was built with.
        collection_id: Its own name, not the alias.
    """

    def __init__(
        self, connection: QdrantConnection, space: EmbeddingSpace, collection_id: str
    ) -> None:
        super().__init__(space, collection_id)
        self._connection = connection

    def count(self, where: PointFilter = PointFilter()) -> int:  # noqa: B008  # frozen and empty
        """Return how many points match."""
        answer = self._call(
            methodcaller("count", self._collection_id, count_filter=build_filter(where), exact=True)
        )
        return int(answer.count)

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
        """Do nothing: connections are the catalog's and close with it."""

    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        requests = [
            models.QueryRequest(
                query=to_engine_vector(query.vector, models.SparseVector),
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
        with_vectors: bool | list[str],
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

    def _scroll_page(
        self,
        where: PointFilter,
        offset: Any,  # noqa: ANN401  # the client's own
        *,
        with_vectors: bool,
    ) -> tuple[list[Any], Any]:
        records, next_offset = self._call(
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
        return records, next_offset

    def _write(self, batch: Sequence[Point]) -> None:
        records = [
            models.PointStruct(
                id=int(point.point_id),
                vector=to_named_vectors(point, models.SparseVector),
                payload=point.payload,
            )
            for point in batch
        ]
        self._call(methodcaller("upsert", self._collection_id, points=records, wait=True))

    def _call(self, action: Callable[[QdrantClient], Any]) -> Any:  # noqa: ANN401  # the client's own
        return self._connection.call(action, self._collection_id)


def build_filter(where: PointFilter) -> models.Filter | None:
    """Translate a filter; None for one that does not restrict."""
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        for key, values in where.fields
    ]
    if where.point_ids is not None:
        must.append(models.HasIdCondition(has_id=[int(point_id) for point_id in where.point_ids]))
    return models.Filter(must=must) if must else None


def _pages(entries: Sequence[_Entry], size: int) -> Iterator[Sequence[_Entry]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
