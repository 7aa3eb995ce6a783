"""Compare a Qdrant server with the embedded store: questions, evaluation, audit, requests, bytes.

    python benchmarks/qdrant_server.py [--questions 100] [--points 16500]

With QDRANT_URL, that server is used. Otherwise a process of this benchmark serves the embedded
engine as a Qdrant server does: it takes a millisecond for each request, and sends an answer that
may be compressed in two packets. Run `rag-pipeline ingest` first, so that the embeddings of the
book are known. The collections on the server are deleted at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from bench_ingest import write_book

from rag_pipeline.adapters.connect import connect_catalog, connect_services
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.audit import audit_index
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline.retrieval import Query, open_retriever
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval import Retriever

_GOLDEN = Path(__file__).parent.parent / "rag_pipeline" / "evaluation" / "golden" / "questions.json"
_POINTS_PER_PAGE = 3


def main() -> None:
    """Read the options, measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--points", type=int, default=0, help="points of the book that is audited")
    parser.add_argument("--delay-ms", type=float, default=1.0, help="of the server in this process")
    options = parser.parse_args()
    golden = json.loads(_GOLDEN.read_text("utf-8"))["queries"]
    questions = [entry["question"] for entry in golden][: options.questions]
    with count_traffic() as traffic, find_server(options.delay_ms) as url:
        embedded = load_settings(qdrant_url="")
        name = f"bench-{secrets.token_hex(4)}"
        server = embedded.model_copy(update={"qdrant_url": url, "qdrant_collection": name})
        try:
            # The command finds the settings of the site, and records them with the index.
            ingest = [sys.executable, "-c", "from rag_pipeline.cli import main; main()", "ingest"]
            named = {"QDRANT_URL": url, "QDRANT_COLLECTION": name}
            subprocess.run(ingest, check=True, capture_output=True, env=os.environ | named)
            compare_questions(embedded, server, questions, traffic)
            if options.points:
                compare_audits(url, name, options.points, traffic)
        finally:
            for one in (name, f"{name}-audit"):
                connect_catalog(server.model_copy(update={"qdrant_collection": one})).drop()


def compare_questions(
    embedded: Settings, server: Settings, questions: Sequence[str], traffic: list[tuple[int, int]]
) -> None:
    """Ask each question on both stores in turn, and print the times and the traffic."""
    wall: dict[str, list[float]] = {"embedded": [], "server": []}
    used: dict[str, list[float]] = {"embedded": [], "server": []}
    sizes: list[tuple[int, int, int]] = []
    with open_retriever(embedded) as near, open_retriever(server) as far:
        for retriever in (near, far):
            retriever.retrieve(Query("How is a robot built?"))
        for question in questions:
            for name, retriever in (("embedded", near), ("server", far)):
                traffic.clear()
                spent, cpu = _ask(retriever, question)
                wall[name].append(spent)
                used[name].append(cpu)
            sizes.append(
                (len(traffic), sum(sent for sent, _ in traffic), sum(got for _, got in traffic))
            )
    for title, spent_ms in (("question, p50 ms", wall), ("question, p50 ms of CPU", used)):
        one, other = (statistics.median(spent_ms[name]) for name in ("embedded", "server"))
        print(f"{title:28} embedded {one:7.1f}   server {other:7.1f}   {other / one:5.2f} x")
    one, other = (sum(wall[name]) / 1000 for name in ("embedded", "server"))
    print(
        f"{'all questions, s':28} embedded {one:7.1f}   server {other:7.1f}   {other / one:5.2f} x"
    )
    for title, at in (("requests", 0), ("bytes sent", 1), ("bytes received", 2)):
        values = [size[at] for size in sizes]
        print(f"{title:28} p50 {statistics.median(values):9.0f}   most {max(values):9.0f}")


def compare_audits(url: str, name: str, points: int, traffic: list[tuple[int, int]]) -> None:
    """Audit a generated book on both stores, and print the times."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_book(root / "docs", points // _POINTS_PER_PAGE, sections=3, sentences=4)
        spent = {}
        for store, address in (("embedded", ""), ("server", url)):
            settings = load_settings(
                docs_dir=root / "docs",
                data_dir=root / store,
                site_base_url="/",
                qdrant_url=address,
                qdrant_collection=f"{name}-audit",
            )
            services = connect_services(settings)
            context = IngestionContext(
                settings, dataclasses.replace(services, embedder=HashingEmbedder())
            )
            _ingest(context)
            traffic.clear()
            begun = time.perf_counter()
            report = audit_index(context)
            spent[store] = time.perf_counter() - begun
            if report.findings:
                raise SystemExit(f"{len(report.findings)} findings on a new index")
        one, other = spent["embedded"], spent["server"]
        print(
            f"audit of {report.point_count} points, s    embedded {one:7.1f}   "
            f"server {other:7.1f}   {len(traffic)} requests"
        )


@contextmanager
def count_traffic() -> Iterator[list[tuple[int, int]]]:
    """Yield a list to which each request adds the sizes of its two bodies."""
    traffic: list[tuple[int, int]] = []
    send = httpx.Client.send

    def count(self: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:  # noqa: ANN401  # as in the client
        response = send(self, request, **options)
        traffic.append((len(request.content), len(response.content)))
        return response

    httpx.Client.send = count  # type: ignore[method-assign]  # the client offers no hook for sizes
    try:
        yield traffic
    finally:
        httpx.Client.send = send  # type: ignore[method-assign]  # the client offers no hook for sizes


@contextmanager
def find_server(delay_ms: float) -> Iterator[str]:
    """Yield the address of the server at QDRANT_URL, or of one in another process."""
    if os.environ.get("QDRANT_URL"):
        yield os.environ["QDRANT_URL"]
        return
    command = [sys.executable, "-m", "rag_pipeline_tests.qdrant_engine", "--delay-ms"]
    with subprocess.Popen(
        [*command, str(delay_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        first = next(iter(process.stdout or ()))
        try:
            yield first.strip()
        finally:
            process.communicate()  # the server ends with its standard input


def _ask(retriever: Retriever, question: str) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), time.process_time()
    retriever.retrieve(Query(question))
    return (time.perf_counter() - begun) * 1000, (time.process_time() - cpu) * 1000


def _ingest(context: IngestionContext) -> None:
    for _ in run_ingestion(context, IngestionRequest(), "benchmark"):
        pass


if __name__ == "__main__":
    main()
