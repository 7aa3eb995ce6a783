"""Test of queries in one process while another process ingests edits or rebuilds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.retrieval import Query
from rag_pipeline.retrieval.retriever import Retriever, RetrieverOptions
from rag_pipeline.retrieval.store_session import StoreSession
from rag_pipeline_tests.book import Book, make_book, write_numbered_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.retrieval import RetrievalResult

PAGES = 30
WAIT_S = 30.0
WRITER = """
import sys, pathlib
from rag_pipeline.ingestion import run
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import Book
run._GROUP_CHUNKS = 20  # small groups, because the store is locked while a group is written
report = Book(pathlib.Path(sys.argv[1])).ingest(IngestionRequest(rebuild="rebuild" in sys.argv))
print(report.docs_processed, report.failures)
"""

Texts = dict[str, dict[str, str]]
"""The text of each chunk: document path -> chunk id -> text."""


def read_texts(book: Book) -> Texts:
    """Return the texts that are in the store."""
    texts: Texts = defaultdict(dict)
    for chunk_id, payload in book.read_payloads().items():
        texts[str(payload["doc_path"])][chunk_id] = str(payload["text"])
    return dict(texts)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book of 30 pages, indexed into an embedded store."""
    book = make_book(tmp_path, {})
    write_numbered_pages(book, PAGES, 4, "moves")
    book.ingest()
    return book


@pytest.fixture
def retriever(book: Book) -> Iterator[Retriever]:
    """A retriever as `open_retriever` builds it, but with the embedder of the tests."""
    catalog = EdgeCatalog(book.state / "store", "book", WAIT_S)
    space = book.build_context().space
    session = StoreSession(catalog, space, idle_s=2.0, is_exclusive=True)
    options = RetrieverOptions(dedup_threshold=1.0)
    with Retriever(book.embedder, Bm25Encoder(), session, options=options) as retriever:
        yield retriever


def ask_until_done(
    retriever: Retriever, writer: subprocess.Popen[str]
) -> tuple[list[RetrievalResult], float]:
    """Ask questions until a process ends; return the answers and the longest wait in seconds."""
    answers: list[RetrievalResult] = []
    longest = 0.0
    while writer.poll() is None:
        question = f"How does the sensor of robot {len(answers) * 10} move?"
        start = time.monotonic()
        answers.append(retriever.retrieve(Query(question, top_k=50)))
        longest = max(longest, time.monotonic() - start)
    return answers, longest


def check_answer(answer: RetrievalResult, old: Texts, new: Texts) -> set[str]:
    """Check that no document has hits of its old and its new state; return the states found."""
    hits: Texts = defaultdict(dict)
    for chunk in answer.chunks:
        hits[chunk.metadata.doc_path][chunk.chunk_id] = chunk.text
    assert hits
    states_found = set()
    for doc_path, found in hits.items():
        states = {
            name
            for name, texts in (("old", old), ("new", new))
            if found.items() <= texts.get(doc_path, {}).items()
        }
        assert states, f"{doc_path} has hits of two states"
        states_found |= states
    return states_found


@pytest.mark.slow
def test_each_answer_has_only_the_old_or_only_the_new_state_of_a_document(
    book: Book, retriever: Retriever
) -> None:
    old = read_texts(book)
    write_numbered_pages(book, PAGES, 4, "rolls")
    results = []
    for words in ([], ["rebuild"]):
        command = [sys.executable, "-c", WRITER, str(book.root), *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as writer:
            answers, longest = ask_until_done(retriever, writer)
            out, err = writer.communicate()
        assert (writer.returncode, out) == (0, f"{PAGES} []\n"), err
        assert longest < WAIT_S
        results.append((answers, longest))
    new = read_texts(book)
    assert len(new) == len(old) == PAGES
    for (answers, longest), name in zip(results, ("edits", "a rebuild"), strict=True):
        states = [check_answer(answer, old, new) for answer in answers]
        mixed = sum(found == {"old", "new"} for found in states)
        print(f"{len(answers)} answers, {mixed} mixed, longest {longest:.2f} s: {name}")  # noqa: T201  # shown with -s
        assert len(answers) >= 5
        assert states[0] == ({"old"} if name == "edits" else {"new"})
    assert check_answer(retriever.retrieve(Query("robot", top_k=50)), old, new) == {"new"}
