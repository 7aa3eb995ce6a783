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
from rag_pipeline_tests.book import Book, make_book, make_page, make_paragraph
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CALLERS = 4
PAGES = 12
EDITED = "module-1/page-1.md"
WAIT_S = 30.0
PAUSE_S = 0.1
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


def write_pages(book: Book, verb: str, parts: int = 3) -> None:
    """Write pages of some sections, in which every sentence contains the verb."""
    for number in range(PAGES):
        sections = [(f"Part {part}", make_paragraph(number * 9 + part, 5)) for part in range(parts)]
        text = make_page(f"Page {number}", *sections).replace("moves", verb)
        book.write(f"module-{number % 3}/page-{number}.md", text)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book of 12 pages, indexed into an embedded store."""
    book = make_book(tmp_path, {})
    write_pages(book, "moves")
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


def test_an_ingestion_of_an_edited_page_fails_no_question(book: Book, client: httpx.Client) -> None:
    ask(client).raise_for_status()
    text = (book.docs / EDITED).read_text("utf-8").replace("moves by", "glides by")
    book.write(EDITED, text)
    writer = start_writer(book, "ingest")
    responses = ask_until_done(client, writer)
    assert finish(writer) == (0, "")
    read_index_ids(responses)
    found = client.post("/v1/search", json={"question": "Which sensor glides?"}).text
    assert "glides by" in found


def test_a_rebuild_fails_no_question_and_is_picked_up(book: Book, client: httpx.Client) -> None:
    old = ask(client).raise_for_status().json()["index_id"]
    write_pages(book, "rolls")
    writer = start_writer(book, "rebuild")
    responses = ask_until_done(client, writer)
    assert finish(writer) == (0, "")
    assert old in read_index_ids(responses)
    answer = ask(client).raise_for_status().json()
    assert answer["index_id"] != old
    assert "moves by" not in answer["text"]


@pytest.mark.parametrize(
    ("action", "moment"),
    [
        ("ingest", "during store.upsert"),
        ("ingest", "after store.delete"),
        ("rebuild", "during store.upsert"),
        ("rebuild", "after catalog.switch_to"),
    ],
)
def test_a_killed_ingestion_fails_no_question(
    book: Book, client: httpx.Client, action: str, moment: str
) -> None:
    ask(client).raise_for_status()
    write_pages(book, "rolls", parts=2)
    killed = start_writer(book, action, moment)
    responses = ask_until_done(client, killed)
    assert finish(killed)[0] == -9
    read_index_ids(responses)
    again = start_writer(book, "ingest")
    responses = ask_until_done(client, again)
    assert finish(again) == (0, "")
    read_index_ids(responses)
    answer = ask(client).raise_for_status().json()
    assert "rolls by" in answer["text"]
