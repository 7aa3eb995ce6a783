"""Vector store in a collection on a Qdrant server.

The module qdrant_catalog manages the builds of a collection; qdrant_connection translates errors.
"""

from __future__ import annotations

import json
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
from qdrant_client import QdrantClient, models

from rag_pipeline.adapters.stores.engine_store import (
    EngineStore,
    Hits,
    Offset,
    Parts,
    check_id,
    measure_payload,
    split_by_size,
    to_named_vectors,
)
from rag_pipeline.core.errors import RequestTooLargeError
from rag_pipeline.core.payload import LATE_INDEXES
from rag_pipeline.core.protocols import Channel, ChannelQuery, IndexFacts, PointFilter
from rag_pipeline.core.vectors import EmbeddingSpace, Point, SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload

_Entry = TypeVar("_Entry")
_Hit: TypeAlias = "tuple[object, float, Payload]"  # the id as the server sent it

_PAGE: Final = 1_000  # points per request; limits the size of one response
_PAGE_WITH_VECTORS: Final = 100

# Vectors have unit length. Dense vectors are stored with 32 bits, which are about 8 decimals here.
# Windows are stored with 16 bits, whose rounding is several times that of 5 decimals.
_DECIMALS: Final = {Channel.DENSE: 8, Channel.WINDOWS: 5}

SEARCH_PARAMS: Final = {
    # The quantized vectors choose the candidates, and the vectors themselves give the scores.
    Channel.DENSE: {"quantization": {"rescore": True}},
    # All candidates are known, and reading their windows from the disk is what takes long.
    Channel.WINDOWS: {"quantization": {"rescore": False}},
}
"""How searches use quantized vectors. A collection without them ignores it."""


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
        for batch in split_by_size(payloads.items(), lambda entry: measure_payload(entry[1])):
            operations = [
                models.OverwritePayloadOperation(
                    overwrite_payload=models.SetPayload(payload=payload, points=[int(point_id)])
                )
                for point_id, payload in batch
            ]
            self._send_in_parts(
                operations,
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
                where = write_filter(PointFilter(point_ids=tuple(missing)))
                limits = {"limit": len(missing), "with_payload": list(fields)}
                requests.append({"filter": where, **limits})
            answers = self._send_all(requests)
            for point_id, _, payload in answers.pop() if missing else ():
                payloads[check_id(point_id)] = payload
            missing.clear()
            return _read_hits(answers)

        hits = self._search_until_clear(queries, search)
        return hits, payloads | self.fetch_fields(missing, fields)

    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        return _read_hits(self._send_all(self._build_requests(queries)))

    def _build_requests(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[dict[str, Any]]:
        written = {where: write_filter(where) for where in {query.where for query, _ in queries}}
        requests = []
        for query, limit in queries:
            request = {
                "query": self._write_vector(query),
                "using": query.channel.value,
                "filter": written[query.where],
                "params": self._choose_params(query),
                "limit": limit,
            }
            requests.append({key: value for key, value in request.items() if value is not None})
        return requests

    def _send_all(self, requests: list[dict[str, Any]]) -> list[list[_Hit]]:
        answers: list[list[_Hit]] = self._call(lambda client: self._send(client, requests))
        if len(answers) != len(requests):
            detail = f"{len(answers)} answers to {len(requests)} searches"
            raise self._connection.service.describe_unreadable(detail)
        return answers

    def _send(self, client: QdrantClient, requests: list[dict[str, Any]]) -> list[list[_Hit]]:
        """Return the hits of each search as the server's JSON has them.

        The client's methods make an object of each search and of each hit, which takes several
        times as long as the rest of a request.
        """
        answer = client.http.client.request(
            type_=dict[str, Any],
            method="POST",
            url="/collections/{collection_name}/points/query/batch",
            headers={"Content-Type": "application/json"},
            path_params={"collection_name": self._collection_id},
            content=json.dumps({"searches": requests}, separators=(",", ":")),
        )
        try:
            return [
                [
                    (hit["id"], float(hit["score"]), hit.get("payload") or {})
                    for hit in one["points"]
                ]
                for one in answer["result"]
            ]
        except KeyError as error:
            raise ValueError(f"a response without {error}") from error

    def _write_vector(self, query: ChannelQuery) -> Any:  # noqa: ANN401  # lists or a sparse vector
        """Return a query vector as whole numbers, or the terms of a sparse vector.

        The server divides a vector by its length, so that its scale means nothing. A whole number
        is a third shorter than a fraction with the same digits.
        """
        if isinstance(query.vector, SparseVector):
            return {"indices": list(query.vector.indices), "values": list(query.vector.values)}
        vector = query.vector.astype(np.float64)
        return np.rint(vector * 10 ** _DECIMALS[query.channel]).astype(np.int64).tolist()

    def _choose_params(self, query: ChannelQuery) -> dict[str, Any] | None:
        within = write_filter(query.corpus)
        if within is not None:  # count documents with a term only in a part of the store
            return {"idf": {"corpus": within}}
        return SEARCH_PARAMS.get(query.channel)

    def _retrieve(
        self, point_ids: Sequence[PointId], *, with_payload: Parts, with_vectors: Parts
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
        self, where: PointFilter, offset: Offset, with_payload: Parts, with_vectors: Parts
    ) -> tuple[list[Any], Offset]:
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

    def create_index(self, field: str, *, is_boolean: bool) -> None:
        """Create the index of a payload field, of texts or of booleans."""
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
    written = write_filter(where)
    return models.Filter.model_validate(written) if written else None


def write_filter(where: PointFilter) -> dict[str, Any] | None:
    """Return a filter in the form of the REST interface, or None if it matches every point."""
    must: list[dict[str, Any]] = [
        {"key": key, "match": {"any": list(values)}} for key, values in where.fields
    ]
    if where.point_ids is not None:
        must.append({"has_id": [int(point_id) for point_id in where.point_ids]})
    must += [{"is_empty": {"key": key}} for key in where.without]
    return {"must": must} if must else None


def _read_hits(answers: Sequence[Sequence[_Hit]]) -> list[Hits]:
    return [[(check_id(point_id), score) for point_id, score, _ in hits] for hits in answers]


def _pages(entries: Sequence[_Entry], size: int) -> Iterator[Sequence[_Entry]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
