"""Tests of a service that answers while another process ingests, rebuilds or is killed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.answering.assistant import Assistant
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.retrieval.store_session import StoreSession
from rag_pipeline.serving.app import create_app
from rag_pipeline_tests.book import Book, make_book, write_numbered_pages
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CALLERS = 4
PAGES = 12
WAIT_S = 30.0
PAUSE_S = 0.25
pytestmark = pytest.mark.slow
WRITER = """
import os, pathlib, signal, sys
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import Book
from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch

root, action, moment = sys.argv[1:]
book = Book(pathlib.Path(root))
kill = lambda _: os.kill(os.getpid(), signal.SIGKILL)
context = watch(book.build_context(), Boundaries(kill, moment or None))
sys.stdin.readline()
book.ingest(IngestionRequest(rebuild=action == "rebuild"), context)
"""
"""Ingests a book when it is told to.

It kills itself at the first moment whose name starts with the third argument.
"""


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book of 12 pages, indexed into an embedded store."""
    book = make_book(tmp_path, {})
    write_numbered_pages(book, PAGES, 3, "moves")
    book.ingest()
    return book


@pytest.fixture
def client(book: Book) -> Iterator[httpx.Client]:
    """A client of a service over the book, which waits for the store as by default."""
    catalog = EdgeCatalog(book.state / "store", "book", WAIT_S)
    unlimited = {"serve_client_rate": "", "serve_total_rate": ""}
    settings = book.settings.model_copy(update=unlimited)
    session = StoreSession(catalog, book.build_context().space, idle_s=2.0, is_exclusive=True)
    with (
        Retriever(book.embedder, Bm25Encoder(), session) as retriever,
        Assistant(retriever) as assistant,
        run_app(create_app(settings, assistant)) as url,
        httpx.Client(base_url=url, timeout=2 * WAIT_S) as client,
    ):
        yield client


def start_writer(book: Book, action: str, moment: str = "") -> subprocess.Popen[str]:
    """Start a process that will ingest or rebuild the book, and kill itself at a moment."""
    command = [sys.executable, "-c", WRITER, str(book.root), action, moment]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def ask(client: httpx.Client, number: int = 11) -> httpx.Response:
    """Ask about the part of one of the robots."""
    question = f"By which rule does the sensor of robot {number} move?"
    return client.post("/v1/answers", json={"question": question, "top_k": 20})


def ask_until_done(client: httpx.Client, writer: subprocess.Popen[str]) -> list[httpx.Response]:
    """Ask with several callers before a process writes, until it ends, and once more after that."""
    assert writer.stdin is not None
    begin = Barrier(CALLERS, lambda: print("go", file=writer.stdin))

    def call(first: int) -> list[httpx.Response]:
        found = [ask(client, first)]
        begin.wait(WAIT_S)
        is_over = False
        while not is_over:
            found.append(ask(client, (first + len(found) * CALLERS) % 900))
            with suppress(subprocess.TimeoutExpired):  # the pause leaves the writer some time
                writer.wait(PAUSE_S)
            is_over = writer.poll() is not None
        return [*found, ask(client, first)]

    with ThreadPoolExecutor(CALLERS) as pool:
        return [response for part in pool.map(call, range(CALLERS)) for response in part]


def finish(writer: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the status and the error output of a process that has ended."""
    _, errors = writer.communicate(timeout=WAIT_S)
    return writer.returncode, errors


def read_index_ids(responses: list[httpx.Response]) -> set[str]:
    """Check that each response is an answer or refusal, and return the builds they came from."""
    failed = [response.text for response in responses if response.status_code != httpx.codes.OK]
    assert not failed
    assert len(responses) > 2 * CALLERS
    return {response.json()["index_id"] for response in responses}


@pytest.mark.parametrize(
    ("action", "moment", "repeated"),
    [
        ("ingest", "during store.upsert", "ingest"),
        ("ingest", "after store.delete", "ingest"),
        ("rebuild", "during store.upsert", "ingest"),
        ("rebuild", "after catalog.switch_to", "rebuild"),
    ],
)
def test_neither_a_killed_ingestion_nor_the_next_one_fails_a_question(
    book: Book, client: httpx.Client, action: str, moment: str, repeated: str
) -> None:
    old = ask(client).raise_for_status().json()["index_id"]
    write_numbered_pages(book, PAGES, 2, "rolls")
    killed = start_writer(book, action, moment)
    responses = ask_until_done(client, killed)
    assert finish(killed)[0] == -9
    assert old in read_index_ids(responses)
    before = ask(client).raise_for_status().json()["index_id"]
    again = start_writer(book, repeated)
    responses = ask_until_done(client, again)
    assert finish(again) == (0, "")
    assert before in read_index_ids(responses)
    answer = ask(client).raise_for_status().json()
    assert (answer["index_id"] != before) == (repeated == "rebuild")
    assert "rolls by" in answer["text"]
    assert "moves by" not in answer["text"]
