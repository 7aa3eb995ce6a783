"""Measure the memory of the commands that read a whole index, for books of two sizes.

    python benchmarks/upkeep_memory.py [--sizes 1000,10000] [--dir DIR] [--only audit]

The documents are generated, with three short sections each. The embedder only hashes terms. Each
command runs in its own process. Printed are its resident memory at the peak (the mapped files of
the embedded store included, whose pages the system can release), its allocated memory at the peak,
and its CPU time. The last two columns say how many times as much memory the last size needs as the
first. `open store` only opens the store, which is the share of the embedded engine in every command
that uses it. A folder given with `--dir` is kept, so that another run measures the same books
without indexing them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench_ingest import watch_memory, write_book

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.ingestion.context import IngestionContext

_COMMANDS: Final = (
    "ingest",
    "open store",
    "scan",
    "edit one page",
    "audit",
    "audit with a stray",
    "prune",
    "sweep",
    "rebuild",
    "chunks",
)


def run_command(root: Path, name: str) -> None:
    """Run one command on the book below `root`, and print its figures as one JSON object."""
    act = _find_command(root, name)
    with watch_memory() as peaks:
        start = time.process_time()
        act()
        used_s = time.process_time() - start
    print(json.dumps(peaks | {"cpu_s": used_s}))


def _find_command(root: Path, name: str) -> Callable[[], object]:
    """Return a function that runs a command; what it needs is imported before it is measured."""
    from rag_pipeline.adapters.connect import connect_services  # noqa: PLC0415  # see above
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415
    from rag_pipeline.ingestion.audit import audit_index, prune_embeddings  # noqa: PLC0415
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest  # noqa: PLC0415
    from rag_pipeline.ingestion.planning import scan_docs, sweep_if_idle  # noqa: PLC0415
    from rag_pipeline.ingestion.report import chunk_folder  # noqa: PLC0415
    from rag_pipeline.ingestion.run import run_ingestion  # noqa: PLC0415
    from rag_pipeline_tests.hashing_embedder import HashingEmbedder  # noqa: PLC0415

    settings = load_settings(docs_dir=root / "docs", data_dir=root / "data")
    embedder = HashingEmbedder()
    services = dataclasses.replace(connect_services(settings), embedder=embedder)
    context = IngestionContext(settings, services)

    def ingest(*, rebuild: bool) -> None:
        for _ in run_ingestion(context, IngestionRequest(rebuild=rebuild), "run"):
            embedder.passages.clear()  # recorded for tests

    def edit_one_page() -> None:
        _edit([next((root / "docs").rglob("page-0.md"))])
        ingest(rebuild=False)

    def audit_with_stray() -> None:
        _forget_a_document(context)
        audit_index(context)
        ingest(rebuild=False)

    return {
        "ingest": lambda: ingest(rebuild=False),
        "open store": lambda: services.catalog.open_current().close(),
        "scan": lambda: scan_docs(context),
        "edit one page": edit_one_page,
        "audit": lambda: audit_index(context),
        "audit with a stray": audit_with_stray,
        "prune": lambda: prune_embeddings(context),
        "sweep": lambda: sweep_if_idle(context),
        "rebuild": lambda: ingest(rebuild=True),
        "chunks": lambda: chunk_folder(settings.docs_dir, settings.site, settings.chunk_limits),
    }[name]


def _edit(paths: list[Path]) -> None:
    for path in paths:
        changed = f"{path.read_text('utf-8')}\nEdited at {time.time_ns()}.\n"
        path.write_text(changed, encoding="utf-8")


def _forget_a_document(context: IngestionContext) -> None:
    """Delete one ledger entry, so that the audit has to look for points of unknown documents."""
    services = context.services
    ledger = services.open_ledger(str(services.catalog.current_id()))
    entry = next(iter(ledger.entries().values()))
    ledger.forget(entry.doc_id, entry.version)


def main() -> None:
    """Read the options and run the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000", help="numbers of documents, with commas")
    parser.add_argument("--dir", type=Path, help="folder for the books; kept")
    parser.add_argument("--only", choices=_COMMANDS, help="one command; ingest runs before it")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_command(Path(arguments.one[0]), arguments.one[1])
        return
    with tempfile.TemporaryDirectory() as name:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        names = ("ingest", arguments.only) if arguments.only else _COMMANDS
        measure_commands(arguments.dir or Path(name), sizes, names)


def measure_commands(
    folder: Path, sizes: Sequence[int], names: Sequence[str] = _COMMANDS
) -> dict[str, float]:
    """Run commands for books of several sizes, and print their memory and time.

    Args:
        folder: Folder for the books. A book that is there already is used again.
        sizes: Numbers of documents, ascending.
        names: The commands, in the order in which they run; the first is `ingest`.

    Returns:
        How many times as much resident memory each command needs for the last size as for the
        first.
    """
    print("resident MB, allocated MB and seconds of CPU at", *sizes, "documents")
    factors = {}
    for name in names:
        found = [_run(folder / str(size), size, name) for size in sizes]
        cells = [f"{it['VmHWM']:6.0f} {it['RssAnon']:5.0f} {it['cpu_s']:6.1f}" for it in found]
        grown = [found[-1][part] / found[0][part] for part in ("VmHWM", "RssAnon")]
        print(f"{name:<19}{'   '.join(cells)}   {grown[0]:.2f} x {grown[1]:.2f} x", flush=True)
        factors[name] = grown[0]
    return factors


def _run(root: Path, size: int, name: str) -> dict[str, float]:
    """Run one command in a process of its own, and return its figures."""
    if not root.exists():
        write_book(root / "docs", size, sections=3, sentences=4)
    book = f"memory-{size}"
    named = {"SITE_BASE_URL": "/", "STATE_NAME": book, "QDRANT_COLLECTION": book}
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(root), name],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | named,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
