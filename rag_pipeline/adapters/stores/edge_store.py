"""A collection in Qdrant Edge: Qdrant's engine in this process, one folder on disk, no server.

It translates between core.protocols and the engine. edge_catalog knows which folder is in use.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import qdrant_edge as edge

from rag_pipeline.adapters.stores.point_batches import split_points
from rag_pipeline.adapters.stores.stored_points import read_dense, read_id, to_stored_point
from rag_pipeline.adapters.stores.tie_order import search_in_tie_order
from rag_pipeline.core.errors import StoreError, StoreLockedError
from rag_pipeline.core.payload import INDEXED_FIELDS
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, PointFilter, StoredPoint
from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, FloatVector, Point

_SCROLL_PAGE = 1_000  # points per page; bounds memory of one answer
_RESERVE_BYTES = 16_000_000  # several times what one write takes


class EdgeStore:
    """A `PointStore` over one shard folder, open until `close`.

    Args:
        shard: Of the engine.
        space: What it was built with.
        folder: Of the build.
        release: Lets other processes open the folder; called when the shard is closed.
    """

    def __init__(
        self,
        shard: Any,  # noqa: ANN401  # the engine's class carries no usable type
        space: EmbeddingSpace,
        folder: Path,
        release: Callable[[], None],
    ) -> None:
        self._shard = shard
        self._release = release
        self._space = space
        self._folder = folder

    @property
    def space(self) -> EmbeddingSpace:
        """What the collection was built with."""
        return self._space

    @property
    def collection_id(self) -> str:
        """Name of the build folder."""
        return self._folder.name

    def search_many(self, queries: Sequence[ChannelQuery]) -> list[list[tuple[PointId, float]]]:
        """Run searches as one planned batch; see `VectorIndex.search_many`."""
        return search_in_tie_order(queries, self._search)

    def fetch(
        self, point_ids: Sequence[PointId], *, with_vectors: bool = False
    ) -> list[StoredPoint]:
        """Points by id, in the order asked for."""
        if not point_ids:
            return []
        records = _call(self._shard.retrieve, list(point_ids), True, with_vectors)  # noqa: FBT003  # the engine takes it by place
        points = [to_stored_point(record, with_vectors=with_vectors) for record in records]
        by_id = {point.point_id: point for point in points}
        return [by_id[point_id] for point_id in point_ids if point_id in by_id]

    def fetch_fields(
        self, point_ids: Sequence[PointId], fields: Sequence[str]
    ) -> dict[PointId, Payload]:
        """Some fields of points' payloads."""
        if not point_ids:
            return {}
        records = _call(self._shard.retrieve, list(point_ids), list(fields), False)  # noqa: FBT003  # the engine takes it by place
        return {read_id(record): dict(record.payload or {}) for record in records}

    def fetch_dense(self, point_ids: Sequence[PointId]) -> dict[PointId, FloatVector]:
        """Dense vectors alone."""
        if not point_ids:
            return {}
        name = Channel.DENSE.value
        records = _call(self._shard.retrieve, list(point_ids), False, [name])  # noqa: FBT003  # the engine takes it by place
        return read_dense(records)

    def count(self, where: PointFilter = PointFilter()) -> int:  # noqa: B008  # frozen and empty
        """How many points match."""
        request = edge.CountRequest(exact=True, filter=build_filter(where))
        return int(_call(self._shard.count, request))

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
            request = edge.ScrollRequest(
                offset=offset,
                limit=_SCROLL_PAGE,
                filter=build_filter(where),
                with_payload=True,
                with_vector=with_vectors,
            )
            records, offset = _call(self._shard.scroll, request)
            found.extend(to_stored_point(record, with_vectors=with_vectors) for record in records)
            if offset is None:
                return found

    def upsert(self, points: Sequence[Point]) -> None:
        """Write points whole."""
        for batch in split_points(points):
            records = [
                edge.Point(
                    int(point.point_id),
                    {
                        Channel.DENSE.value: point.vectors.dense.tolist(),
                        Channel.WINDOWS.value: point.vectors.windows.tolist(),
                        Channel.BM25.value: _sparse(point.sparse),
                    },
                    point.payload,
                )
                for point in batch
            ]
            self._apply(edge.UpdateOperation.upsert_points(records))

    def set_payloads(self, payloads: Mapping[PointId, Payload]) -> None:
        """Replace payloads, vectors untouched."""
        for point_id, payload in payloads.items():
            self._apply(edge.UpdateOperation.overwrite_payload([int(point_id)], payload))

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete points by id."""
        if point_ids:
            self._apply(
                edge.UpdateOperation.delete_points([int(point_id) for point_id in point_ids])
            )

    def optimize(self) -> None:
        """Merge segments and drop deleted points; worth its time after a bulk load."""
        _call(self._shard.optimize)

    def close(self) -> None:
        """Flush and let go of the folder."""
        try:
            _call(self._shard.close)
        finally:
            self._release()

    def _search(
        self, queries: Sequence[tuple[ChannelQuery, int]]
    ) -> list[list[tuple[PointId, float]]]:
        filters = {where: build_filter(where) for where in {query.where for query, _ in queries}}
        requests = [
            edge.QueryRequest(
                limit=limit,
                query=edge.Query.Nearest(_query_vector(query), using=query.channel.value),
                filter=filters[query.where],
                with_payload=False,
            )
            for query, limit in queries
        ]
        answers = _call(self._shard.query_batch, edge.QueryBatchRequest(requests))
        return [[(hit.id, hit.score) for hit in hits] for hits in answers]

    def _apply(self, operation: Any) -> None:  # noqa: ANN401  # the engine's class carries no usable type
        _check_space(self._folder)
        _call(self._shard.update, operation)


def create_shard(path: Path, dim: int) -> Any:  # noqa: ANN401  # the engine's class carries no usable type
    """Make an empty shard with the three channels and the payload indexes of FR-016."""
    cosine = edge.Distance.Cosine
    max_sim = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    config = edge.EdgeConfig(
        vectors={
            Channel.DENSE.value: edge.EdgeVectorParams(size=dim, distance=cosine),
            Channel.WINDOWS.value: edge.EdgeVectorParams(
                size=dim,
                distance=cosine,
                multivector_config=max_sim,
                on_disk=True,  # 35 MB of the book are not all read into memory when it is opened
            ),
        },
        sparse_vectors={
            Channel.BM25.value: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        },
    )
    path.mkdir(parents=True)
    _check_space(path)
    shard = _call(edge.EdgeShard.create, str(path), config)
    for field in INDEXED_FIELDS:
        operation = edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword)
        _call(shard.update, operation)
    return shard


def load_shard(path: Path) -> Any:  # noqa: ANN401  # the engine's class carries no usable type
    """Open an existing shard, which no other process may have open or be opening.

    The engine's own lock does not see to that: loading changes files before it looks at the lock,
    and leaves a shard that another process is writing damaged for good.
    """
    return _call(edge.EdgeShard.load, str(path))


def _check_space(folder: Path) -> None:
    """Refuse to write on a disk that is all but full.

    The engine writes by memory maps over files with holes: where no block is left for one, the
    system ends the process on the spot.
    """
    free = shutil.disk_usage(folder).free
    if free < _RESERVE_BYTES:
        message = (
            f"only {free // 1_000_000} MB are free where the embedded store writes ({folder}), "
            f"which takes {_RESERVE_BYTES // 1_000_000}. Free disk space"
        )
        raise StoreError(message)


def build_filter(where: PointFilter) -> Any:  # noqa: ANN401  # the engine's class carries no usable type
    """Translate a filter; None for one that does not restrict."""
    fields = {
        "module": where.modules,
        "chapter": where.chapters,
        "content_type": where.content_types,
        "tags": where.tags,
        "doc_path": where.doc_paths,
    }
    must: list[Any] = [
        edge.FieldCondition(key=key, match=edge.MatchAny(any=list(values)))
        for key, values in fields.items()
        if values
    ]
    if where.point_ids is not None:
        must.append(edge.HasIdCondition({int(point_id) for point_id in where.point_ids}))
    return edge.Filter(must=must) if must else None


def _query_vector(query: ChannelQuery) -> Any:  # noqa: ANN401  # list, matrix or sparse vector by channel
    if isinstance(query.vector, SparseVector):
        return _sparse(query.vector)
    return query.vector.tolist()


def _sparse(vector: SparseVector) -> Any:  # noqa: ANN401  # the engine's class carries no usable type
    return edge.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _call(action: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401  # the engine's own
    try:
        return action(*arguments)
    except BaseException as error:
        # The engine raises bare Exception for everything, and on files that it cannot make sense of
        # a panic, which is no Exception; an interrupt is neither and passes.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        message = str(error)
        if "WouldBlock" in message:
            hint = "the embedded store is held by another process. Wait for it to end, or end it"
            raise StoreLockedError(hint) from error
        cause = next(iter(message.splitlines()), type(error).__name__)
        hint = (
            f"the embedded store failed: {cause}. "
            "Free disk space or run `rag-pipeline ingest --rebuild`"
        )
        raise StoreError(hint) from error
