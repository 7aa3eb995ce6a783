"""Catalog of the builds (versions) of a collection on a Qdrant server.

On the server, each build is a collection. The collection's name is an alias of the current build,
`<name>.previous` is an alias of the previous build. The setting for the name allows no dot, so the
two cannot clash. The embedding space is stored in the metadata of each build.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from qdrant_client import QdrantClient, models

from rag_pipeline.adapters.stores.builds import (
    BuildCatalog,
    alone,
    find_cell,
    is_build_id,
    is_older_than,
    make_build_id,
    read_space,
    read_stamp,
    write_space,
)
from rag_pipeline.adapters.stores.qdrant_store import SEARCH_PARAMS, QdrantStore
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    StoreError,
)
from rag_pipeline.core.payload import INDEXED_FIELDS
from rag_pipeline.core.protocols import Channel

if TYPE_CHECKING:
    from rag_pipeline.adapters.stores.builds import Forget, TakeLock
    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import EmbeddingSpace


SPACE_KEY: Final = "rag_pipeline_space"
"""Key of the embedding space in the metadata of a collection."""

_EDGES: Final = 16  # the server's default for `m`, the edges of a node in the graph
_QUANTILE: Final = 0.99  # of the components, so that single large ones do not widen the range

_MIN_QUERY_LIMIT: Final = 1_000
"""Most points that this package reads in one request."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Storage options of a new collection on the server. Existing collections keep theirs.

    Attributes:
        shard_number: Number of shards; 0 for the server's default.
        replication_factor: Number of copies of each shard; 0 for the server's default.
        quantized: Channels whose vectors the server also keeps in memory as 8-bit integers.
        is_bulk: True to create the collection without a vector graph, so that writing its points is
            faster. `end_loading` builds the graph afterwards.
    """

    shard_number: int = 0
    replication_factor: int = 0
    quantized: frozenset[Channel] = frozenset()
    is_bulk: bool = False


def read_layout(settings: Settings) -> Layout:
    """Return the layout that the settings select."""
    wanted = settings.qdrant_quantization
    return Layout(
        settings.qdrant_shard_number,
        settings.qdrant_replication_factor,
        frozenset(channel for channel in SEARCH_PARAMS if wanted in {channel.value, "all"}),
        settings.qdrant_bulk_loading,
    )


def create_collection(
    client: QdrantClient, collection_id: str, space: EmbeddingSpace, layout: Layout
) -> None:
    """Create an empty build, unless it exists because the response of an attempt was lost."""
    if client.collection_exists(collection_id):
        return
    quantized = models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(
            type=models.ScalarType.INT8, quantile=_QUANTILE, always_ram=True
        )
    )
    dense, windows = (
        quantized if channel in layout.quantized else None
        for channel in (Channel.DENSE, Channel.WINDOWS)
    )
    max_sim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    no_graph = models.HnswConfigDiff(m=0)
    client.create_collection(
        collection_id,
        vectors_config={
            Channel.DENSE.value: models.VectorParams(
                size=space.model.dim,
                distance=models.Distance.COSINE,
                quantization_config=dense,
                hnsw_config=no_graph if layout.is_bulk else None,
            ),
            Channel.WINDOWS.value: models.VectorParams(
                size=space.model.dim,
                distance=models.Distance.COSINE,
                multivector_config=max_sim,
                datatype=models.Datatype.FLOAT16,  # as in the cache, so nothing is lost
                quantization_config=windows,
                on_disk=True,  # ten times the size of the dense vectors, and few are read
                # Windows only score points that other channels found, so they need no graph.
                hnsw_config=no_graph,
            ),
        },
        sparse_vectors_config={
            Channel.BM25.value: models.SparseVectorParams(modifier=models.Modifier.IDF)
        },
        shard_number=layout.shard_number or None,
        replication_factor=layout.replication_factor or None,
        metadata={SPACE_KEY: json.loads(write_space(space))},
    )


def check_strict_mode(info: models.CollectionInfo, collection_id: str, place: str) -> None:
    """Check that the strict mode of a collection allows the requests that this package sends.

    Args:
        info: The server's description of the collection.
        collection_id: Name of the collection, for the message.
        place: Name and host of the server, for the message.

    Raises:
        ConfigurationError: A limit is too strict. The message names the server's setting.
    """
    strict = info.config.strict_mode_config
    if strict is None or not strict.enabled:
        return
    found = []
    if strict.search_allow_exact is False:
        found.append("search_allow_exact is false, but the number of chunks must be exact")
    limit = strict.max_query_limit
    if limit is not None and limit < _MIN_QUERY_LIMIT:
        found.append(f"max_query_limit is {limit}, but {_MIN_QUERY_LIMIT} is needed")
    if found:
        problem = f"in the strict mode of collection {collection_id} at {place}, {found[0]}"
        remedy = f"Change {found[0].split()[0]} in the collection's strict_mode_config"
        raise ConfigurationError("QDRANT_URL", problem, remedy)


_ABANDONED: Final = timedelta(days=7)  # longer than any rebuild on another machine takes


class QdrantCatalog(BuildCatalog):
    """A catalog of the builds (versions) of a collection on a Qdrant server.

    Args:
        connection: Connection to the server, which the opened stores share.
        collection: Name of the collection: the alias, and the prefix of each build's name.
        forget: Function that takes the id of a build and deletes the data kept for it outside the
            store. It is called just before a build is deleted.
        layout: How the server stores the builds that this catalog creates.
        lock: Function that returns the lock for methods that create, switch or delete builds.
    """

    is_exclusive = False

    def __init__(
        self,
        connection: QdrantConnection,
        collection: str,
        forget: Forget = lambda _: None,
        layout: Layout = Layout(),  # frozen
        lock: TakeLock = nullcontext,
    ) -> None:
        super().__init__(collection, connection.place, forget, lock)
        self._connection = connection
        self.timeout_s = connection.timeout_s
        self._previous = f"{collection}.previous"
        self._layout = layout

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build, or None if another program made the collection.

        Raises:
            ConfigurationError: The strict mode of the collection forbids necessary requests.
        """
        info = self._connection.call(
            lambda client: client.get_collection(collection_id), collection_id
        )
        check_strict_mode(info, collection_id, self._connection.place)
        stored = (info.config.metadata or {}).get(SPACE_KEY)
        return None if stored is None else read_space(json.dumps(stored))

    @alone
    def create(self, space: EmbeddingSpace) -> QdrantStore:
        """Create an empty build with its payload indexes, and open it.

        Only `switch_to` makes it the current build.

        Raises:
            ConfigurationError: Another program uses the name of the collection.
            StoreError: The server is too old to store metadata.
        """
        self._refuse_foreign_collection()
        collection_id = make_build_id(self._collection)
        self._connection.call(
            lambda client: create_collection(client, collection_id, space, self._layout)
        )
        if self.read_space(collection_id) != space:
            self.discard(collection_id)
            raise StoreError(
                f"{self._connection.place} does not store metadata. Update it to 1.16 or later"
            )
        store = QdrantStore(self._connection, space, collection_id)
        for field in INDEXED_FIELDS:
            store.create_index(field, is_boolean=False)
        return store

    @alone
    def sweep(self) -> None:
        """Delete each build that is over a week old, except the current and the previous build.

        Another machine may still be working on a younger build.
        """
        young = {name for name in self._list_builds() if not is_older_than(name, _ABANDONED)}
        self._delete_builds(young | {*self._read_in_use()})

    @alone
    def recover(self) -> None:
        """Set the alias of the collection again if it was deleted, with a warning.

        It then names the newest build, and the alias of the previous build names the one before it.
        """
        if self.current_id() is None:
            builds = sorted(self._list_builds(), key=read_stamp)
            self._use_newest(builds, f"the alias {self._collection} is missing. Collection")

    def find_cells(self) -> list[str]:
        """Return the names of collections that `rag-pipeline sweep` built and no longer uses.

        These are the collections of which all builds are over a week old. Another machine may still
        be working on a younger build.
        """
        found: dict[str, bool] = {}
        for name in self._read_collections():
            cell = find_cell(name, self._collection)
            if cell is not None and is_build_id(name, cell):
                found[cell] = found.get(cell, True) and is_older_than(name, _ABANDONED)
        return [cell for cell, abandoned in found.items() if abandoned]

    def is_wanted(self) -> bool:
        """Return False, because any number of processes can use a server at the same time."""
        return False

    def end_loading(self, collection_id: str, *, is_empty_left: bool = False) -> None:
        """Let the server build the graph of a build that was loaded without one.

        For a build that has its graph, nothing is changed. With `is_empty_left`, an empty build
        stays as it is, because it is loaded next.
        """
        info = self._connection.call(
            lambda client: client.get_collection(collection_id), collection_id
        )
        vectors = info.config.params.vectors
        dense = vectors.get(Channel.DENSE.value) if isinstance(vectors, dict) else None
        has_graph = dense is None or dense.hnsw_config is None or dense.hnsw_config.m != 0
        if has_graph or (is_empty_left and not info.points_count):
            return
        graph = models.VectorParamsDiff(hnsw_config=models.HnswConfigDiff(m=_EDGES))
        self._connection.call(
            lambda client: client.update_collection(
                collection_id, vectors_config={Channel.DENSE.value: graph}
            ),
            collection_id,
        )

    def _open(self, collection_id: str, space: EmbeddingSpace, wait_s: float | None) -> QdrantStore:
        del wait_s  # a server has no lock to wait for
        return QdrantStore(self._connection, space, collection_id)

    def _describe_missing(self, collection_id: str = "") -> RagPipelineError:
        if collection_id:
            return self._describe_foreign()
        self._refuse_foreign_collection()
        return CollectionMissingError(self._collection, self._place)

    def _read_in_use(self) -> tuple[str | None, str | None]:
        aliases = self._read_aliases()
        return aliases.get(self._collection), aliases.get(self._previous)

    def _read_aliases(self) -> dict[str, str]:
        answer = self._connection.call(lambda client: client.get_aliases())
        return {alias.alias_name: alias.collection_name for alias in answer.aliases}

    def _write_in_use(self, current: str, previous: str | None) -> None:
        """Set the aliases of the current and the previous build in one atomic request."""
        old = self._read_aliases()
        operations: list[models.AliasOperations] = []
        for name, target in ((self._collection, current), (self._previous, previous)):
            if name in old:
                deleted = models.DeleteAlias(alias_name=name)
                operations.append(models.DeleteAliasOperation(delete_alias=deleted))
            if target is not None:
                created = models.CreateAlias(collection_name=target, alias_name=name)
                operations.append(models.CreateAliasOperation(create_alias=created))
        self._connection.call(
            lambda client: client.update_collection_aliases(change_aliases_operations=operations),
            current,
        )

    def _list_builds(self) -> list[str]:
        return [name for name in self._read_collections() if self._owns(name)]

    def _read_collections(self) -> set[str]:
        answer = self._connection.call(lambda client: client.get_collections())
        return {collection.name for collection in answer.collections}

    def _is_built(self, collection_id: str) -> bool:
        return collection_id in self._read_collections()

    def _delete(self, collection_id: str) -> None:
        self._forget(collection_id)
        self._connection.call(lambda client: client.delete_collection(collection_id))

    def _refuse_foreign_collection(self) -> None:
        alias_target = self.current_id()
        is_ours = alias_target is None or self._owns(alias_target)
        if not is_ours or self._collection in self._read_collections():
            raise self._describe_foreign()

    def _describe_foreign(self) -> ConfigurationError:
        problem = (
            f"{self._place} has a collection {self._collection} that rag-pipeline did not create"
        )
        return ConfigurationError(
            "QDRANT_COLLECTION", problem, "Choose another name, or delete that collection or alias"
        )
