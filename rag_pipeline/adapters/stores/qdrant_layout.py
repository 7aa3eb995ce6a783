"""How a Qdrant server stores a build: shards, replicas, quantization, and the graph of its vectors.

A graph (HNSW) is faster to build once than to extend with each batch. While a build is loaded, it
can therefore have none. Searches then compare all vectors, so their results are the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qdrant_client import models

from rag_pipeline.adapters.stores.builds import write_space
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.payload import INDEXED_FIELDS
from rag_pipeline.core.protocols import Channel

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import EmbeddingSpace

SPACE_KEY: Final = "rag_pipeline_space"
"""Key of the embedding space in the metadata of a collection."""

_EDGES: Final = 16  # the server's default for `m`, the edges of a node in the graph
_QUANTILE: Final = 0.99  # of the components, so that single large ones do not widen the range

_MIN_QUERY_LIMIT: Final = 1_000
"""Most points that this package reads in one request."""

SEARCH_PARAMS: Final = {
    # The quantized vectors choose the candidates, and the vectors themselves give the scores.
    Channel.DENSE: {"quantization": {"rescore": True}},
    # All candidates are known, and reading their windows from the disk is what takes long.
    Channel.WINDOWS: {"quantization": {"rescore": False}},
}
"""How searches use quantized vectors. A collection without them ignores it."""


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


def create_indexes(client: QdrantClient, collection_id: str) -> None:
    """Create the keyword indexes of a build that every book needs."""
    for field in INDEXED_FIELDS:
        client.create_payload_index(
            collection_id, field, models.PayloadSchemaType.KEYWORD, wait=True
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


def end_loading(client: QdrantClient, collection_id: str, *, is_empty_left: bool) -> None:
    """Let the server build the graph of a build that was created without one.

    Args:
        client: The client.
        collection_id: Id of the build. For a build that has its graph, nothing is changed.
        is_empty_left: Leave an empty build as it is, because it is loaded next.
    """
    info = client.get_collection(collection_id)
    vectors = info.config.params.vectors
    dense = vectors.get(Channel.DENSE.value) if isinstance(vectors, dict) else None
    if dense is None or dense.hnsw_config is None or dense.hnsw_config.m != 0:
        return
    if is_empty_left and not info.points_count:
        return
    graph = models.HnswConfigDiff(m=_EDGES)
    client.update_collection(
        collection_id,
        vectors_config={Channel.DENSE.value: models.VectorParamsDiff(hnsw_config=graph)},
    )
