"""The builds of a collection on a Qdrant server, and which one is in use.

The collection's name is an alias of the build in use and `<name>.previous` of the one before (a
name in settings has no dot). The space is written into each build's own metadata, which no search
can return.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from qdrant_client import models

from rag_pipeline.adapters.stores.builds import (
    find_cell,
    forget_nothing,
    is_build_id,
    is_older_than,
    make_build_id,
    read_space,
    write_space,
)
from rag_pipeline.adapters.stores.qdrant_store import QdrantStore
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    EarlierCollectionMissingError,
    SpaceMismatchError,
    StoreError,
)
from rag_pipeline.core.payload import INDEXED_FIELDS
from rag_pipeline.core.protocols.stores import Channel

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from rag_pipeline.adapters.stores.builds import Forget
    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.vectors import EmbeddingSpace

_SPACE_KEY: Final = "rag_pipeline_space"
_ABANDONED: Final = timedelta(days=7)  # longer than any rebuild from another machine takes


class QdrantCatalog:
    """A `CollectionCatalog` of collections with generated names and two aliases.

    Args:
        connection: To the server; closed when the catalog is garbage.
        collection: The alias, and the beginning of each build's name.
        forget: Called with the id of a build before it is deleted.
    """

    is_exclusive = False

    def __init__(
        self, connection: QdrantConnection, collection: str, forget: Forget = forget_nothing
    ) -> None:
        self._connection = connection
        self.timeout_s = connection.timeout_s
        self._collection = collection
        self._previous = f"{collection}.previous"
        self._forget = forget

    def current_id(self) -> str | None:
        """Id of the collection in use, by one request."""
        return self._read_aliases().get(self._collection)

    def open_current(self, space: EmbeddingSpace | None = None) -> QdrantStore:
        """Open the collection in use; see `CollectionCatalog.open_current`."""
        collection_id = self.current_id()
        if collection_id is None:
            self._refuse_foreign_collection()
            raise CollectionMissingError(self._collection, self._connection.place)
        return self.open(collection_id, space)

    def open(self, collection_id: str, space: EmbeddingSpace | None = None) -> QdrantStore:
        """Open a collection by id; see `CollectionCatalog.open`."""
        stored = self._read_space(collection_id)
        if stored is None:
            raise self._describe_foreign()
        if space is not None and stored != space:
            raise SpaceMismatchError(self._collection, str(stored), str(space))
        return QdrantStore(self._connection, stored, collection_id)

    def create(self, space: EmbeddingSpace) -> QdrantStore:
        """Make an empty collection with the payload indexes of FR-016 beside the one in use."""
        self._refuse_foreign_collection()
        collection_id = make_build_id(self._collection)
        self._connection.call(lambda client: _create_collection(client, collection_id, space))
        if self._read_space(collection_id) != space:
            self.discard(collection_id)
            raise StoreError(
                f"{self._connection.place} keeps no collection metadata. Update it to 1.16 or later"
            )
        if self._connection.is_server:
            self._connection.call(lambda client: _create_indexes(client, collection_id))
        return QdrantStore(self._connection, space, collection_id)

    def switch_to(self, collection_id: str) -> None:
        """Put a collection in use and delete all but it and the one before."""
        existing = self._read_collections()
        if collection_id not in existing:
            raise CollectionMissingError(collection_id, self._connection.place)
        before = self.current_id()
        if before == collection_id:
            return
        self._write_aliases(collection_id, before)
        for name in existing - {collection_id, before}:
            if is_build_id(name, self._collection):
                self._delete(name)

    def sweep(self) -> None:
        """Delete builds that nobody put in use for a week; younger ones may be another machine's
        and go with the next switch.
        """
        in_use = set(self._read_aliases().values())
        for name in self._read_collections() - in_use:
            if is_build_id(name, self._collection) and is_older_than(name, _ABANDONED):
                self._delete(name)

    def find_cells(self) -> list[str]:
        """Names of the collections of designs whose builds are all a week old; younger ones may be
        another machine's.
        """
        found: dict[str, bool] = {}
        for name in self._read_collections():
            cell = find_cell(name, self._collection)
            if cell is not None and is_build_id(name, cell):
                found[cell] = found.get(cell, True) and is_older_than(name, _ABANDONED)
        return [cell for cell, abandoned in found.items() if abandoned]

    def drop(self) -> None:
        """Delete all builds; their aliases go with them."""
        for name in self._read_collections():
            if is_build_id(name, self._collection):
                self._delete(name)

    def roll_back(self) -> str:
        """Swap the collection in use with the one before."""
        aliases = self._read_aliases()
        previous = aliases.get(self._previous)
        if previous is None:
            place = self._connection.place
            raise EarlierCollectionMissingError(self._collection, place)
        self._write_aliases(previous, aliases.get(self._collection))
        return previous

    def is_wanted(self) -> bool:
        """Never: a server takes any number of processes."""
        return False

    def discard(self, collection_id: str) -> None:
        """Delete a collection of ours that is not in use."""
        if is_build_id(collection_id, self._collection) and collection_id != self.current_id():
            self._delete(collection_id)

    def _read_aliases(self) -> dict[str, str]:
        answer = self._connection.call(lambda client: client.get_aliases())
        return {alias.alias_name: alias.collection_name for alias in answer.aliases}

    def _write_aliases(self, current: str, previous: str | None) -> None:
        """Point both aliases in one request, which the server applies as one."""
        targets = {self._collection: current}
        if previous is not None:
            targets[self._previous] = previous
        old = self._read_aliases()
        operations: list[models.AliasOperations] = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
            for name in (self._collection, self._previous)
            if name in old
        ]
        operations += [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=target, alias_name=name)
            )
            for name, target in targets.items()
        ]
        self._connection.call(
            lambda client: client.update_collection_aliases(change_aliases_operations=operations),
            current,
        )

    def _read_collections(self) -> set[str]:
        answer = self._connection.call(lambda client: client.get_collections())
        return {collection.name for collection in answer.collections}

    def _read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """The space of a build; None for a collection that is not ours."""
        info = self._connection.call(
            lambda client: client.get_collection(collection_id), collection_id
        )
        stored = (info.config.metadata or {}).get(_SPACE_KEY)
        return None if stored is None else read_space(json.dumps(stored))

    def _delete(self, collection_id: str) -> None:
        self._forget(collection_id)
        self._connection.call(lambda client: client.delete_collection(collection_id))

    def _refuse_foreign_collection(self) -> None:
        alias_target = self.current_id()
        is_ours = alias_target is None or is_build_id(alias_target, self._collection)
        if not is_ours or self._collection in self._read_collections():
            raise self._describe_foreign()

    def _describe_foreign(self) -> ConfigurationError:
        place = self._connection.place
        problem = f"{place} has a {self._collection} that rag-pipeline did not make"
        return ConfigurationError(
            "QDRANT_COLLECTION", problem, "Choose another name, or delete or rename that one"
        )


def _create_collection(client: QdrantClient, collection_id: str, space: EmbeddingSpace) -> None:
    if client.collection_exists(collection_id):
        return  # an earlier try got through and its answer was lost
    dense = models.VectorParams(size=space.model.dim, distance=models.Distance.COSINE)
    max_sim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    client.create_collection(
        collection_id,
        vectors_config={
            Channel.DENSE.value: dense,
            Channel.WINDOWS.value: models.VectorParams(
                size=space.model.dim,
                distance=models.Distance.COSINE,
                multivector_config=max_sim,
                on_disk=True,  # ten times the size of the dense vectors, of which few are read
                # Only points found by the other channels are scored by it: no graph is walked.
                hnsw_config=models.HnswConfigDiff(m=0),
            ),
        },
        sparse_vectors_config={
            Channel.BM25.value: models.SparseVectorParams(modifier=models.Modifier.IDF)
        },
        metadata={_SPACE_KEY: json.loads(write_space(space))},
    )


def _create_indexes(client: QdrantClient, collection_id: str) -> None:
    for field in INDEXED_FIELDS:
        client.create_payload_index(
            collection_id, field, models.PayloadSchemaType.KEYWORD, wait=True
        )
