"""A small book on disk, with real adapters to ingest it and functions to read the store back.

Tests of ingestion as a whole use it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.sqlite import FileLocks, SqliteDatabase
from rag_pipeline.adapters.database.vectors import SqlEmbeddingCache
from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.local_files import remove_partial_files
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.core.protocols import Services
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.state_dirs import DATABASE_NAME
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols import CollectionCatalog, Ledger, StoredPoint
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.sources import Source
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.events import IngestionEvent

LIMITS: Final = ChunkLimits(min_tokens=30, target_tokens=45, max_tokens=80, overlap_tokens=10)
SITE: Final = SiteSettings("/book/", "docs", trailing_slash=False)

_SUBJECTS = ("joint", "sensor", "motor", "planner", "camera", "gripper", "battery", "leg", "map")


def make_paragraph(seed: int, sentences: int = 4) -> str:
    """Build a paragraph of sentences with about ten tokens each, different for every seed."""
    return " ".join(
        f"The {_SUBJECTS[(seed + number) % len(_SUBJECTS)]} of robot {seed * 10 + number} "
        f"moves by rule {seed * 7 + number}."
        for number in range(sentences)
    )


def write_numbered_pages(book: Book, count: int, parts: int, verb: str) -> None:
    """Write pages of some sections in several folders; each sentence contains the verb."""
    for number in range(count):
        sections = [(f"Part {part}", make_paragraph(number * 9 + part, 5)) for part in range(parts)]
        text = make_page(f"Page {number}", *sections).replace("moves", verb)
        book.write(f"module-{number % 3}/page-{number}.md", text)


def make_page(title: str, *sections: tuple[str, str], extra: str = "") -> str:
    """Build a page with front matter and the given sections (heading, text) of level 2.

    `extra` contains more lines of front matter, each with a line end.
    """
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
"""The pages that most tests start with: one page of several chunks, and two small pages."""

StoredState = dict[int, tuple["Payload", "ChunkVectors | None"]]


@dataclass
class Book:
    """A docs folder with a state folder and the services to ingest it.

    Attributes:
        root: Folder that contains the docs folder and the state folder.
        embedder: Embedder that records the texts that it was asked to embed.
        catalog: Catalog of the book's collection; None for an embedded store in the state folder.
        limits: Chunk sizes, small enough for several chunks per page.
        manifest: The manifest of the built site; None if there is none.
        sources: The sources of the site; empty if it has only the docs folder.
    """

    root: Path
    embedder: HashingEmbedder = field(default_factory=HashingEmbedder)
    catalog: CollectionCatalog | None = None
    limits: ChunkLimits = LIMITS
    manifest: Path | None = None
    sources: tuple[Source, ...] = ()

    @property
    def docs(self) -> Path:
        """Path of the docs folder."""
        return self.root / "docs"

    @property
    def state(self) -> Path:
        """Path of the state folder, with store, database and locks."""
        return self.root / "state"

    def open_ledger(self, collection_id: str) -> Ledger:
        """Open the ledger of the build with the given id."""
        return self.open_state().open_ledger(collection_id)

    def open_state(self) -> BookState:
        """Open the database and the locks of the book."""
        locks = FileLocks(self.state / "locks")
        return BookState(SqliteDatabase(self.state / DATABASE_NAME), "", locks, locks)

    @property
    def settings(self) -> Settings:
        """Settings to ingest this book, without the values of any `.env` file."""
        return load_settings(
            _env_file="",
            docs_dir=self.docs,
            data_dir=self.root / "data",
            site_base_url=SITE.base_url,
            site_route_base_path=SITE.route_base_path,
            site_trailing_slash=SITE.trailing_slash,
            site_manifest=self.manifest,
            sources=self.sources,
            embedding_prices={self.embedder.model.model: 1.0},
            embedding_text=self.limits.embedding_text,
            chunk_min_tokens=self.limits.min_tokens,
            chunk_target_tokens=self.limits.target_tokens,
            chunk_max_tokens=self.limits.max_tokens,
            chunk_overlap_tokens=self.limits.overlap_tokens,
        )

    def build_context(self) -> IngestionContext:
        """Build a context with new services, like a new process would."""
        if self.catalog is None:
            self.catalog = EdgeCatalog(self.state / "store", "book", 2.0, self.forget)
        state = self.open_state()
        services = Services(
            embedder=self.embedder,
            sparse=Bm25Encoder(),
            cache=SqlEmbeddingCache(state.database, ""),
            catalog=self.catalog,
            open_ledger=state.open_ledger,
            lock=lambda timeout_s=None: state.locks.hold(
                "book", 2.0 if timeout_s is None else timeout_s
            ),
            announce=state.announce,
            sweep=self.sweep,
        )
        return IngestionContext(self.settings, services)

    def forget(self, collection_id: str) -> None:
        """Delete the ledger of a build."""
        self.open_state().drop_ledger(collection_id)

    def sweep(self) -> None:
        """Delete the builds and partial files that killed ingestions left behind."""
        if self.catalog is not None:
            self.catalog.sweep()
        remove_partial_files(self.state)

    def find_leftovers(self) -> list[str]:
        """Return the paths in the state folder that belong to no kept build of the collection."""
        store = self.state / "store"
        in_use = json.loads((store / "in-use.json").read_text("utf-8"))
        kept = {*in_use.values(), "in-use.json"}
        found = {path.name for path in store.glob("*")}
        rows = self.open_state().database.read(
            lambda used: list(used.rows("select distinct collection_id from documents"))
        )
        found |= {row[0] for row in rows}
        return sorted(found - kept)

    def write(self, doc_id: str, text: str) -> Path:
        """Write a page, replacing an existing one, and return its path."""
        path = self.docs / doc_id
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def edit(self, doc_id: str, old: str, new: str) -> None:
        """Replace a text that occurs exactly once in a page."""
        text = (self.docs / doc_id).read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {doc_id}"
        self.write(doc_id, text.replace(old, new))

    def move(self, old: str, new: str) -> None:
        """Move a page to another path and keep its modification time."""
        target = self.docs / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.docs / old).rename(target)

    def ingest(
        self,
        request: IngestionRequest | None = None,
        context: IngestionContext | None = None,
        run_id: str = "run",
    ) -> IngestionReport:
        """Ingest the book, by default all changes with a new context, and return the report."""
        report, _ = self.ingest_with_events(request, context, run_id)
        return report

    def ingest_with_events(
        self,
        request: IngestionRequest | None = None,
        context: IngestionContext | None = None,
        run_id: str = "run",
    ) -> tuple[IngestionReport, list[IngestionEvent]]:
        """Ingest the book like `ingest`, and return the report and all events in order."""
        report, events = IngestionReport(), []
        used = context or self.build_context()
        try:
            for event in run_ingestion(used, request or IngestionRequest(), run_id):
                report.add(event)
                events.append(event)
        finally:
            if isinstance(used.services.cache, SqlEmbeddingCache):
                used.services.cache.close()
        return report, events

    def read_points(self) -> list[StoredPoint]:
        """Return all points of the current build, with vectors."""
        store = self.build_context().services.catalog.open_current()
        try:
            return store.scroll(with_vectors=True)
        finally:
            store.close()

    def read_payloads(self) -> dict[str, Payload]:
        """Return the payloads of the current build, by chunk id."""
        return {str(point.payload["chunk_id"]): point.payload for point in self.read_points()}

    def read_state(self) -> StoredState:
        """Return payload and vectors of each point by id, without the times of ingestion.

        Two books with the same pages must have the same state.
        """
        return {
            point.point_id: (
                {name: value for name, value in point.payload.items() if name != "ingested_at"},
                point.vectors,
            )
            for point in self.read_points()
        }

    def build_clean(self, root: Path) -> Book:
        """Copy the pages to another folder, ingest them into an empty store, and return that book.

        The store is of the same kind.
        """
        catalog = connect_memory_catalog() if self.on_memory else None
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
        """True if the store is Qdrant's client in memory, False if it is the embedded store."""
        return self.catalog is not None and not isinstance(self.catalog, EdgeCatalog)


def connect_memory_catalog(forget: Callable[[str], None] | None = None) -> CollectionCatalog:
    """Return the catalog of a new collection in the memory of Qdrant's client.

    The client takes two seconds to import, which processes with an embedded store save.
    """
    from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog  # noqa: PLC0415
    from rag_pipeline_tests.memory_client import connect_memory  # noqa: PLC0415

    return QdrantCatalog(connect_memory(), "book", forget)


def replace_services(context: IngestionContext, **services: object) -> IngestionContext:
    """Return a context with some of its services replaced."""
    return replace(context, services=replace(context.services, **services))


def make_book(root: Path, pages: dict[str, str] | None = None, *, memory: bool = False) -> Book:
    """Build a book with the given pages (by document id) in a folder, without ingesting it.

    With `memory`, the store is Qdrant's client in memory instead of an embedded store.
    """
    book = Book(root)
    if memory:
        book.catalog = connect_memory_catalog(book.forget)
    for doc_id, text in (PAGES if pages is None else pages).items():
        book.write(doc_id, text)
    return book


def assert_same_state(found: StoredState, expected: StoredState) -> None:
    """Assert that ids and payloads are equal, and vectors equal to within 1e-5."""
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
    import pytest  # noqa: PLC0415  # scripts without pytest build books too

    return pytest.approx(values, abs=1e-5)
