"""Measure the memory of an audit, a prune, a rebuild and an export for books of two sizes.

    python benchmarks/upkeep_memory.py [--sizes 1000,10000] [--dir DIR]

The documents are generated, with three short sections each. The embedder only hashes terms. Each
command runs in its own process. Its allocated memory (without mapped files) at the peak and its CPU
time are printed, and how much more the last size needs than the first. A folder given with `--dir`
is kept, so that another run measures the same books without indexing them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.ingestion.context import IngestionContext

_WORDS: Final = ("robot", "joint", "torque", "sensor", "frame", "gait", "planner", "noise")
_COMMANDS: Final = ("ingest", "audit", "audit with a stray", "prune", "rebuild", "chunks")


def write_book(folder: Path, count: int) -> None:
    """Write `count` generated documents with three sections of about 40 words each."""
    seeded = random.Random(count)  # noqa: S311  # not used for secrets
    for number in range(count):
        path = folder / f"part-{number % 50}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"---\ntitle: Page {number}\n---\n\n# Page {number}\n"]
        for section in range(3):
            text = " ".join(seeded.choices(_WORDS, k=40)).capitalize()
            lines.append(f"## Section {section} of {number}\n\n{text}.\n")
        path.write_text("\n".join(lines), encoding="utf-8")


def run_command(root: Path, name: str) -> None:
    """Run one command on the book below `root`, and print its figures as one JSON object."""
    from bench_ingest import watch_memory  # noqa: PLC0415  # each command imports what it needs

    act = _find_command(root, name)
    with watch_memory() as peaks:
        start = time.process_time()
        act()
        used_s = time.process_time() - start
    print(json.dumps({"mb": peaks["RssAnon"], "cpu_s": used_s}))


def _find_command(root: Path, name: str) -> Callable[[], object]:
    """Return a function that runs a command; what it needs is imported before it is measured."""
    from rag_pipeline.adapters.connect import connect_services  # noqa: PLC0415  # see above
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest  # noqa: PLC0415
    from rag_pipeline.ingestion.export import chunk_folder  # noqa: PLC0415
    from rag_pipeline.ingestion.run import run_ingestion  # noqa: PLC0415
    from rag_pipeline.ingestion.upkeep.repair import audit_index  # noqa: PLC0415
    from rag_pipeline.ingestion.upkeep.stats import prune_embeddings  # noqa: PLC0415
    from rag_pipeline_tests.hashing_embedder import HashingEmbedder  # noqa: PLC0415

    settings = load_settings(docs_dir=root / "docs", data_dir=root / "data")
    embedder = HashingEmbedder()
    services = dataclasses.replace(connect_services(settings), embedder=embedder)
    context = IngestionContext(settings, services)

    def ingest(*, rebuild: bool) -> None:
        for _ in run_ingestion(context, IngestionRequest(rebuild=rebuild), "run"):
            embedder.passages.clear()  # recorded for tests

    def audit_with_stray() -> None:
        _forget_a_document(context)
        audit_index(context)
        ingest(rebuild=False)

    return {
        "ingest": lambda: ingest(rebuild=False),
        "audit": lambda: audit_index(context),
        "audit with a stray": audit_with_stray,
        "prune": lambda: prune_embeddings(context),
        "rebuild": lambda: ingest(rebuild=True),
        "chunks": lambda: chunk_folder(settings.docs_dir, settings.site, settings.chunk_limits),
    }[name]


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
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_command(Path(arguments.one[0]), arguments.one[1])
        return
    with tempfile.TemporaryDirectory() as name:
        _measure(arguments.dir or Path(name), [int(size) for size in arguments.sizes.split(",")])


def _measure(folder: Path, sizes: list[int]) -> None:
    print(f"{'command':<20}" + "".join(f"{size:>10} documents" for size in sizes))
    for name in _COMMANDS:
        peaks, cells = [], []
        for size in sizes:
            root = folder / str(size)
            if not root.exists():
                write_book(root / "docs", size)
            done = subprocess.run(
                [sys.executable, __file__, "--one", str(root), name],
                check=True,
                capture_output=True,
                text=True,
                env=os.environ | {"SITE_BASE_URL": "/"},
            )
            figures = json.loads(done.stdout.splitlines()[-1])
            peaks.append(figures["mb"])
            cells.append(f"{figures['mb']:>8.0f} MB {figures['cpu_s']:>6.1f} s")
        print(f"{name:<20}" + "".join(cells) + f"   {peaks[-1] / peaks[0]:.2f} x", flush=True)


if __name__ == "__main__":
    main()
