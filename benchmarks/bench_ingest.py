"""Measure the time and memory of ingestion for books of several sizes.

    python benchmarks/bench_ingest.py [--sizes 89,1000]

For each size, three ingestions through Dagster are measured: of the whole book, of the unchanged
book, and after the edit of one word. The documents are generated and the embedder only hashes
terms, so the figures exclude the embedding model. `rag-pipeline ingest --json` prints the seconds
of each stage with the real model.

Each size runs in its own process. Two parts of its memory are printed, each at its peak: allocated
memory, and mapped files. Most mapped files belong to the store; the system can release their pages
when memory is short.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = ("robot", "joint", "torque", "sensor", "frame", "gait", "planner", "noise", "latency")
_PARTS = ("RssAnon", "RssFile", "VmHWM")
_LOOK_EVERY_S = 0.05


def write_book(folder: Path, count: int, sections: int, sentences: int) -> None:
    """Write `count` generated documents with sections of sentences of 11 words."""
    seeded = random.Random(count)  # noqa: S311  # not used for secrets
    for number in range(count):
        path = folder / f"module-{number % 8}" / f"chapter-{number // 8 % 40}" / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"---\ntitle: Page {number}\ntags: [generated]\n---\n\n# Page {number}\n"]
        for section in range(sections):
            text = " ".join(
                f"{' '.join(seeded.choices(_WORDS, k=11)).capitalize()}." for _ in range(sentences)
            )
            lines.append(f"## Section {section} of {number}\n\n{text}\n")
        path.write_text("\n".join(lines), encoding="utf-8")


@contextmanager
def watch_memory() -> Iterator[dict[str, float]]:
    """Record the peak of allocated and mapped memory of this process, in MB, during the block.

    `VmHWM` is the highest resident size since the process began. The yielded dictionary is updated
    while the block runs.
    """
    peaks = dict.fromkeys(_PARTS, 0.0)
    ended = threading.Event()

    def look() -> None:
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            name, _, size = line.partition(":")
            if name in peaks:
                peaks[name] = max(peaks[name], int(size.split()[0]) / 1024)

    def watch() -> None:
        while not ended.wait(_LOOK_EVERY_S):
            look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()
        look()  # the block may have been shorter than the time between two looks


def run_size(count: int) -> None:
    """Measure a book of `count` documents in this process and print the figures as one line."""
    from rag_pipeline.adapters.connect import connect_services  # noqa: PLC0415  # each size imports them in its own process
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415
    from rag_pipeline.definitions import build_defs  # noqa: PLC0415
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest  # noqa: PLC0415
    from rag_pipeline.ingestion.planning import scan_docs  # noqa: PLC0415
    from rag_pipeline.orchestration.instance import prepare_dagster_home  # noqa: PLC0415
    from rag_pipeline.orchestration.launch import run_ingest_job  # noqa: PLC0415
    from rag_pipeline.orchestration.resources import Ingestion  # noqa: PLC0415
    from rag_pipeline_tests.hashing_embedder import HashingEmbedder  # noqa: PLC0415

    embedder = HashingEmbedder()

    def forget_passages(_: object) -> None:
        embedder.passages.clear()  # recorded for tests; a real model keeps no passages

    with tempfile.TemporaryDirectory() as name, watch_memory() as peaks:
        root = Path(name)
        write_book(root / "docs", count, 10, 8)
        settings = load_settings(docs_dir=root / "docs", data_dir=root / "data")
        services = dataclasses.replace(connect_services(settings), embedder=embedder)
        context = IngestionContext(settings, services)
        home = prepare_dagster_home(settings)
        ingestion = Ingestion(build=lambda: context, listen=forget_passages)
        definitions = build_defs({"ingestion": ingestion})

        def ingest() -> float:
            start = time.perf_counter()
            doc_ids = tuple(str(doc.doc_id) for doc in scan_docs(context).process)
            for place in range(0, len(doc_ids), settings.ingest_run_docs):
                page = doc_ids[place : place + settings.ingest_run_docs]
                run_ingest_job(definitions, IngestionRequest(page))
            return time.perf_counter() - start

        full_s = ingest()
        no_op_s = ingest()
        page = next((root / "docs").rglob("page-0.md"))
        page.write_text(page.read_text("utf-8").replace("robot", "machine", 1), encoding="utf-8")
        edit_s = ingest()
        log_mb = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count:>6} documents  full {full_s:7.1f} s ({1000 * full_s / count:6.1f} ms each)  "
        f"unchanged {no_op_s:5.2f} s  edit {edit_s:5.1f} s  peak {peak_mb:5.0f} MB "
        f"({peaks['RssAnon']:.0f} allocated, {peaks['RssFile']:.0f} in mapped files)  "
        f"Dagster storage {log_mb:6.1f} MB"
    )


def main() -> None:
    """Read the options and run the requested measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", default="89,1000", help="numbers of documents, with commas")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_size(arguments.one)
    else:
        for size in arguments.sizes.split(","):
            subprocess.run([sys.executable, __file__, "--one", size], check=True)


if __name__ == "__main__":
    main()
