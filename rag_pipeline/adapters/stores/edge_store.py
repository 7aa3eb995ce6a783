"""Vector store in Qdrant Edge: Qdrant's engine inside this process, with a folder on disk.

The module edge_catalog manages the folders of a collection.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from rag_pipeline.adapters.stores.engine_store import (
    EngineStore,
    Hits,
    Offset,
    Parts,
    to_engine_vector,
    to_named_vectors,
)
from rag_pipeline.core.errors import StoreDamagedError, StoreError, StoreLockedError, describe_kind
from rag_pipeline.core.payload import INDEXED_FIELDS, LATE_INDEXES
from rag_pipeline.core.protocols import Channel, ChannelQuery, IndexFacts, PointFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import EmbeddingSpace, Point


def build_filter(where: PointFilter) -> Any:  # noqa: ANN401  # the engine's classes have no usable types
    """Return a filter in the form of the engine, or None if it matches every point."""
    must: list[Any] = [
        edge.FieldCondition(key=key, match=edge.MatchAny(any=list(values)))
        for key, values in where.fields
    ]
    if where.point_ids is not None:
        must.append(edge.HasIdCondition({int(point_id) for point_id in where.point_ids}))
    # The engine reads a boolean value of a condition as a number, so it cannot match `false`.
    must += [edge.IsEmptyCondition(key) for key in where.without]
    return edge.Filter(must=must) if must else None


_SCROLL_PAGE: Final = 1_000  # points per page; limits the memory for one page
_VECTORS_PAGE: Final = 100  # the engine returns vectors as lists, which take 1 MB a point
_RESERVE_BYTES: Final = 16_000_000  # several times what one write or a new shard needs

_MORE_SPACE: Final = "Free disk space, or set DATA_DIR to a folder with more space"

# Advice for the errors of the system that the engine reports by their number. They are no damage.
_SYSTEM_ERRORS: Final = {
    f"os error {number})": advice
    for number, advice in (
        (errno.ENOMEM, "Free memory, or end other programs"),
        (errno.EACCES, "Check the permissions of DATA_DIR"),
        (errno.EMFILE, "Raise the limit of open files (`ulimit -n`)"),
        (errno.ENOSPC, "Free disk space"),
        (errno.EROFS, "Set DATA_DIR to a folder that can be written"),
    )
}

# Loading a shard reads all of the files in these folders. The engine creates the files sparse, with
# a hole for later data.
_READ_WHOLE: Final = ("payload_index", "vector_storage-dense")
_HOLES_OF_A_NEW_SHARD: Final = (32 + 5 * len(INDEXED_FIELDS)) * 2**20


class EdgeStore(EngineStore):
    """A point store on one shard folder of Qdrant Edge, open until `close` is called.

    Args:
        shard: Open shard of the engine.
        space: Embedding space of the shard.
        folder: Folder of the build. Its name is the id of the build.
        release: Function that lets other processes open the folder, or deletes the copy; `close`
            calls it.
        copied_at_ns: Time of the last change of the files that were copied; None without a copy.
    """

    def __init__(
        self,
        shard: Any,  # noqa: ANN401  # the engine's classes have no usable types
        space: EmbeddingSpace,
        folder: Path,
        release: Callable[[], None],
        copied_at_ns: int | None = None,
    ) -> None:
        super().__init__(space, folder.name)
        self._shard = shard
        self._release = release
        self.copied_at_ns = copied_at_ns
        self._folder = folder
        self._is_writing_together = False

    def count(self, where: PointFilter = PointFilter()) -> int:  # noqa: B008  # frozen and empty
        """Return the exact number of points that match a filter."""
        request = edge.CountRequest(exact=True, filter=build_filter(where))
        return int(_call(self._shard.count, request, is_reading=True))

    def describe(self) -> IndexFacts:
        """Return facts about all points, without a scan."""
        info = _call(self._shard.info, is_reading=True)
        return IndexFacts(info.points_count, frozenset(info.payload_schema) & LATE_INDEXES.keys())

    @contextmanager
    def write_together(self) -> Iterator[None]:
        """Write the changes to the disk once, at the end. Each time takes 10 to 80 ms."""
        self._is_writing_together = True
        try:
            yield
        finally:
            self._is_writing_together = False
            _call(self._shard.flush)

    def _overwrite(self, payloads: Mapping[PointId, Payload]) -> None:
        overwrite = edge.UpdateOperation.overwrite_payload
        self._apply([overwrite([int(key)], payload) for key, payload in payloads.items()])

    def delete(self, point_ids: Sequence[PointId]) -> None:
        """Delete the points with the given ids; unknown ids are ignored."""
        if point_ids:
            known: list[Any] = [int(point_id) for point_id in point_ids]
            self._apply([edge.UpdateOperation.delete_points(known)])

    def close(self) -> None:
        """Write all changes to disk, close the shard and release the folder."""
        try:
            _call(self._shard.close)
        finally:
            self._release()

    def _search(self, queries: Sequence[tuple[ChannelQuery, int]]) -> list[Hits]:
        used = {where for query, _ in queries for where in (query.where, query.corpus)}
        filters = {where: build_filter(where) for where in used}
        within = {  # count documents with a term only in a part of the store
            where: edge.SearchParams(idf=edge.IdfParams(corpus=corpus))
            for where, corpus in filters.items()
            if corpus is not None
        }
        requests = [
            edge.QueryRequest(
                limit=limit,
                query=edge.Query.Nearest(
                    to_engine_vector(query.vector, edge.SparseVector), using=query.channel.value
                ),
                filter=filters[query.where],
                params=within.get(query.corpus),
                with_payload=False,
            )
            for query, limit in queries
        ]
        answers = _call(self._shard.query_batch, edge.QueryBatchRequest(requests))
        return [[(hit.id, hit.score) for hit in hits] for hits in answers]

    def _retrieve(
        self, point_ids: Sequence[PointId], *, with_payload: Parts, with_vectors: Parts
    ) -> Sequence[Any]:
        if not point_ids:
            return []
        records: Sequence[Any] = _call(
            self._shard.retrieve, list(point_ids), with_payload, with_vectors, is_reading=True
        )
        return records

    def _scroll_page(
        self, where: PointFilter, offset: Offset, with_payload: Parts, with_vectors: Parts
    ) -> tuple[list[Any], Offset]:
        request = edge.ScrollRequest(
            offset=offset,
            limit=_VECTORS_PAGE if with_vectors else _SCROLL_PAGE,
            filter=build_filter(where),
            with_payload=with_payload,
            with_vector=with_vectors,
        )
        records, next_offset = _call(self._shard.scroll, request, is_reading=True)
        return records, next_offset

    def _write(self, batch: Sequence[Point]) -> None:
        records = [
            edge.Point(
                int(point.point_id), to_named_vectors(point, edge.SparseVector), point.payload
            )
            for point in batch
        ]
        self._apply([edge.UpdateOperation.upsert_points(records)])

    def create_index(self, field: str, *, is_boolean: bool) -> None:
        """Create the index of a payload field, of texts or of booleans."""
        kinds = edge.PayloadSchemaType
        kind = kinds.Bool if is_boolean else kinds.Keyword
        self._apply([edge.UpdateOperation.create_field_index(field, kind)])

    def _apply(self, operations: Sequence[Any]) -> None:
        """Run changes, and write them to the disk, because no log could repeat them."""
        for operation in operations:
            check_space(self._folder, _RESERVE_BYTES)
            _call(self._shard.update, operation)
        if operations and not self._is_writing_together:
            _call(self._shard.flush)


def create_shard(path: Path, dim: int) -> Any:  # noqa: ANN401  # the engine's classes have no usable types
    """Create an empty shard in a new folder, and return it open.

    The shard has vectors for the three channels (dense, windows and BM25), and a keyword index for
    each payload field in `INDEXED_FIELDS`.

    Args:
        path: Folder of the shard, which must not exist yet.
        dim: Dimension of the dense and window vectors.

    Raises:
        StoreError: The disk is too full, or the engine failed.
    """
    cosine = edge.Distance.Cosine
    max_sim = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    config = edge.EdgeConfig(
        vectors={
            Channel.DENSE.value: edge.EdgeVectorParams(size=dim, distance=cosine),
            Channel.WINDOWS.value: edge.EdgeVectorParams(
                size=dim,
                distance=cosine,
                multivector_config=max_sim,
                datatype=edge.VectorStorageDatatype.Float16,  # as in the cache
                on_disk=True,  # opening the book's store then does not read all 20 MB
            ),
        },
        sparse_vectors={
            Channel.BM25.value: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        },
        # The write-ahead log would take more space than the points, in files of 32 MiB.
        wal_enabled=False,
    )
    path.mkdir(parents=True)
    check_space(path, _RESERVE_BYTES + _HOLES_OF_A_NEW_SHARD * _is_in_memory(path))
    shard = _call(edge.EdgeShard.create, str(path), config)
    for field in INDEXED_FIELDS:
        operation = edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword)
        _call(shard.update, operation)
    return shard


def load_shard(path: Path, remedy: str = _MORE_SPACE) -> Any:  # noqa: ANN401  # the engine's classes have no usable types
    """Open an existing shard; the caller must have locked it against other processes.

    The engine's own lock is not enough. The engine changes files before it checks its lock, which
    permanently damages a shard that another process is writing.

    Args:
        path: Folder of the shard.
        remedy: Advice for a disk that is too full.

    Raises:
        StoreDamagedError: The shard is damaged.
        StoreError: The memory for it is too small, or the system refuses access to it.
    """
    if _is_in_memory(path):
        files = [file for part in _READ_WHOLE for file in path.glob(f"segments/*/{part}/**/*")]
        states = [file.stat() for file in files]
        holes = sum(max(0, stat.st_size - stat.st_blocks * 512) for stat in states)
        check_space(path, holes, remedy)
    return _call(edge.EdgeShard.load, str(path), is_reading=True)


def check_space(folder: Path, needed_bytes: int, remedy: str = _MORE_SPACE) -> None:
    """Raise a `StoreError` if a folder has less free space than the engine needs.

    The engine maps sparse files into memory. If it writes into a hole of such a file and the disk
    is full, the operating system kills the process.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise StoreError(
            f"only {free // 1_000_000} MB are free in {folder}, and the embedded store needs "
            f"{-(-needed_bytes // 1_000_000)} MB there. {remedy}"
        )


def _is_in_memory(folder: Path) -> bool:
    """Return True for a folder on tmpfs, where even reading a hole in a file takes space."""
    device = folder.stat().st_dev
    mounts = Path("/proc/self/mountinfo")  # Linux only: other systems have no tmpfs
    for line in mounts.read_text("utf-8").splitlines() if mounts.exists() else ():
        fields = line.split()  # see proc(5): field 3 is the device, the type follows "-"
        if fields[2] == f"{os.major(device)}:{os.minor(device)}":
            return fields[fields.index("-") + 1] == "tmpfs"
    return False


def _call(action: Callable[..., Any], *arguments: Any, is_reading: bool = False) -> Any:  # noqa: ANN401  # the type depends on the call
    try:
        return action(*arguments)
    except BaseException as error:
        # The engine raises plain Exception for everything. For damaged files it raises
        # PanicException, which is not an Exception. An interrupt must pass through.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        message = str(error)
        if "WouldBlock" in message:
            hint = "another process has the embedded store open. Wait until it ends, or end it"
            raise StoreLockedError(hint) from error
        cause = next(iter(message.splitlines()), describe_kind(error))
        is_damage = is_reading or not isinstance(error, Exception)
        advice = next((_SYSTEM_ERRORS[one] for one in _SYSTEM_ERRORS if one in message), None)
        if is_damage and advice is None:
            inner = cause.rsplit("error: ", 1)[-1]  # the engine repeats the path for each layer
            raise StoreDamagedError(f"the embedded store cannot be read ({inner})") from error
        advice = advice or "Free disk space or run `rag-pipeline ingest --rebuild`"
        raise StoreError(f"the embedded store failed: {cause}. {advice}") from error
