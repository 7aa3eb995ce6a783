"""Tests of the number of requests that the state of a book sends to an object store."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]
from upath import UPath
from upath.implementations.memory import MemoryPath
from upath.registry import register_implementation

from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.object_cache import ObjectEmbeddingCache
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.protocols.state import LedgerEntry
from rag_pipeline.ingestion.context import IngestionContext
from rag_pipeline_tests.book import PAGES, make_book

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline_tests.book import Book

ENTRY = LedgerEntry(DocId("a.md"), "s", 1, 2, "p", "c", "d", 3, "r", "2026-01-01T00:00:00+00:00")


class CountedFileSystem(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Objects in memory, with versions as S3 has them. The calls that send requests are counted."""

    protocol = "counted"
    calls: ClassVar[Counter[str]] = Counter()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("counted://", "memory://")))

    def cat_file(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        self.calls["GET"] += 1
        data: bytes = super().cat_file(path, start, end)
        return data

    def pipe_file(self, path: str, value: bytes) -> None:
        self.calls["PUT"] += 1
        super().pipe_file(path, value)

    def rm_file(self, path: str) -> None:
        self.calls["DELETE"] += 1
        super().rm_file(path)

    def exists(self, path: str) -> bool:
        self.calls["HEAD"] += 1
        return bool(super().exists(path))

    def ls(self, path: str, *, detail: bool = True) -> list[Any]:
        self.calls["LIST"] += 1
        found = super().ls(path, detail=True)
        for info in found:
            if info["type"] == "file":
                content = self.store[info["name"]].getvalue()
                info["ETag"] = f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
        return found if detail else [info["name"] for info in found]


@pytest.fixture
def root() -> UPath:
    """Return a new folder of the object store, with all counts at zero."""
    fsspec.register_implementation("counted", CountedFileSystem, clobber=True)
    register_implementation("counted", MemoryPath, clobber=True)
    CountedFileSystem.calls.clear()
    return UPath(f"counted://{uuid4().hex}")


def test_a_ledger_reads_only_entries_that_another_process_wrote_again(root: UPath) -> None:
    ledger, other = FileLedger(root), FileLedger(root)
    for name in "abc":
        ledger.record(replace(ENTRY, doc_id=DocId(f"{name}.md")))
    CountedFileSystem.calls.clear()
    assert len(ledger.entries()) == 3
    assert CountedFileSystem.calls == {"LIST": 1}
    assert other.entries() == ledger.entries()
    changed = other.record(replace(ENTRY, sha256="new", version=1))
    other.forget(DocId("b.md"), 1)
    CountedFileSystem.calls.clear()
    assert ledger.entries() == {
        "a.md": changed,
        "c.md": replace(ENTRY, doc_id=DocId("c.md"), version=1),
    }
    assert CountedFileSystem.calls == {"LIST": 1, "GET": 1}


def test_an_ingestion_sends_at_most_ten_requests_per_document_and_few_without_a_change(
    root: UPath, tmp_path: Path
) -> None:
    book = make_book(tmp_path, memory=True)

    def build() -> IngestionContext:
        context, ledgers = book.build_context(), dict[str, FileLedger]()
        services = replace(
            context.services,
            cache=ObjectEmbeddingCache(root / "cache"),
            open_artifacts=lambda name: UPathArtifactStore(root / "artifacts" / name),
            open_ledger=lambda name: ledgers.setdefault(name, FileLedger(root / "ledger" / name)),
        )
        return IngestionContext(context.settings, services)

    first = _count(book, build)
    # One less on S3, which compares the versions of the ledger itself.
    assert 0 < sum(first.values()) - first["LIST"] <= 8 * len(PAGES)
    assert first["HEAD"] == 0
    assert first["LIST"] <= 12
    again = _count(book, build)
    assert again == {"GET": len(PAGES) + 1, "LIST": again["LIST"]}
    assert len(book.read_points()) == 9


def _count(book: Book, build: Callable[[], IngestionContext]) -> Counter[str]:
    CountedFileSystem.calls.clear()
    assert not book.ingest(context=build()).failures
    return Counter(CountedFileSystem.calls)
