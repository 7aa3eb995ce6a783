"""A small book on disk and everything that ingests it, for tests of ingestion as a whole.

Belongs here: building the parts with real adapters, and reading back what the store holds. Does not
belong here: what a test expects.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from upath import UPath

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
from rag_pipeline.adapters.state.files import remove_partial_files, remove_tree
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_memory
from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.core.protocols.services import Services
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols.state import ArtifactStore, Ledger
    from rag_pipeline.core.protocols.stores import CollectionCatalog, StoredPoint
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.events import IngestionEvent

LIMITS: Final = ChunkLimits(min_tokens=30, target_tokens=45, max_tokens=80, overlap_tokens=10)
SITE: Final = SiteSettings("/book/", "docs", trailing_slash=False)

_SUBJECTS = ("joint", "sensor", "motor", "planner", "camera", "gripper", "battery", "leg", "map")


def make_paragraph(seed: int, sentences: int = 4) -> str:
    """Sentences of about ten tokens, different for every seed."""
    return " ".join(
        f"The {_SUBJECTS[(seed + number) % len(_SUBJECTS)]} of robot {seed * 10 + number} "
        f"moves by rule {seed * 7 + number}."
        for number in range(sentences)
    )


def make_page(title: str, *sections: tuple[str, str], extra: str = "") -> str:
    """A page with front matter and sections of level 2."""
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections)
    return f"---\ntitle: {title}\ndescription: About {title}.\n{extra}---\n\n{body}\n"


PAGES: Final = {
    "intro.md": make_page("Intro", ("Start", make_paragraph(1)), ("Why", make_paragraph(2))),
    "module-1/large.md": make_page(
        "Large",
        ("One", make_paragraph(3, 12)),
        ("Two", make_paragraph(4)),
        ("Three", make_paragraph(5)),
    ),
    "module-1/small page.md": make_page("Small", ("Alone", make_paragraph(6))),
}
"""The book that most tests begin with: a page of several chunks a section, and two small ones."""

StoredState = dict[int, tuple["Payload", "ChunkVectors | None"]]


@dataclass
class Book:
    """A docs folder, its state folder and its services.

    Attributes:
        embedder: Counts what it was asked for.
        catalog: The stores; by default embedded ones in the state folder.
    """

    root: Path
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    catalog: CollectionCatalog | None = None
    limits: ChunkLimits = LIMITS

    @property
    def docs(self) -> Path:
        """The docs folder."""
        return self.root / "docs"

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.root / "state"

    def open_artifacts(self, collection_id: str) -> ArtifactStore:
        """Stage outputs of a collection."""
        return UPathArtifactStore(UPath(self.state / "artifacts" / collection_id))

    def open_ledger(self, collection_id: str) -> Ledger:
        """The ledger of a collection."""
        return FileLedger(self.state / "ledger" / collection_id)

    @property
    def settings(self) -> Settings:
        """The settings of this book's ingestion; nothing is read from the environment."""
        return load_settings(
            _env_file="",
            docs_dir=self.docs,
            data_dir=self.root / "data",
            site_base_url=SITE.base_url,
            site_route_base_path=SITE.route_base_path,
            site_trailing_slash=SITE.trailing_slash,
            embedding_prices={self.embedder.model.model: 1.0},
            embedding_text=self.limits.embedding_text,
            chunk_min_tokens=self.limits.min_tokens,
            chunk_target_tokens=self.limits.target_tokens,
            chunk_max_tokens=self.limits.max_tokens,
            chunk_overlap_tokens=self.limits.overlap_tokens,
        )

    def build_context(self) -> IngestionContext:
        """Build the settings and services as a fresh process would have them."""
        if self.catalog is None:
            self.catalog = EdgeCatalog(self.state / "store", "book", 2.0, self.forget)
        services = Services(
            embedder=self.embedder,
            sparse=Bm25Encoder(),
            cache=SqliteEmbeddingCache(self.state / "cache.sqlite"),
            catalog=self.catalog,
            open_artifacts=self.open_artifacts,
            open_ledger=self.open_ledger,
            lock=lambda timeout_s=None: hold_lock(
                self.state / "ingest.lock", 2.0 if timeout_s is None else timeout_s
            ),
            sweep=self.sweep,
        )
        return IngestionContext(self.settings, services)

    def forget(self, collection_id: str) -> None:
        """Delete what is kept of a build beside its points."""
        for kind in ("artifacts", "ledger"):
            remove_tree(self.state / kind / collection_id)

    def sweep(self) -> None:
        """Delete what killed ingestions left behind."""
        if self.catalog is not None:
            self.catalog.sweep()
        remove_partial_files(self.state)

    def find_leftovers(self) -> list[str]:
        """Everything in the state folder that belongs to no build in use or before it."""
        store = self.state / "store"
        in_use = json.loads((store / "in-use.json").read_text("utf-8"))
        kept = {*in_use.values(), "in-use.json"}
        folders = [store, *(self.state / kind for kind in ("artifacts", "ledger"))]
        found = [path for folder in folders for path in folder.glob("*") if path.name not in kept]
        found += [path for folder in folders[1:] for path in folder.rglob(".*")]
        return sorted(str(path.relative_to(self.state)) for path in found)

    def write(self, doc_id: str, text: str) -> Path:
        """Write a page, whatever is there."""
        path = self.docs / doc_id
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def edit(self, doc_id: str, old: str, new: str) -> None:
        """Replace a text that stands in a page once."""
        text = (self.docs / doc_id).read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {doc_id}"
        self.write(doc_id, text.replace(old, new))

    def move(self, old: str, new: str) -> None:
        """Move a page, its time of change kept."""
        target = self.docs / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.docs / old).rename(target)

    def ingest(
        self,
        request: IngestionRequest | None = None,
        context: IngestionContext | None = None,
        run_id: str = "run",
    ) -> IngestionReport:
        """Ingest, and return the report."""
        report, _ = self.ingest_with_events(request, context, run_id)
        return report

    def ingest_with_events(
        self,
        request: IngestionRequest | None = None,
        context: IngestionContext | None = None,
        run_id: str = "run",
    ) -> tuple[IngestionReport, list[IngestionEvent]]:
        """Ingest, and return the report with the events in order."""
        report, events = IngestionReport(), []
        used = context or self.build_context()
        try:
            for event in run_ingestion(used, request or IngestionRequest(), run_id):
                report.add(event)
                events.append(event)
        finally:
            if isinstance(used.services.cache, SqliteEmbeddingCache):
                used.services.cache.close()
        return report, events

    def read_points(self) -> list[StoredPoint]:
        """All points of the collection in use, with vectors."""
        store = self.build_context().services.catalog.open_current()
        try:
            return store.scroll(with_vectors=True)
        finally:
            store.close()

    def read_payloads(self) -> dict[str, Payload]:
        """Payloads of the collection in use by chunk id."""
        return {str(point.payload["chunk_id"]): point.payload for point in self.read_points()}

    def read_state(self) -> StoredState:
        """What must be equal to a clean build: points without their times of ingestion."""
        return {
            point.point_id: (
                {name: value for name, value in point.payload.items() if name != "ingested_at"},
                point.vectors,
            )
            for point in self.read_points()
        }

    def build_clean(self, root: Path) -> Book:
        """The same pages ingested into nothing, with the same kind of store."""
        catalog = QdrantCatalog(connect_memory(), "book") if self.on_memory else None
        clean = replace(self, root=root, catalog=catalog, embedder=HashingEmbedder())
        for path in sorted(self.docs.rglob("*")):
            if path.is_file():
                target = clean.docs / path.relative_to(self.docs)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        clean.ingest()
        return clean

    @property
    def on_memory(self) -> bool:
        """Whether the store is the vendor's client in memory."""
        return isinstance(self.catalog, QdrantCatalog)


def replace_services(context: IngestionContext, **services: object) -> IngestionContext:
    """Return a context with some of its services replaced."""
    return replace(context, services=replace(context.services, **services))


def make_book(root: Path, pages: dict[str, str] | None = None, *, memory: bool = False) -> Book:
    """A book of some pages, not ingested yet."""
    book = Book(root)
    if memory:
        book.catalog = QdrantCatalog(connect_memory(), "book", book.forget)
    for doc_id, text in (PAGES if pages is None else pages).items():
        book.write(doc_id, text)
    return book


def assert_same_state(found: StoredState, expected: StoredState) -> None:
    """Compare ids, payloads and vectors; vectors as the engines keep them, to 1e-5."""
    assert sorted(found) == sorted(expected)
    for point_id, (payload, vectors) in expected.items():
        found_payload, found_vectors = found[point_id]
        assert found_payload == payload
        assert vectors is not None
        assert found_vectors is not None
        assert found_vectors.dense.tolist() == _nearly(vectors.dense.tolist())
        assert found_vectors.windows.shape == vectors.windows.shape
        assert found_vectors.windows.ravel().tolist() == _nearly(vectors.windows.ravel().tolist())


def _nearly(values: list[float]) -> object:
    import pytest  # noqa: PLC0415  # scripts build books too

    return pytest.approx(values, abs=1e-5)
