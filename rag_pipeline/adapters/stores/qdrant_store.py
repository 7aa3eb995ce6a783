"""Vector store in a collection on a Qdrant server.

The module qdrant_catalog manages the builds of a collection; qdrant_connection translates errors.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from qdrant_client import models

from rag_pipeline.adapters.stores.engine_store import (
    EngineStore,
    measure_payload,
    read_id,
    split_by_size,
    to_engine_vector,
    to_named_vectors,
)
from rag_pipeline.adapters.stores.qdrant_layout import SEARCH_PARAMS
from rag_pipeline.core.errors import RequestTooLargeError
from rag_pipeline.core.payload import LATE_INDEXES
from rag_pipeline.core.protocols import Channel, ChannelQuery, IndexFacts, PointFilter
from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from qdrant_client import QdrantClient

    from rag_pipeline.adapters.stores.engine_store import Hits
    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, Point

_Entry = TypeVar("_Entry")

_PAGE: Final = 1_000  # points per request; limits the size of one response
_PAGE_WITH_VECTORS: Final = 100

# Vectors have unit length. Dense vectors are stored with 32 bits, which are about 8 decimals here.
# Windows are stored with 16 bits, whose rounding is several times that of 5 decimals.
_DECIMALS: Final = {Channel.DENSE: 8, Channel.WINDOWS: 5}


class QdrantStore(EngineStore):
    """A point store on one collection of a Qdrant server.

    Args:
        connection: Connection to the server, shared with the catalog. `close` leaves it open.
        space: Embedding space of the collection.
        collection_id: Id of the build: the collection's own name on the server, not its alias.
    """

    def __init__(
        self, connection: QdrantConnection, space: EmbeddingSpace, collection_id: str
    ) -> None:
        super().__init__(space, collection_id)
        self._connection = connection

    def count(self, where: PointFilter = PointFilter()) -> int:  # noqa: B008  # frozen and empty
        """Return the exact number of points that match a filter."""
        answer = self._call(
            methodcaller("count", self._collection_id, count_filter=build_filter(where), exact=True)
        )
        return int(answer.count)

    def describe(self) -> IndexFacts:
        """Return facts about all points in one request, without a scan."""
        info = self._call(methodcaller("get_collection", self._collection_id))
        # Only the client's own store in memory, which has no indexes, lists none.
        fields = frozenset(info.payload_schema or LATE_INDEXES) & LATE_INDEXES.keys()
        return IndexFacts(info.points_count or 0, fields)

    def _overwrite(self, payloads: Mapping[PointId, Payload]) -> None:
        operations = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload=payload, points=[int(point_id)])
            )
            for point_id, payload in payloads.items()
        ]
        for batch in split_by_size(operations, _measure_operation):
            self._send_in_parts(
                batch,
                lambda part: methodcaller(
                    "batch_update_points", self._collection_id, update_operations=part, wait=True
                ),
            )

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete the points with the given ids; unknown ids are ignored."""
        for page in _pages(point_ids, _PAGE):
            selector = models.PointIdsList(points=[int(point_id) for point_id in page])
            self._change(
                methodcaller("delete", self._collection_id, points_selector=selector, wait=True)
            )

    def close(self) -> None:
        """Do nothing, because the connection belongs to the catalog."""

    def search_and_fetch(
        self, queries: Sequence[ChannelQuery], point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> tuple[list[Hits], dict[PointId, Payload]]:
        """Return the results of `search_many` and of `fetch_fields`, in one request."""
        missing = list(point_ids)
        payloads: dict[PointId, Payload] = {}

        def search(asked: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
            requests = self._build_requests(asked)
            if missing:  # a query without a vector returns the points that match the filter
                where = build_filter(PointFilter(point_ids=tuple(missing)))
                requests.append(
                    models.QueryRequest(filter=where, limit=len(missing), with_payload=list(fields))
                )
            answers = self._send_all(requests)
            for record in answers.pop().points if missing else ():
                payloads[read_id(record)] = dict(record.payload or {})
            missing.clear()
            return _read_hits(answers)

        hits = self._search_until_clear(queries, search)
        return hits, payloads | self.fetch_fields(missing, fields)

    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        return _read_hits(self._send_all(self._build_requests(queries)))

    def _build_requests(
        self, queries: Sequence[tuple[ChannelQuery, int]]
    ) -> list[models.QueryRequest]:
        return [
            models.QueryRequest(
                query=self._write_vector(query),
                using=query.channel.value,
                filter=build_filter(query.where),
                params=self._choose_params(query),
                limit=limit,
                with_payload=False,
                with_vector=False,
            )
            for query, limit in queries
        ]

    def _send_all(self, requests: list[models.QueryRequest]) -> list[models.QueryResponse]:
        answers = list(self._call(lambda client: self._send(client, requests)))
        if len(answers) != len(requests):
            detail = f"{len(answers)} answers to {len(requests)} searches"
            raise self._connection.service.describe_unreadable(detail)
        return answers

    def _send(
        self, client: QdrantClient, requests: list[models.QueryRequest]
    ) -> Sequence[models.QueryResponse]:
        if not self._connection.is_server:
            return client.query_batch_points(self._collection_id, requests)
        # The client's own method copies all vectors first, to look for texts to embed.
        batch = models.QueryRequestBatch(searches=requests)
        answer = client.http.search_api.query_batch_points(
            self._collection_id, query_request_batch=batch
        )
        return answer.result or ()

    def _write_vector(self, query: ChannelQuery) -> Any:  # noqa: ANN401  # lists or a sparse vector
        """Return a query vector for the client, on its way to a server without useless decimals.

        Python writes a 32-bit number with 17 digits, of which the last 8 mean nothing.
        """
        decimals = _DECIMALS.get(query.channel)
        if decimals is None or isinstance(query.vector, SparseVector):
            return to_engine_vector(query.vector, models.SparseVector)
        vector = query.vector.astype(np.float64)
        return (np.round(vector, decimals) if self._connection.is_server else vector).tolist()

    def _choose_params(self, query: ChannelQuery) -> models.SearchParams | None:
        """Return the parameters of a search; the client's in-memory engine has no quantization."""
        within = build_filter(query.corpus)
        if within is not None:  # count documents with a term only in a part of the store
            return models.SearchParams(idf=models.IdfCorpusParams(corpus=within))
        return SEARCH_PARAMS.get(query.channel) if self._connection.is_server else None

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
        offset: Any,  # noqa: ANN401  # a type of the client
        with_payload: bool | list[str],  # noqa: FBT001  # as in the engine
        with_vectors: bool,  # noqa: FBT001  # as in the engine
    ) -> tuple[list[Any], Any]:
        records, next_offset = self._call(
            methodcaller(
                "scroll",
                self._collection_id,
                scroll_filter=build_filter(where),
                limit=_PAGE_WITH_VECTORS if with_vectors else _PAGE,
                offset=offset,
                with_payload=with_payload,
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
        self._send_in_parts(
            records,
            lambda part: methodcaller("upsert", self._collection_id, points=part, wait=True),
        )

    def _send_in_parts(
        self,
        entries: list[_Entry],
        write: Callable[[list[_Entry]], Callable[[QdrantClient], object]],
    ) -> None:
        """Send changes in one request, or in halves if the server accepts only smaller requests."""
        try:
            self._change(write(entries))
        except RequestTooLargeError:
            if len(entries) == 1:
                raise
            middle = len(entries) // 2
            self._send_in_parts(entries[:middle], write)
            self._send_in_parts(entries[middle:], write)

    def _create_index(self, field: str, *, is_boolean: bool) -> None:
        kinds = models.PayloadSchemaType
        kind = kinds.BOOL if is_boolean else kinds.KEYWORD
        self._call(
            methodcaller("create_payload_index", self._collection_id, field, kind, wait=True)
        )

    def _call(self, action: Callable[[QdrantClient], Any]) -> Any:  # noqa: ANN401  # the type depends on the call
        return self._connection.call(action, self._collection_id)

    def _change(self, action: Callable[[QdrantClient], object]) -> None:
        """Send a change, also while the server moves the shard that it concerns."""
        self._connection.call(action, self._collection_id, is_patient=True)


def build_filter(where: PointFilter) -> models.Filter | None:
    """Return a filter in the form of the client, or None if it matches every point."""
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        for key, values in where.fields
    ]
    if where.point_ids is not None:
        must.append(models.HasIdCondition(has_id=[int(point_id) for point_id in where.point_ids]))
    must += [
        models.IsEmptyCondition(is_empty=models.PayloadField(key=key)) for key in where.without
    ]
    return models.Filter(must=must) if must else None


def _read_hits(answers: Sequence[models.QueryResponse]) -> list[Hits]:
    return [[(read_id(hit), float(hit.score)) for hit in hits.points] for hits in answers]


def _measure_operation(operation: models.OverwritePayloadOperation) -> int:
    return measure_payload(operation.overwrite_payload.payload)


def _pages(entries: Sequence[_Entry], size: int) -> Iterator[Sequence[_Entry]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
