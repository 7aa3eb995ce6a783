"""A tiny book, and functions that index it in a real embedded store with the real local model."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.ids import DocId, hash_text, make_chunk_id, to_point_id
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.core.sources import DEFAULT_EDITION
from rag_pipeline.core.vectors import FORMAT_VERSION, ChunkVectors, EmbeddingSpace, Point
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.run import build_payloads
from rag_pipeline.ingestion.stages import embed_chunks
from rag_pipeline.retrieval import open_retriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols import EmbeddingCache
    from rag_pipeline.core.sources import Edition
    from rag_pipeline.retrieval import Retriever

LIMITS = ChunkLimits(min_tokens=30, target_tokens=60, max_tokens=90, overlap_tokens=15)

_LIDAR = " ".join(
    f"Beam {number} of the scanner returns a range of {number} meters, measured by time of flight."
    for number in range(1, 15)
)

PAGES = {
    "module-1/1.1-foundations/embodiment.md": """---
title: Embodiment
tags: [body, theory]
---

# Embodiment

The body of a robot takes part in thinking.

## Soft grippers

A gripper with soft fingers closes around an egg with one command. The compliance of the rubber
does the force regulation that a rigid gripper needs a sensor for.

## Passive walking

A walker without motors strolls down a slope. Gravity puts in the energy that each step loses.
""",
    "module-1/1.2-ros2/topics.md": """---
title: Topics and Services
tags: [ros2]
---

# Topics and Services

## Publishers

A node publishes messages on a topic. Subscribers receive them without knowing the publisher.

```python
self.pub = self.create_publisher(JointState, "joint_states", 10)
```

## Services

A service answers one request with one response. The caller waits until the answer arrives.

## Simulated time

Set `use_sim_time` to true so that nodes read the clock of the simulator.
""",
    "module-2/2.1-sensors/lidar.md": f"""---
title: Laser Scanners
tags: [sensing, lidar]
---

# Laser Scanners

## Time of flight

{_LIDAR}

## Rain and glass

Water drops scatter the light, and glass lets it pass: both give ranges that are wrong.
""",
    "module-2/2.1-sensors/lab-exercises.md": """---
title: "Lab: measuring a wall"
tags: [sensing, practice]
---

# Lab: measuring a wall

## Exercise 1: noise at one meter

Place the scanner one meter from a wall and record a hundred ranges. Compute their deviation.
""",
    "module-2/2.2-copies/copy-one.md": """---
title: Battery care
---

# Battery care

## Storage

Store a lithium battery half charged in a cool, dry place, away from anything that burns.
""",
    "module-2/2.2-copies/copy-two.md": """---
title: Battery care
---

# Battery care

## Storage

Store a lithium battery half charged in a cool, dry place, away from anything that burns.
""",
}


class MemoryCache:
    """An `EmbeddingCache` in memory, for the vectors of one model."""

    def __init__(self) -> None:
        self._vectors: dict[str, ChunkVectors] = {}

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the known vectors."""
        del fingerprint
        return {key: self._vectors[key] for key in text_hashes if key in self._vectors}

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors."""
        del fingerprint
        self._vectors.update(vectors)

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete nothing and return 0."""
        del keep
        return 0

    def close(self) -> None:
        """Do nothing."""


_EMBEDDED = MemoryCache()
"""The vectors of the texts that this process has embedded."""


def make_points(pages: Mapping[str, str], known: EmbeddingCache = _EMBEDDED) -> list[Point]:
    """Return the points that an ingestion would write for the pages, which map paths to sources.

    Args:
        pages: The pages.
        known: The vectors of texts that need not be embedded.
    """
    points = []
    embedder, encoder = LocalEmbedder(), Bm25Encoder()
    for doc_path, source in pages.items():
        data = source.encode()
        doc = DiscoveredDoc(DocId(doc_path), Path(doc_path), hash_text(source), len(data), 0)
        parsed = parse_doc(doc, SiteSettings("/book/"), data)
        chunks = chunk_doc(parsed, LIMITS)
        vectors = embed_chunks(chunks, embedder, known).vectors
        sparse = encoder.encode_passages([chunk.embedding_text for chunk in chunks])
        payloads = build_payloads(parsed.document, chunks, {}, "2026-01-01T00:00:00Z")
        points += [
            Point(point_id, vector, terms, payload)
            for (point_id, payload), vector, terms in zip(
                payloads.items(), vectors, sparse, strict=True
            )
        ]
    return points


def make_settings(folder: Path, **overrides: object) -> Settings:
    """Return settings of a book in the folder, with the local model and the embedded store."""
    return load_settings(
        docs_dir=folder / "docs",
        data_dir=folder / "data",
        embedding_provider="local",
        qdrant_url="",
        site_base_url="/book/",
        **overrides,
    )


def make_catalog(settings: Settings) -> EdgeCatalog:
    """Return the catalog of the embedded store that the settings name."""
    root = settings.state_dir / "store" / settings.qdrant_collection
    return EdgeCatalog(root, settings.qdrant_collection, settings.store_lock_timeout_s)


def build_collection(settings: Settings, points: Sequence[Point]) -> str:
    """Write the points into a new collection, make it the current one and return its id."""
    catalog = make_catalog(settings)
    store = catalog.create(EmbeddingSpace(LocalEmbedder().model, FORMAT_VERSION))
    store.upsert(points)
    store.close()
    catalog.switch_to(store.collection_id)
    return store.collection_id


@contextmanager
def open_book(folder: Path, pages: Mapping[str, str]) -> Iterator[Retriever]:
    """Index pages in a folder, and yield a retriever over them."""
    settings = make_settings(folder)
    build_collection(settings, make_points(pages))
    with open_retriever(settings) as opened:
        yield opened


def move_points(points: Sequence[Point], edition: Edition, folder: str) -> list[Point]:
    """Return the points of the same pages in another version or language of the site.

    Args:
        points: The points of the pages in the default edition.
        edition: The other edition, without the common path.
        folder: Folder of its pages, which is also part of their addresses.
    """
    moved = []
    for point in points:
        old = point.payload
        doc_path = DocId(f"{folder}/{old['doc_path']}")
        chunk_id = make_chunk_id(doc_path, int(str(old["chunk_index"])))
        own = {**asdict(edition), "common_path": str(old["doc_path"])}
        known = asdict(DEFAULT_EDITION)
        payload: Payload = {
            **old,
            "doc_path": doc_path,
            "chunk_id": chunk_id,
            "url": str(old["url"]).replace("/docs/", f"/docs/{folder}/"),
            **{name: value for name, value in own.items() if value != known[name]},
        }
        moved.append(replace(point, point_id=to_point_id(chunk_id), payload=payload))
    return moved
