"""Count the requests that ingestion sends to an object store with the state of a book.

    pip install s3fs "moto[server]"
    python benchmarks/object_store_requests.py [--documents 60]

The script starts moto, a server with the interface of S3, on a free port of 127.0.0.1 and sets
STATE_URL to it. It ingests a generated book, ingests it again without a change, edits one word of
one page, and audits the index. For each of the four it prints the requests by method and by part of
the state. The server counts them, so retries and requests of the client library are included.

The embedder only hashes terms. The embedded store is in a folder and sends no request.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import re
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_BUCKET: Final = "books"
_REQUEST: Final = re.compile(r'"(?:\x1b\[[\d;]*m)*(?P<method>[A-Z]+) /(?P<path>\S*) HTTP')
_PARTS: Final = ("ledger", "artifacts", "cache")
_COLUMN: Final = 9


class RequestCounter(logging.Handler):
    """A handler of the server's log that counts the requests by part of the state and method."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count the request that a line of the log is about."""
        found = _REQUEST.search(record.getMessage())
        if found is None:
            return
        method, path = found["method"], found["path"]
        if method == "GET" and "list-type" in path:
            method = "LIST"
        elif method == "POST" and "delete" in path:
            method = "DELETE"
        part = next((part for part in _PARTS if f"/{part}" in path or f"%2F{part}" in path), "")
        self.counts[part or "other", method] += 1


def count_requests(documents: int) -> None:
    """Run the four commands on a generated book and print a table of requests for each."""
    if any(find_spec(name) is None for name in ("moto", "s3fs")):
        print('not measured, because a package is missing: pip install s3fs "moto[server]"')
        return
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  # not a dependency of the project

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    counter = RequestCounter()
    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.addHandler(counter)
    log.propagate = False
    try:
        host, port = server.get_host_and_port()
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",  # pragma: allowlist secret  # moto checks no key
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        with tempfile.TemporaryDirectory() as name:
            _measure(Path(name), documents, counter)
    finally:
        server.stop()


def _measure(root: Path, documents: int, counter: RequestCounter) -> None:
    import s3fs  # noqa: PLC0415  # not a dependency of the project
    from bench_ingest import write_book  # noqa: PLC0415  # like all imports of this function

    from rag_pipeline.adapters.connect import connect_services  # noqa: PLC0415  # as above
    from rag_pipeline.cli.indexing import ingest_changes  # noqa: PLC0415
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415
    from rag_pipeline.ingestion.context import IngestionContext  # noqa: PLC0415
    from rag_pipeline.ingestion.upkeep.repair import audit_index  # noqa: PLC0415
    from rag_pipeline_tests.hashing_embedder import HashingEmbedder  # noqa: PLC0415

    s3fs.S3FileSystem().mkdir(_BUCKET)
    write_book(root / "docs", documents)
    settings = load_settings(
        docs_dir=root / "docs",
        data_dir=root / "data",
        state_url=f"s3://{_BUCKET}",
        state_name="book",
    )

    def run(action: Callable[[IngestionContext], object]) -> Callable[[], object]:
        """Return a function that runs an action with new services, like a new process would."""

        def act() -> object:
            services = dataclasses.replace(connect_services(settings), embedder=HashingEmbedder())
            return action(IngestionContext(settings, services))

        return act

    def edit_a_word() -> object:
        page = next((root / "docs").rglob("page-0.md"))
        page.write_text(page.read_text("utf-8").replace("robot", "machine", 1), encoding="utf-8")
        return run(ingest_changes)()

    for label, act in (
        (f"all {documents} documents", run(ingest_changes)),
        ("no change", run(ingest_changes)),
        ("one word edited", edit_a_word),
        ("audit", run(audit_index)),
    ):
        counter.counts.clear()
        act()
        _print_table(label, counter.counts, documents)


def _print_table(label: str, counts: Counter[tuple[str, str]], documents: int) -> None:
    methods = sorted({method for _, method in counts})
    print(f"\n{label}: {counts.total()} requests, {counts.total() / documents:.2f} per document")
    print(f"{'':>10}" + "".join(f"{method:>{_COLUMN}}" for method in methods))
    for part in sorted({part for part, _ in counts}):
        cells = "".join(f"{counts[part, method]:>{_COLUMN}}" for method in methods)
        print(f"{part:>10}{cells}")


def main() -> None:
    """Read the options, and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=60, help="size of the book")
    count_requests(parser.parse_args().documents)


if __name__ == "__main__":
    main()
